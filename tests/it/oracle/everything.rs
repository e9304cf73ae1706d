//! server-everything over the network.

use serde_json::json;

use super::reference::EVERYTHING_UNASKED;
use super::remote::{OracleRemote, node};
use super::{check, npm, settled, stop, with};
use crate::mcp_front::legacy;

async fn everything(transport: &str) -> OracleRemote {
    OracleRemote::start(node(&npm("mcp-server-everything")).arg(transport)).await
}

#[tokio::test]
async fn c1_c3_server_everything_over_streamable_http() {
    let server = everything("streamableHttp").await;
    let definition = json!({ "type": "http", "url": server.at("/mcp") });
    let app = with(&[("one".to_owned(), definition)]).start().await;
    let record = check(&app, "one", "legacy", EVERYTHING_UNASKED).await;
    assert_eq!(record["transport"], "http");
    println!(
        "server-everything over HTTP: left in {:?}",
        stop(&app, "one").await
    );
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn c1_c3_server_everything_over_sse() {
    let server = everything("sse").await;
    let url = server.at("/sse");
    let app = with(&[
        ("named".to_owned(), json!({ "type": "sse", "url": url })),
        // As most people write it, and find it works.
        ("found".to_owned(), json!({ "url": url })),
    ])
    .start()
    .await;
    for name in ["named", "found"] {
        check(&app, name, "legacy", EVERYTHING_UNASKED).await;
        println!(
            "server-everything over SSE: left in {:?}",
            stop(&app, name).await
        );
    }
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn c2_server_everything_is_not_modern_and_says_so() {
    let (http, sse) = tokio::join!(everything("streamableHttp"), everything("sse"));
    let servers = [
        ("stdio", json!({ "command": npm("mcp-server-everything") })),
        ("http", json!({ "type": "http", "url": http.at("/mcp") })),
        ("sse", json!({ "type": "sse", "url": sse.at("/sse") })),
    ];
    let servers = servers.map(|(name, mut definition)| {
        definition["era"] = "modern".into();
        (name.to_owned(), definition)
    });
    let app = with(&servers).start().await;
    for (name, _) in &servers {
        let record = settled(&app, name).await;
        let error = record["error"].as_str().unwrap();
        assert!(error.contains("does not speak MCP 2026-07-28"), "{error}");
    }
}

#[tokio::test]
async fn a6_server_everything_comes_back_after_a_restart() {
    let server = everything("streamableHttp").await;
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let definition = json!({ "type": "http", "url": server.at("/mcp") });
    let app = with(&[("one".to_owned(), definition)])
        .env("PORTWAY_HEALTH_INTERVAL", "500ms")
        .start()
        .await;
    check(&app, "one", "legacy", EVERYTHING_UNASKED).await;
    server.kill().await;
    let lost = app
        .until("one", |record| record["status"] != "connected")
        .await;
    assert_eq!(lost["toolCount"], 0, "{lost:#}");
    let mut again = node(&npm("mcp-server-everything"));
    let again = again.arg("streamableHttp").env("PORT", port);
    let _server = OracleRemote::start(again).await;
    app.until_status("one", "connected").await;
    check(&app, "one", "legacy", EVERYTHING_UNASKED).await;
}

#[tokio::test]
async fn i2_a_task_is_not_promised_and_not_begun() {
    let everything = json!({"command": npm("mcp-server-everything")});
    let app = with(&[("one".to_owned(), everything)]).start().await;
    app.until_status("one", "connected").await;
    for (path, prefix) in [("/servers/one/mcp", ""), ("/mcp", "mcp_one_")] {
        let client = legacy(&app, path, "2025-11-25", json!({})).await;
        assert!(
            client.hello["result"]["capabilities"]
                .get("tasks")
                .is_none()
        );
        // As a server without tasks must: `task` is ignored.
        let echo = json!({"name": format!("{prefix}echo"), "arguments": {"message": "hi"},
            "task": {"ttl": 60_000}});
        let answer = client
            .request(1, "tools/call", echo)
            .send()
            .await
            .answer()
            .await;
        assert!(
            answer["result"]["content"][0]["text"].is_string(),
            "{answer}"
        );
        let only = format!("{prefix}simulate-research-query");
        for task in [None, Some(json!({"ttl": 60_000}))] {
            let mut params = json!({"name": only, "arguments": {"topic": "x"}});
            if let Some(task) = task {
                params["task"] = task;
            }
            let refused = client.request(2, "tools/call", params).send().await;
            let refused = refused.answer().await;
            let message = refused["error"]["message"].as_str();
            let message = message.unwrap_or_else(|| panic!("{refused}"));
            assert!(message.contains("only as a task"), "{message}");
        }
    }
}
