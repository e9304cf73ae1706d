//! Servers of others (SPEC C1 to C3, A3, A11): the reference servers and the
//! official SDKs that `make tools` installs. Their code judges ours.

mod changes;
mod clients;
mod connect;
mod everything;
mod npx;
mod reference;
mod remote;
mod sdks;
mod tree;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::app::{App, Setup, setup};

/// No server of these is ever sent a SIGTERM: one that ends before this has
/// obeyed the end of its stdin. The answer to a stop waits half a minute.
const GRACE: &str = "600s";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of `tests/tools`, or one that they install into `tests/.tools`.
fn tool(path: &str) -> String {
    let path: PathBuf = repository().join("tests").join(path);
    assert!(
        path.exists(),
        "{} is missing: run `make tools`",
        path.display()
    );
    path.display().to_string()
}

/// A program that npm installed.
fn npm(name: &str) -> String {
    tool(&format!(".tools/node/node_modules/.bin/{name}"))
}

/// What a server lists.
#[derive(Clone, Copy)]
struct ExpectedLists {
    tools: &'static [&'static str],
    resources: usize,
    templates: usize,
    prompts: usize,
}

impl ExpectedLists {
    const fn tools(tools: &'static [&'static str]) -> ExpectedLists {
        ExpectedLists {
            tools,
            resources: 0,
            templates: 0,
            prompts: 0,
        }
    }
}

/// Portway with these servers in its `.mcp.json`.
fn with(servers: &[(String, Value)]) -> Setup {
    let servers: serde_json::Map<_, _> = servers.iter().cloned().collect();
    setup()
        .mcp(json!({ "mcpServers": servers }))
        .env("PORTWAY_STOP_GRACE", GRACE)
}

/// Waits until it is connected and compares all it has with what it must.
async fn check(app: &App, name: &str, era: &str, lists: ExpectedLists) -> Value {
    let record = settled(app, name).await;
    assert_eq!(record["status"], "connected", "{record:#}");
    assert_eq!(record["era"], era, "{name}");
    let version = match era {
        "modern" => "2026-07-28",
        _ => "2025-11-25",
    };
    assert_eq!(record["protocolVersion"], version, "{name}");
    assert!(record["serverInfo"]["name"].is_string(), "{record:#}");

    let tools = get(app, name, "tools").await;
    assert_eq!(texts(&tools, "name"), lists.tools, "{name}");
    assert_eq!(record["toolCount"], lists.tools.len(), "{name}");
    for tool in &tools {
        let key = format!("{name}:{}", tool["name"].as_str().unwrap());
        assert_eq!(tool["key"], key.as_str());
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool:#}");
    }
    let resources = get(app, name, "resources").await;
    let found = (
        texts(&resources, "uri").len(),
        texts(&resources, "uriTemplate").len(),
        get(app, name, "prompts").await.len(),
    );
    let wanted = (lists.resources, lists.templates, lists.prompts);
    assert_eq!(found, wanted, "{name}: resources, templates, prompts");
    record
}

/// The record once a start has come to something.
async fn settled(app: &App, name: &str) -> Value {
    let done = |record: &Value| record["status"] == "connected" || record["status"] == "error";
    app.until(name, done).await
}

async fn get(app: &App, name: &str, list: &str) -> Vec<Value> {
    let path = format!("/api/mcp/servers/{name}/{list}");
    let body = app.get(&path).await.expect(200);
    body.as_array().unwrap().clone()
}

/// The members of that name, of those that have it.
fn texts<'a>(items: &'a [Value], member: &str) -> Vec<&'a str> {
    let text = |item: &'a Value| item.get(member)?.as_str();
    items.iter().filter_map(text).collect()
}

/// Stops a server and says how long that took.
async fn stop(app: &App, name: &str) -> Duration {
    let start = Instant::now();
    let path = format!("/api/mcp/servers/{name}/stop");
    let record = app.post(&path, json!({})).await.expect(200);
    assert_eq!(record["status"], "disconnected", "{record:#}");
    assert_eq!(record["state"], "stopped", "{record:#}");
    assert!(record["pid"].is_null(), "{record:#}");
    start.elapsed()
}
