//! The time from the start of Portway, in a new directory, to the first list
//! with the tool of its one server.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::BenchEra;
use crate::figures::Spread;
use crate::lab::{BenchServers, PATIENCE, Portway, TOKEN};

/// Milliseconds.
pub fn measure(portway: &Path, starts: usize) -> anyhow::Result<Spread> {
    let mut times = Vec::new();
    for _ in 0..starts {
        times.push(one(portway)?.as_secs_f64() * 1e3);
    }
    let times = Spread::of(times);
    eprintln!("start to the first list: {} ms", times.show(1));
    Ok(times)
}

fn one(binary: &Path) -> anyhow::Result<Duration> {
    let servers = BenchServers::default().stdio("pipe", BenchEra::Legacy)?;
    let project = tempfile::tempdir()?;
    let start = Instant::now();
    let portway = Portway::spawn(project, binary, servers, &[])?;
    let mut client = portway.client(TOKEN)?;
    client.open_session("/mcp")?;
    while !client.lists("/mcp", "mcp_pipe_echo")? {
        ensure!(start.elapsed() < PATIENCE, "the server does not start");
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(start.elapsed())
}
