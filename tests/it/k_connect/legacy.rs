//! Clients of the handshake.

use serde_json::json;

use super::{CANCELLED, RUNS, StdioClient, heard, recorded, text};
use crate::app::eventually;
use crate::mcp_front::portway;

#[tokio::test]
async fn k5_a_legacy_client_lists_and_calls() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &[]);
    let hello = client.hello("2025-11-25", json!({})).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(hello["result"]["serverInfo"]["name"], "portway");
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    let list = client.ask("tools/list", json!({})).await;
    let names: Vec<_> = list["result"]["tools"].as_array().unwrap().iter().collect();
    assert!(names.iter().any(|tool| tool["name"] == "mcp_x_echo"));
    assert_eq!(client.call("mcp_x_echo", json!({"text": "ü"})).await, "ü");
    let unknown = client.ask("tools/call", json!({"name": "no_such"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(client.log().is_empty(), "{}", client.log());
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn k5_what_comes_during_a_call_comes_before_its_answer() {
    let app = portway(&[]).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
        let hello = client.hello(version, json!({})).await;
        assert_eq!(hello["result"]["protocolVersion"], version);
        let params = json!({
            "name": "progress", "arguments": {"steps": 5}, "_meta": {"progressToken": "tok"}
        });
        let answer = client.ask("tools/call", params).await;
        assert!(answer.get("result").is_some(), "{answer}");
        let seen = client.seen();
        let steps = seen
            .iter()
            .filter(|m| m["params"]["progressToken"] == "tok");
        assert_eq!(steps.count(), 5, "{version}: {seen:?}");
        assert_eq!(seen.last(), Some(&answer), "the answer is the last word");
    }
}

#[tokio::test]
async fn k5_a_question_reaches_a_legacy_client_and_its_answer_the_server() {
    let app = portway(&["--era", "legacy"]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client
        .hello("2025-11-25", json!({"elicitation": {"form": {}}}))
        .await;
    let call = json!({"name": "elicit", "arguments": {"message": "Who?"}});
    let id = client.begin("tools/call", call).await;
    let question = client.told("elicitation/create").await;
    assert_eq!(question["params"]["message"], "Who?");
    let accepted = json!({"action": "accept", "content": {"name": "ada", "sure": true}});
    client
        .send(json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted}))
        .await;
    let said = text(&client.answer(id).await);
    assert!(said.contains("accept") && said.contains("ada"), "{said}");
}

#[tokio::test]
async fn k5_a_legacy_client_cancels_by_saying_so() {
    let app = recorded().await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-11-25", json!({})).await;
    let mut ids = Vec::new();
    for at_once in [false, true, true, true] {
        let id = client.begin("tools/call", json!({"name": "hang"})).await;
        if !at_once {
            heard(&app, RUNS).await;
        }
        let params = json!({"requestId": id, "reason": "enough"});
        client
            .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await;
        ids.push(id);
        heard(&app, CANCELLED).await;
        assert_eq!(client.call("echo", json!({"text": "a"})).await, "a");
    }
    // Those that were sent before they were taken back are cancelled there.
    eventually("none runs", || {
        let record = std::fs::read_to_string(app.path("record")).unwrap();
        let count = |what: &str| record.lines().filter(|line| line.contains(what)).count();
        let sent = record
            .lines()
            .filter(|line| line.contains(RUNS) && !line.contains(CANCELLED));
        sent.count() == count(CANCELLED)
    })
    .await;
    let answered = |m: &serde_json::Value| ids.contains(&m["id"]);
    assert!(!client.seen().iter().any(answered), "no answer");
}

#[tokio::test]
async fn k5_changes_reach_a_legacy_client() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &[]);
    client.hello("2025-11-25", json!({})).await;
    // The stream is opened beside the first requests.
    let start = tokio::time::Instant::now();
    while client.count("notifications/tools/list_changed") == 0 {
        client.call("mcp_x_toggle_tool", json!({})).await;
        assert!(start.elapsed() < crate::app::PATIENCE);
    }
}

#[tokio::test]
async fn k5_k4_what_a_legacy_client_sends_too_early_is_served() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &[]);
    let bare = client.ask("tools/list", json!({})).await;
    assert!(bare["result"]["tools"].is_array(), "{bare}");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "hasty", "version": "1"}
    });
    let hello = client.begin("initialize", params).await;
    let list = client.begin("tools/list", json!({})).await;
    assert!(client.answer(list).await["result"]["tools"].is_array());
    assert!(client.answer(hello).await.get("result").is_some());
}

#[tokio::test]
async fn k5_batches_pass_where_the_revision_has_them() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &[]);
    client.hello("2025-03-26", json!({})).await;
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    client.send(json!([ping(1), ping(2)])).await;
    let both = client.until("the batch", |m| m.is_array()).await;
    assert_eq!(both.as_array().unwrap().len(), 2);
    client.send(json!([])).await;
    client
        .until("a refusal", |m| m["error"]["code"] == -32600)
        .await;
}
