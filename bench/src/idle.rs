//! The memory of clients that are connected and do nothing, in Portway and in
//! nginx, and what is left of it when they are gone.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::BenchEra;
use crate::blocking::BlockingClient;
use crate::lab::{BenchServers, Nginx, Portway, TOKEN, Upstream, resident};
use crate::table::MemoryRow;

/// Enough that the 8 MiB of free memory that Portway keeps do not hide them.
const CLIENTS: usize = 5_000;
/// The first clients of a kind also pay for what all of them share.
const FIRST: usize = 50;
/// The time for a program to return memory.
const RETURN: Duration = Duration::from_secs(45);
/// The time after which a program has returned the memory of the requests that
/// opened the clients.
const PAUSE: Duration = Duration::from_secs(12);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IdleKind {
    /// A connection that has had one answer.
    Connection,
    /// A session in use, on a connection shared by all.
    Session,
    /// A session with its GET stream on a connection of its own.
    Stream,
}

pub const STREAM: &str = "idle session with its stream";

pub fn measure(portway: &Path, nginx: &str) -> anyhow::Result<Vec<MemoryRow>> {
    let kinds = [
        (IdleKind::Connection, "idle connection"),
        (IdleKind::Session, "session without a connection"),
        (IdleKind::Stream, STREAM),
    ];
    let mut rows = Vec::new();
    for (kind, what) in kinds {
        let (bytes, left) = in_portway(portway, kind)?;
        // nginx has no sessions.
        let nginx = match kind {
            IdleKind::Session => None,
            _ => Some(in_nginx(nginx, kind)?),
        };
        eprintln!("{what}: {bytes:.0} bytes, {left:.0} left; nginx {nginx:.0?}");
        rows.push(MemoryRow {
            what,
            bytes,
            left: Some(left),
            nginx,
        });
    }
    Ok(rows)
}

fn in_portway(binary: &Path, kind: IdleKind) -> anyhow::Result<(f64, f64)> {
    let servers = BenchServers::default().stdio("pipe", BenchEra::Legacy)?;
    let portway = Portway::start(binary, servers, &[])?;
    let pid = portway.process.pid();
    let (each, before, clients) = held(&portway.address, pid, kind)?;
    drop(clients);
    let start = Instant::now();
    let mut left = each;
    while left > each / 10.0 && start.elapsed() < RETURN {
        std::thread::sleep(Duration::from_millis(100));
        left = ((resident(pid)? - before) / CLIENTS as f64).max(0.0);
    }
    Ok((each, left))
}

fn in_nginx(binary: &str, kind: IdleKind) -> anyhow::Result<f64> {
    let upstream = Upstream::with_streams()?;
    let nginx = Nginx::start(binary, &[&upstream])?;
    let address = nginx.addresses[0].to_string();
    Ok(held(&address, nginx.worker()?, kind)?.0)
}

/// Bytes per client, the memory before them, and the clients.
fn held(
    address: &str,
    pid: u32,
    kind: IdleKind,
) -> anyhow::Result<(f64, f64, Vec<BlockingClient>)> {
    let first = hold(address, &[TOKEN], kind, FIRST)?;
    let before = resident(pid)?;
    let mut clients = hold(address, &[TOKEN], kind, CLIENTS)?;
    std::thread::sleep(PAUSE);
    let each = (resident(pid)? - before) / CLIENTS as f64;
    clients.extend(first);
    for client in &clients {
        ensure!(client.is_open()?, "a client was disconnected");
    }
    Ok((each, before, clients))
}

/// Idle clients, with each of the tokens in turn.
pub fn hold(
    address: &str,
    tokens: &[&str],
    kind: IdleKind,
    count: usize,
) -> anyhow::Result<Vec<BlockingClient>> {
    let mut clients = Vec::new();
    for token in tokens.iter().cycle().take(count) {
        let mut client = match (kind, clients.pop()) {
            (IdleKind::Session, Some(shared)) => shared,
            (_, last) => {
                clients.extend(last);
                BlockingClient::connect(address, token)?
            }
        };
        if kind != IdleKind::Connection {
            client.open_session("/mcp")?;
        }
        client.ping("/mcp")?;
        if kind == IdleKind::Stream {
            client.open_stream("/mcp")?;
        }
        clients.push(client);
    }
    Ok(clients)
}
