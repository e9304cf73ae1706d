//! The runs: every series once per round, in a turning order, so that what
//! else the machine does meets all of them alike.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use crate::BenchEra;
use crate::figures::{Figures, median};
use crate::lab::{self, BenchServers, Nginx, Portway, TOKEN, Upstream};
use crate::{entries, table, valgrind};

#[derive(Args)]
pub struct RunOptions {
    #[arg(long, default_value = "target/release/portway")]
    portway: PathBuf,
    #[arg(long, default_value = "/usr/sbin/nginx")]
    nginx: String,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Of one series in one round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Microseconds of work a call takes at the working upstreams. With the
    /// default, direct calls come out at about 50,000 a second.
    #[arg(long, default_value_t = 10.0)]
    work: f64,
    /// Only series whose name begins so.
    #[arg(long)]
    only: Option<String>,
    /// Leave out instructions and allocations, which need valgrind.
    #[arg(long)]
    no_counts: bool,
    /// Leave out the speeds.
    #[arg(long)]
    no_speed: bool,
    /// Write the tables down here too.
    #[arg(long)]
    write: Option<PathBuf>,
}

/// One way to ask one program.
struct Series {
    name: &'static str,
    /// What `load` is called with.
    args: Vec<String>,
    gateway: Option<u32>,
    upstream: Option<u32>,
}

impl Series {
    fn new(name: &'static str, url: &str, era: BenchEra, connections: usize) -> Series {
        let connections = connections.to_string();
        let args = [
            "--url",
            url,
            "--era",
            era.as_str(),
            "--connections",
            &connections,
        ];
        Series {
            name,
            args: args.map(ToOwned::to_owned).into(),
            gateway: None,
            upstream: None,
        }
    }

