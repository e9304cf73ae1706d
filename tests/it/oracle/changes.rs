//! Lists that change while Portway looks on.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;

use super::remote::{OracleRemote, node};
use super::{get, texts, tool, with};
use crate::app::{App, eventually};

/// Another client, of no consequence, has the server change its tools.
async fn change(server: &OracleRemote) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "test_trigger_tool_change", "arguments": {}, "_meta": meta },
    });
    let request = http::Request::post(server.at("/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "test_trigger_tool_change")
        .body(Full::<Bytes>::from(body.to_string()))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer: http::Response<_> = client.request(request).await.unwrap();
    let status = answer.status();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(status.is_success(), "{status}: {text:?}");
}

async fn until_extra(app: &App, name: &str, there: bool) {
    let count = if there { 33 } else { 32 };
    app.until(name, |record| record["toolCount"] == count).await;
    let tools = get(app, name, "tools").await;
    assert_eq!(texts(&tools, "name").contains(&"test_extra_tool"), there);
}

#[tokio::test]
async fn c3_d1_a_changed_list_is_listed_again_in_both_eras() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests");
    let mut command = node(&tool("tools/conformance-upstream/server.mjs"));
    command.args(["--port", "0", "--sse", "--log", log.to_str().unwrap()]);
    let server = OracleRemote::start(&mut command).await;
    let servers = [
        (
            "legacy",
            json!({ "url": server.at("/mcp"), "era": "legacy" }),
        ),
        (
            "modern",
            json!({ "url": server.at("/mcp"), "era": "modern" }),
        ),
        ("sse", json!({ "url": server.at("/sse"), "type": "sse" })),
    ];
    let servers = servers.map(|(name, definition)| (name.to_owned(), definition));
    let app = with(&servers).start().await;
    for (name, _) in &servers {
        until_extra(&app, name, false).await;
    }
    // A legacy server tells only those who already listen.
    let listens = r#""http":"GET","path":"/mcp""#;
    let requests = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("Portway listens", || requests().contains(listens)).await;
    for there in [true, false] {
        change(&server).await;
        for (name, _) in &servers {
            until_extra(&app, name, there).await;
        }
    }
}

/// A server that gets a second tool just before it begins to tell of such
/// things.
const LATE: &str = r#"
import json, sys
TOOL = {"inputSchema": {"type": "object"}}
listening = False
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match request["method"]:
        case "server/discover":
            result["supportedVersions"] = ["2026-07-28"]
            result["capabilities"] = {"tools": {"listChanged": True}}
        case "tools/list":
            names = ["early", "late"] if listening else ["early"]
            result["tools"] = [{"name": name, **TOOL} for name in names]
        case "subscriptions/listen":
            listening = True
            subscription = {"io.modelcontextprotocol/subscriptionId": request["id"]}
            say({"method": "notifications/subscriptions/acknowledged",
                 "params": {"notifications": {"toolsListChanged": True}, "_meta": subscription}})
            continue
    if "id" in request:
        say({"id": request["id"], "result": result})
"#;

#[tokio::test]
async fn c3_what_changed_before_anybody_listened_is_found() {
    let definition = json!({ "command": "python3", "args": ["-c", LATE] });
    let app = with(&[("one".to_owned(), definition)]).start().await;
    app.until("one", |record| record["toolCount"] == 2).await;
    let tools = get(&app, "one", "tools").await;
    assert_eq!(texts(&tools, "name"), ["early", "late"]);
}
