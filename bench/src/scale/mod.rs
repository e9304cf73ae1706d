//! The cost of a call, of a list and of a change as one thing after another
//! grows: servers, tools, entries, connected clients. Each size has a gateway
//! of its own. The calls go to a server over stdio; the other servers are names
//! for one process over HTTP.

mod changes;
pub mod report;

use anyhow::{Context, ensure};

use crate::BenchEra::Legacy;
use crate::entries::{self, FilledEntry};
use crate::figures::Spread;
use crate::idle::{IdleKind, hold};
use crate::lab::{BenchServers, Portway, TOKEN, Upstream, resident};
use crate::run::RunOptions;
use crate::series::Series;
use crate::table::MemoryRow;
use changes::ChangeTimes;

const CONNECTIONS: usize = 16;
/// The tools of the server, unless their number is what grows.
const TOOLS: usize = 10;
const ROUNDS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Servers,
    Tools,
    Entries,
    Clients,
}

impl Axis {
    pub const ALL: [Axis; 4] = [Axis::Servers, Axis::Tools, Axis::Entries, Axis::Clients];

    fn sizes(self) -> &'static [usize] {
        match self {
            Axis::Servers => &[1, 10, 100, 1_000],
            Axis::Tools => &[10, 100, 1_000, 10_000],
            Axis::Entries | Axis::Clients => &[1, 10, 100, 1_000, 10_000],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Axis::Servers => "servers",
            Axis::Tools => "tools",
            Axis::Entries => "entries",
            Axis::Clients => "clients",
        }
    }

    /// One of the things, as the table of memory names it.
    fn one(self) -> &'static str {
        match self {
            Axis::Servers => "server over HTTP with one tool",
            Axis::Tools => "tool of 260 bytes",
            Axis::Entries => "entry with 20 bindings",
            Axis::Clients => "one of 10,000 sessions with their streams",
        }
    }
}

pub struct ScalePoint {
    pub axis: Axis,
    pub size: usize,
    /// CPU time of the gateway in µs.
    pub call: f64,
    pub list: f64,
    pub changes: ChangeTimes,
    /// Bytes of memory before the first call.
    resident: f64,
}

pub fn measure(options: &RunOptions) -> anyhow::Result<Vec<ScalePoint>> {
    let upstream = Upstream::start(Legacy)?;
    let mut points = Vec::new();
    for axis in Axis::ALL {
        for size in axis.sizes() {
            let context = || format!("{size} {}", axis.name());
            let point = point(options, &upstream, axis, *size).with_context(context)?;
            eprintln!(
                "{:14} call {:6.1} us, list {:8.1} us; tool {:6.1} ms, binding {:6.1} ms, \
                 server {:6.1} ms; {:.1} MB",
                context(),
                point.call,
                point.list,
                point.changes.tool,
                point.changes.binding,
                point.changes.server,
                point.resident / 1e6
            );
            points.push(point);
        }
    }
    Ok(points)
}

/// A gateway of one size, with everything that uses it.
struct ScaledGateway<'a> {
    portway: Portway,
    upstream: &'a Upstream,
    entry: FilledEntry,
}

fn point(
    options: &RunOptions,
    upstream: &Upstream,
    axis: Axis,
    size: usize,
) -> anyhow::Result<ScalePoint> {
    let of = |grown: Axis, otherwise: usize| if axis == grown { size } else { otherwise };
    let tools = of(Axis::Tools, TOOLS).to_string();
    let mut servers =
        BenchServers::default().stdio_with("pipe", Legacy, &["--changing", "--tools", &tools])?;
    for number in 1..of(Axis::Servers, 1) {
        servers = servers.http(&format!("s{number}"), upstream);
    }
    let project = tempfile::tempdir()?;
    let entry = entries::fill(project.path(), "pipe", of(Axis::Entries, 1))?;
    let portway = Portway::spawn(project, &options.portway, servers, &[])?;
    portway.until_settled()?;
    let gateway = ScaledGateway {
        portway,
        upstream,
        entry,
    };
    let pid = gateway.portway.process.pid();
    // One user or entry may have half of the connections.
    let tokens = [TOKEN, &gateway.entry.key];
    let clients = of(Axis::Clients, 0);
    let clients = hold(&gateway.portway.address, &tokens, IdleKind::Stream, clients)?;
    let resident = resident(pid)?;
    let token = if axis == Axis::Entries {
        &gateway.entry.key
    } else {
        TOKEN
    };
    let seconds = options.seconds.min(0.5);
    let cost = |what: &str| {
        let series = Series::new("scale", &gateway.portway.url("/mcp"), Legacy, CONNECTIONS)
            .with("tool", "mcp_pipe_echo")
            .with("token", token)
            .with("what", what)
            .through(pid);
        let runs = (0..ROUNDS).map(|_| Ok(series.run(seconds)?.gateway));
        let runs: Vec<f64> = runs.collect::<anyhow::Result<_>>()?;
        anyhow::Ok(Spread::of(runs).median)
    };
    let (call, list) = (cost("call")?, cost("list")?);
    let changes = changes::measure(&gateway)?;
    for client in &clients {
        ensure!(client.is_open()?, "a client was disconnected");
    }
    Ok(ScalePoint {
        axis,
        size,
        call,
        list,
        changes,
        resident,
    })
}

/// The memory of one thing: the difference between the least and the greatest
/// size.
pub fn memory(points: &[ScalePoint]) -> Vec<MemoryRow> {
    let row = |axis: Axis| {
        let mut of_axis = points.iter().filter(|point| point.axis == axis);
        let (first, last) = (of_axis.next()?, of_axis.next_back()?);
        Some(MemoryRow {
            what: axis.one(),
            bytes: (last.resident - first.resident) / (last.size - first.size) as f64,
            left: None,
            nginx: None,
        })
    };
    Axis::ALL.into_iter().filter_map(row).collect()
}
