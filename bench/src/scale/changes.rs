//! The time from a change to the first list that shows it.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;

use super::ScaledGateway;
use crate::blocking::BlockingClient;
use crate::figures::Spread;
use crate::lab::{PATIENCE, TOKEN};

const CHANGES: usize = 4;
const PATH: &str = "/mcp";

/// Milliseconds.
#[derive(Clone, Copy)]
pub struct ChangeTimes {
    /// A server announces another list of tools.
    pub tool: f64,
    /// A binding is switched over REST.
    pub binding: f64,
    /// A server is registered or removed over REST.
    pub server: f64,
}

pub fn measure(gateway: &ScaledGateway<'_>) -> anyhow::Result<ChangeTimes> {
    let mut admin = gateway.portway.client(TOKEN)?;
    let mut lists = gateway.portway.client(TOKEN)?;
    lists.open_session(PATH)?;
    let tool = median(&mut lists, "mcp_pipe_toggled", true, |lists, _| {
        lists.call(PATH, "mcp_pipe_toggle")
    })?;
    let server = median(&mut lists, "mcp_added_echo", true, |_, add| {
        if add {
            let url = gateway.upstream.url();
            let body = json!({"name": "added", "url": url}).to_string();
            admin.expect("POST", "/api/mcp/servers", &body)?;
        } else {
            admin.expect("DELETE", "/api/mcp/servers/added", "")?;
        }
        Ok(())
    })?;
    let entry = &gateway.entry;
    let mut lists = gateway.portway.client(&entry.key)?;
    lists.open_session(PATH)?;
    let path = format!("/api/v1/mcp_v2/{}/bindings/{}", entry.id, entry.tool);
    let binding = median(&mut lists, "echo_1", false, |_, enable| {
        let body = json!({"status": enable}).to_string();
        admin.expect("PATCH", &path, &body)?;
        Ok(())
    })?;
    Ok(ChangeTimes {
        tool,
        binding,
        server,
    })
}

/// Makes a tool appear and disappear in turn, beginning with `first`.
fn median(
    lists: &mut BlockingClient,
    tool: &str,
    first: bool,
    mut change: impl FnMut(&mut BlockingClient, bool) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for number in 0..CHANGES {
        let expected = (number % 2 == 0) == first;
        ensure!(lists.lists(PATH, tool)? != expected, "{tool}: already so");
        let start = Instant::now();
        change(lists, expected)?;
        while lists.lists(PATH, tool)? != expected {
            ensure!(
                start.elapsed() < PATIENCE,
                "{tool}: no list shows the change"
            );
            std::thread::sleep(Duration::from_micros(500));
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Spread::of(times).median)
}