    fn with(mut self, name: &str, value: &str) -> Series {
        self.args.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    fn through(mut self, pid: u32) -> Series {
        self.gateway = Some(pid);
        self
    }

    fn to(mut self, upstream: &Upstream) -> Series {
        self.upstream = Some(upstream.process.pid());
        self
    }

    fn run(&self, seconds: f64) -> anyhow::Result<Run> {
        let spent = || {
            let spent = |pid: Option<u32>| pid.map_or(0.0, lab::cpu);
            (spent(self.gateway), spent(self.upstream))
        };
        let before = spent();
        let mut args = self.args.clone();
        args.extend(["--seconds".to_owned(), seconds.to_string()]);
        let figures = load(&args).with_context(|| self.name)?;
        let after = spent();
        let calls = figures.all_calls as f64 / 1e6;
        let own = figures.spent * 1e6 / figures.calls as f64;
        Ok(Run {
            gateway: (after.0 - before.0) / calls,
            ends: own + (after.1 - before.1) / calls,
            figures,
        })
    }
}

/// One run of one series; times on the CPU are microseconds a call.
pub struct Run {
    pub figures: Figures,
    pub gateway: f64,
    /// The load and the upstream, which share a core.
    pub ends: f64,
}

impl Run {
    /// Calls a second if the cores had nothing else to do: what a machine
    /// that others use as well can tell.
    pub fn capacity(&self) -> f64 {
        1e6 / self.gateway.max(self.ends)
    }
}

/// Runs the load on its core.
pub fn load(args: &[String]) -> anyhow::Result<Figures> {
    let output = Command::new("taskset")
        .args(["-c", "0"])
        .arg(std::env::current_exe()?)
        .arg("load")
        .args(args)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "load {}: {errors}", args.join(" "));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// All runs, by the name of their series.
#[derive(Default)]
pub struct Results(BTreeMap<&'static str, Vec<Run>>);

impl Results {
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    fn of(&self, name: &str) -> &[Run] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn median(&self, name: &str, value: impl Fn(&Run) -> f64) -> f64 {
        median(self.of(name).iter().map(value))
    }

    /// The middle of what `one` is to `other`, round by round.
    pub fn compare(&self, one: &str, other: &str, with: impl Fn(&Run, &Run) -> f64) -> f64 {
        let pairs = self.of(one).iter().zip(self.of(other));
        median(pairs.map(|(one, other)| with(one, other)))
    }
}

pub fn main(options: &RunOptions) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism()?;
    ensure!(cores.get() >= 2, "this needs two cores");
    let mut page = String::from(
        "# Figures\n\nWritten by `make bench`. Gateway on one core, load and upstream on the \
         other; 16 connections\nwhere nothing else is said; every answer checked; the middle of \
         all rounds.\n\n",
    );
    let before = load_average();
    if !options.no_speed {
        let results = speeds(options)?;
        table::speeds(&mut page, &results, options.work);
    }
    let after = load_average();
    if !options.no_counts {
        let counts = valgrind::counts(&options.portway)?;
        table::counts(&mut page, &counts);
    }
    page += &format!(
        "\n{} rounds of {} s; {cores} cores, load {before} before and {after} after the speeds.\n",
        options.rounds, options.seconds
    );
    print!("{page}");
    if let Some(file) = &options.write {
        std::fs::write(file, page).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// Of the last minute: what else the machine does spoils the figures.
fn load_average() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}

const TOOLS: usize = 1000;
const MANY: usize = 16;

fn speeds(options: &RunOptions) -> anyhow::Result<Results> {
    let modern = Upstream::start(BenchEra::Modern)?;
    let legacy = Upstream::start(BenchEra::Legacy)?;
    let (file, size) = lab::largest_asset()?;
    let thousand = Upstream::with_tools(BenchEra::Modern, TOOLS, size)?;
    let busy = Upstream::working(BenchEra::Modern, options.work)?;
    let oldbusy = Upstream::working(BenchEra::Legacy, options.work)?;
    let servers = BenchServers::default()
        .http("modern", &modern)
        .http("legacy", &legacy)
        .http("thousand", &thousand)
        .http("busy", &busy)
        .http("oldbusy", &oldbusy)
        .stdio("pipe", BenchEra::Modern)?
        .stdio("oldpipe", BenchEra::Legacy)?;
    let project = tempfile::tempdir()?;
    let key = entries::fill(project.path())?;
    let portway = Portway::start_in(project, &options.portway, servers, &[])?;
    let nginx = Nginx::start(&options.nginx, &[&modern, &legacy, &busy, &oldbusy])?;
    let mut all = calls(&portway, &nginx, &modern, &legacy)?;
    all.push(keyed(&portway, &modern, &key));
    all.extend(working(&portway, &nginx, &busy, &oldbusy)?);
    // The file must be one of the console that this Portway has inside.
    if options
        .only
        .as_ref()
        .is_none_or(|only| only.starts_with("list"))
    {
        all.extend(lists(&portway, &file, size)?);
    }
    if let Some(only) = &options.only {
        all.retain(|series| series.name.starts_with(only.as_str()));
    }
    let mut results = Results::default();
    for round in 0..options.rounds {
        for at in 0..all.len() {
            let series = &all[(at + round) % all.len()];
            let run = series.run(options.seconds)?;
            eprintln!(
                "round {} {:18} {:7.0}/s, could be {:7.0}/s; median {:6.1} us; gateway {:5.1} us",
                round + 1,
                series.name,
                run.figures.rate,
                run.capacity(),
                run.figures.median,
                run.gateway
            );
            results.0.entry(series.name).or_default().push(run);
        }
    }
    Ok(results)
}

fn calls(
    portway: &Portway,
    nginx: &Nginx,
    modern: &Upstream,
    legacy: &Upstream,
) -> anyhow::Result<Vec<Series>> {
    use BenchEra::{Legacy, Modern};
    let shared = portway.url("/mcp");
    let through = |name, era, server: &str, connections| {
        Series::new(name, &shared, era, connections)
            .with("tool", &format!("mcp_{server}_echo"))
            .with("token", TOKEN)
            .through(portway.process.pid())
            .to(if server == "modern" { modern } else { legacy })
    };
    let worker = nginx.worker()?;
    let proxied = |name, era, port: usize, connections| {
        let url = format!("http://{}/mcp", nginx.addresses[port]);
        let upstream = [modern, legacy][port];
        Series::new(name, &url, era, connections)
            .through(worker)
            .to(upstream)
    };
    let alone = portway.url("/servers/modern/mcp");
    Ok(vec![
        Series::new("direct modern", &modern.url(), Modern, MANY).to(modern),
        through("http modern", Modern, "modern", MANY),
        proxied("nginx modern", Modern, 0, MANY),
        through("stdio modern", Modern, "pipe", MANY),
        through("cross modern", Modern, "legacy", MANY),
        Series::new("direct legacy", &legacy.url(), Legacy, MANY).to(legacy),
        through("http legacy", Legacy, "legacy", MANY),
        proxied("nginx legacy", Legacy, 1, MANY),
        through("stdio legacy", Legacy, "oldpipe", MANY),
        through("cross legacy", Legacy, "modern", MANY),
        Series::new("alone modern", &alone, Modern, MANY)
            .with("token", TOKEN)
            .through(portway.process.pid())
            .to(modern),
        Series::new("one direct", &modern.url(), Modern, 1).to(modern),
        through("one http", Modern, "modern", 1),
        proxied("one nginx", Modern, 0, 1),
        through("one stdio", Modern, "pipe", 1),
    ])
}

/// As `http modern`, with the key of one entry among many.
fn keyed(portway: &Portway, modern: &Upstream, key: &str) -> Series {
    Series::new("keyed modern", &portway.url("/mcp"), BenchEra::Modern, MANY)
        .with("tool", "mcp_modern_echo")
        .with("token", key)
        .through(portway.process.pid())
        .to(modern)
}

/// Calls to servers that do something.
fn working(
    portway: &Portway,
    nginx: &Nginx,
    modern: &Upstream,
    legacy: &Upstream,
) -> anyhow::Result<Vec<Series>> {
    use BenchEra::{Legacy, Modern};
    let url = portway.url("/mcp");
    let through = |name, era, server: &str, upstream, connections| {
        Series::new(name, &url, era, connections)
            .with("tool", &format!("mcp_{server}_echo"))
            .with("token", TOKEN)
            .through(portway.process.pid())
            .to(upstream)
    };
    let worker = nginx.worker()?;
    let proxied = |name, era, port: usize, upstream| {
        let url = format!("http://{}/mcp", nginx.addresses[port]);
        Series::new(name, &url, era, MANY)
            .through(worker)
            .to(upstream)
    };
    Ok(vec![
        Series::new("work direct modern", &modern.url(), Modern, MANY).to(modern),
        through("work http modern", Modern, "busy", modern, MANY),
        proxied("work nginx modern", Modern, 2, modern),
        proxied("work nginx legacy", Legacy, 3, legacy),
        Series::new("work direct legacy", &legacy.url(), Legacy, MANY).to(legacy),
        through("work http legacy", Legacy, "oldbusy", legacy, MANY),
        Series::new("work one direct", &modern.url(), Modern, 1).to(modern),
        through("work one http", Modern, "busy", modern, 1),
    ])
}

/// Lists of many tools, and a file of the console that is as large as one.
fn lists(portway: &Portway, file: &str, size: usize) -> anyhow::Result<Vec<Series>> {
    let url = portway.url("/servers/thousand/mcp");
    let list = |name, era| {
        Series::new(name, &url, era, MANY)
            .with("what", "list")
            .with("token", TOKEN)
            .through(portway.process.pid())
    };
    let modern = list("list modern", BenchEra::Modern);
    let file = Series::new("list file", &portway.url(file), BenchEra::Modern, MANY)
        .with("what", "get")
        .through(portway.process.pid());
    for (what, series) in [("list", &modern), ("file", &file)] {
        let bytes = series.run(0.1)?.figures.bytes;
        ensure!(
            bytes.abs_diff(size) < size / 100,
            "the {what} has {bytes} bytes where {size} were wanted"
        );
    }
    Ok(vec![modern, list("list legacy", BenchEra::Legacy), file])
}
