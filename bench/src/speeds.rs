//! The series of the quick run: every one once per round, in a turning order,
//! so that whatever else the machine does affects all of them alike.

use crate::BenchEra::{self, Legacy, Modern};
use crate::lab::{BUFFERED, BenchServers, Nginx, Portway, TOKEN, Upstream};
use crate::run::RunOptions;
use crate::series::{Results, Series};
use crate::{entries, syscalls};

const MANY: usize = 16;
const CROWD: usize = 128;
const LARGE: &str = "1048576";

/// Entries in the store of the gateway.
const ENTRIES: usize = 10_000;

pub fn measure(options: &RunOptions) -> anyhow::Result<Results> {
    let modern = Upstream::start(Modern)?;
    let legacy = Upstream::start(Legacy)?;
    let hundred = Upstream::with_tools(Modern, 100)?;
    let thousand = Upstream::with_tools(Modern, 1000)?;
    let servers = BenchServers::default()
        .http("modern", &modern)
        .http("legacy", &legacy)
        .http("hundred", &hundred)
        .http("thousand", &thousand)
        .stdio("pipe", Modern)?
        .stdio("oldpipe", Legacy)?;
    let project = tempfile::tempdir()?;
    let entry = entries::fill(project.path(), "modern", ENTRIES)?;
    let portway = Portway::spawn(project, &options.portway, servers, &[])?;
    portway.until_settled()?;
    let nginx = Nginx::start(&options.nginx, &[&modern, &legacy, &hundred, &thousand])?;
    let programs = Programs {
        gateway: portway.process.pid(),
        worker: nginx.worker()?,
        shared: portway.url("/mcp"),
        upstreams: [&modern, &legacy, &hundred, &thousand],
        portway: &portway,
        nginx: &nginx,
    };
    let mut all = programs.calls();
    all.extend(programs.lists());
    all.extend(programs.sessions());
    all.push(
        Series::new("keyed modern", &programs.shared, Modern, MANY)
            .with("tool", "mcp_modern_echo")
            .with("token", &entry.key)
            .through(programs.gateway)
            .to(&modern),
    );
    if let Some(only) = &options.only {
        all.retain(|series| series.name.contains(only.as_str()));
    }
    rounds(options, &all)
}

fn rounds(options: &RunOptions, all: &[Series]) -> anyhow::Result<Results> {
    let mut results = Results::default();
    for round in 0..options.rounds {
        for at in 0..all.len() {
            let series = &all[(at + round) % all.len()];
            let run = series.run(options.seconds)?;
            eprintln!(
                "round {} {:20} {:7.0}/s; median {:6.1} us; gateway {:5.1} us",
                round + 1,
                series.name,
                run.figures.rate,
                run.figures.median,
                run.gateway
            );
            results.add(series.name, run);
        }
    }
    if !options.no_counts {
        for series in all {
            if let Some(count) = syscalls::per_call(series)? {
                eprintln!("{:28} {count:5.1} system calls", series.name);
                results.system_calls.insert(series.name, count);
            }
        }
    }
    Ok(results)
}

/// The programs that the load asks.
struct Programs<'a> {
    gateway: u32,
    worker: u32,
    /// The endpoint of Portway with all servers.
    shared: String,
    /// In the order of nginx's ports.
    upstreams: [&'a Upstream; 4],
    portway: &'a Portway,
    nginx: &'a Nginx,
}

impl Programs<'_> {
    /// A tool of one server, through Portway.
    fn http(&self, name: &'static str, era: BenchEra, server: &str, connections: usize) -> Series {
        let series = Series::new(name, &self.shared, era, connections)
            .with("tool", &format!("mcp_{server}_echo"))
            .with("token", TOKEN)
            .through(self.gateway);
        match server {
            "modern" => series.to(self.upstreams[0]),
            "legacy" => series.to(self.upstreams[1]),
            _ => series,
        }
    }

    fn nginx(&self, name: &'static str, era: BenchEra, port: usize, connections: usize) -> Series {
        self.nginx_at("/mcp", name, era, port, connections)
    }

    fn nginx_at(
        &self,
        path: &str,
        name: &'static str,
        era: BenchEra,
        port: usize,
        connections: usize,
    ) -> Series {
        let url = format!("http://{}{path}", self.nginx.addresses[port]);
        Series::new(name, &url, era, connections)
            .through(self.worker)
            .to(self.upstreams[port])
    }

    fn direct(&self, name: &'static str, era: BenchEra, port: usize, connections: usize) -> Series {
        let upstream = self.upstreams[port];
        Series::new(name, &upstream.url(), era, connections).to(upstream)
    }

    fn calls(&self) -> Vec<Series> {
        let large = |series: Series| series.with("result-bytes", LARGE);
        vec![
            self.direct("direct modern", Modern, 0, MANY),
            self.http("http modern", Modern, "modern", MANY),
            self.nginx("nginx modern", Modern, 0, MANY),
            self.direct("direct legacy", Legacy, 1, MANY),
            self.http("http legacy", Legacy, "legacy", MANY),
            self.nginx("nginx legacy", Legacy, 1, MANY),
            self.http("cross modern", Modern, "legacy", MANY),
            self.http("cross legacy", Legacy, "modern", MANY),
            self.http("128 http modern", Modern, "modern", CROWD),
            self.nginx("128 nginx modern", Modern, 0, CROWD),
            self.http("128 http legacy", Legacy, "legacy", CROWD),
            self.nginx("128 nginx legacy", Legacy, 1, CROWD),
            self.direct("1 direct", Modern, 0, 1),
            self.http("1 http", Modern, "modern", 1),
            self.nginx("1 nginx", Modern, 0, 1),
            self.http("1 stdio", Modern, "pipe", 1),
            large(self.http("large http modern", Modern, "modern", 4)),
            large(self.nginx("large nginx modern", Modern, 0, 4)),
            large(self.nginx_at(BUFFERED, "large nginx buffered", Modern, 0, 4)),
            large(self.http("large http legacy", Legacy, "legacy", 4)),
            large(self.nginx("large nginx legacy", Legacy, 1, 4)),
            self.http("stdio modern", Modern, "pipe", MANY),
            self.http("128 stdio modern", Modern, "pipe", CROWD),
            self.http("stdio legacy", Legacy, "oldpipe", MANY),
            self.http("128 stdio legacy", Legacy, "oldpipe", CROWD),
        ]
    }

    /// Lists of one server with many tools.
    fn lists(&self) -> Vec<Series> {
        let list = |series: Series| series.with("what", "list");
        let http = |name, server: &str, port: usize| {
            let url = self.portway.url(&format!("/servers/{server}/mcp"));
            list(Series::new(name, &url, Modern, MANY))
                .with("token", TOKEN)
                .through(self.gateway)
                .to(self.upstreams[port])
        };
        vec![
            list(self.direct("list 100 direct", Modern, 2, MANY)),
            http("list 100 http", "hundred", 2),
            list(self.nginx("list 100 nginx", Modern, 2, MANY)),
            list(self.direct("list 1000 direct", Modern, 3, MANY)),
            http("list 1000 http", "thousand", 3),
            list(self.nginx("list 1000 nginx", Modern, 3, MANY)),
        ]
    }

    fn sessions(&self) -> Vec<Series> {
        let sessions = |series: Series| series.with("what", "session");
        vec![
            sessions(self.direct("session direct", Legacy, 1, MANY)),
            sessions(self.http("session http", Legacy, "legacy", MANY)),
            sessions(self.nginx("session nginx", Legacy, 1, MANY)),
        ]
    }
}
