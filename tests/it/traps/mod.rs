//! What a naive gateway gets wrong, each with a test that carries its number.
//!
//! | trap | proved by |
//! |---|---|
//! | 1 era by method or header | `mcp_front::traps::trap01_…` |
//! | 2 stray sessions; no handshake with a legacy server | `mcp_front::traps::trap02_…`, `upstream::trap02_…` |
//! | 3 falling back after an outage | `upstream::http::tests::probe::c2_trap03_…` |
//! | 4 probing with a real call | `upstream::trap04_…` |
//! | 5 servers that exit at the probe, or are silent | `c_connections::c2_trap05_…` (2) |
//! | 6 headers of another name | `upstream::trap06_…` |
//! | 7 annotations nobody can follow | `wire::schema` and `gateway::view::entry`: `trap07_…` |
//! | 8 `resultType` in the wrong era | `mcp_front::traps::trap08_…`, `wire::result`: `trap08_…` |
//! | 9 what hanging up means | `mcp_front::disconnect::trap09_…` (2) |
//! | 10 layout on lines and events | `mcp_front::traps::trap10_…`, `fidelity::d3_…` |
//! | 11 ids and tokens that collide | `meetings::trap11_…` (3) |
//! | 12 one shared process that asks | `c_isolation::c7_trap12_…` (3) |
//! | 13 running a call twice | `bridge::trap13_…`, `upstream::http::tests`: `c6_trap13_…` (2) |
//! | 14 rounds that pile up | `bridge::trap14_…` (2) |
//! | 15 capabilities the client lacks | `bridge::trap15_…` (2), `gateway::ability`: `trap15_…` |
//! | 16 no stream to ask on | `mcp_front::traps::trap16_…` |
//! | 17 telling everybody | `mcp_front::modern_traps::trap17_…` |
//! | 18 lists shared between keys | `lists::trap18_…` |
//! | 19 lists in another order | `lists::trap19_…` |
//! | 20 cursors | `lists::trap20_…` (2), `gateway::view`: `trap20_…` |
//! | 21 codes of the other era or hop | `upstream::trap21_…`, `wire::result`: `trap21_…` |
//! | 22 unknown methods | `mcp_front::modern_traps::trap22_…` |
//! | 23 empty events | `mcp_front::traps::trap23_…`, `wire::sse` |
//! | 24 an endpoint on another origin | `upstream::http::tests::sse::g3_trap24_…` |
//! | 25 tools that lose what is unknown | `lists::trap25_…` |
//! | 26 waiting for `initialized` | `mcp_front::traps::trap26_…` |
//! | 27 waiting for a GET stream | `mcp_front::traps::trap27_…` |
//! | 28 orphans; stderr that fills up | `process::end::a3_trap28_…`, `a_logs::a12_trap28_…` |
//! | 29 limits shorter than a person | `bridge::trap29_…`, `mcp_front::streams::k4_quiet_streams_…` |
//! | 30 trusting what peers say of themselves | `upstream::trap30_…` (2) |
//! | 31 batches | `mcp_front::traps::trap31_…` |
//! | 32 the client's credentials | `mcp_front::traps::trap32_…` |

mod bridge;
mod lists;
mod meetings;
mod upstream;

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::app::{App, fixture, setup};
use crate::remote::RemoteFixture;

/// A file where a fixture notes what reaches it.
pub(crate) struct FixtureLog {
    _dir: TempDir,
    path: PathBuf,
}

impl FixtureLog {
    pub(crate) fn new() -> FixtureLog {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        FixtureLog { _dir: dir, path }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The lines about one method, in order.
    pub(crate) fn of(&self, method: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["message"]["method"] == method);
        lines
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let lines = self.lines();
        let method = |line: &Value| line["message"]["method"].as_str().map(str::to_owned);
        lines.iter().filter_map(method).collect()
    }
}

/// Portway before one fixture `x`, a process or a remote server.
pub(crate) struct TrapGateway {
    pub app: App,
    _remote: Option<RemoteFixture>,
}

/// `http` puts the fixture behind Streamable HTTP.
pub(crate) async fn rig(http: bool, args: &[&str]) -> TrapGateway {
    rig_with(http, args, json!({})).await
}

/// As `rig`, with more in the server's definition.
pub(crate) async fn rig_with(http: bool, args: &[&str], more: Value) -> TrapGateway {
    let (remote, mut server) = if http {
        let args: Vec<&str> = ["--http", "0"].iter().chain(args).copied().collect();
        let remote = crate::remote::fixture(&args).await;
        let server = json!({"url": remote.url});
        (Some(remote), server)
    } else {
        (None, json!({"command": fixture(), "args": args}))
    };
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    let app = setup()
        .mcp(json!({"mcpServers": {"x": server}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    TrapGateway {
        app,
        _remote: remote,
    }
}
