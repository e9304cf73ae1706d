//! Lists that change while Portway looks on.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;

use super::remote::{Remote, node};
use super::{get, texts, tool, with};
use crate::app::App;

/// Another client, of no consequence, has the server change its tools.
async fn change(server: &Remote) {
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
    let mut command = node(&tool("tools/conformance-upstream/server.mjs"));
    let server = Remote::start(command.args(["--port", "0", "--sse"])).await;
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
    for there in [true, false] {
        change(&server).await;
        for (name, _) in &servers {
            until_extra(&app, name, there).await;
        }
    }
}
