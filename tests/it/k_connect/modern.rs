//! Clients whose every request stands alone.

use serde_json::json;

use super::{CANCELLED, RUNS, StdioClient, command, error, heard, recorded, text, with_envelope};
use crate::app::{fixtures, setup};
use crate::mcp_front::portway;

#[tokio::test]
async fn k5_a_modern_client_discovers_lists_and_calls() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &[]);
    let found = client.ask_modern("server/discover", json!({})).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let list = client.ask_modern("tools/list", json!({})).await;
    assert_eq!(list["result"]["resultType"], "complete");
    let params = json!({"name": "mcp_x_echo", "arguments": {"text": "ü"}});
    assert_eq!(text(&client.ask_modern("tools/call", params).await), "ü");
    let unknown = client.ask_modern("tools/none", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let list = client.ask_modern("resources/list", json!({})).await;
    let uri = &list["result"]["resources"][0]["uri"];
    let read = json!({"uri": uri});
    let read = client.ask_modern("resources/read", read).await;
    assert!(read.get("result").is_some(), "{read}");
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn k5_headers_follow_schemas_that_were_never_listed() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    // The schema wants Mcp-Param-Region, and nobody has read it yet.
    for region in ["eu-1", "ü ", "again"] {
        let params = json!({"name": "region", "arguments": {"region": region}});
        let answer = client.ask_modern("tools/call", params).await;
        assert_eq!(text(&answer), region);
    }
}

#[tokio::test]
async fn k5_progress_and_questions_reach_a_modern_client() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    let params = json!({
        "name": "progress", "arguments": {"steps": 3}, "_meta": {"progressToken": 17}
    });
    let answer = client.ask_modern("tools/call", params).await;
    let seen = client.seen();
    assert_eq!(client.count("notifications/progress"), 3);
    assert_eq!(seen.last(), Some(&answer), "the answer is the last word");

    let call = json!({"name": "elicit", "arguments": {"message": "Who?"}});
    let able = json!({"elicitation": {"form": {}}});
    let asking = with_envelope(call.clone(), able.clone());
    let asked = client.ask("tools/call", asking).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let key = result["inputRequests"].as_object().unwrap().keys().next();
    let mut again = with_envelope(call, able);
    again["inputResponses"] =
        json!({key.unwrap(): {"action": "accept", "content": {"name": "ada", "sure": true}}});
    again["requestState"] = result["requestState"].clone();
    let done = text(&client.ask("tools/call", again).await);
    assert!(done.contains("accept") && done.contains("ada"), "{done}");
}

#[tokio::test]
async fn k5_the_word_of_a_modern_client_that_cancels_hangs_up() {
    let app = recorded().await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    let id = client
        .begin_modern("tools/call", json!({"name": "hang"}))
        .await;
    let params = json!({"requestId": id});
    heard(&app, RUNS).await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    heard(&app, CANCELLED).await;
    assert!(!client.seen().iter().any(|m| m["id"] == id), "no answer");
}

#[tokio::test]
async fn k5_a_subscription_lasts_until_it_is_taken_back() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &[]);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let id = client.begin_modern("subscriptions/listen", filter).await;
    client
        .told("notifications/subscriptions/acknowledged")
        .await;
    let toggle = json!({"name": "mcp_x_toggle_tool"});
    client.ask_modern("tools/call", toggle).await;
    let told = client.told("notifications/tools/list_changed").await;
    let of = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*of, id);

    // It outlives the gateway, and what may have changed is told.
    let before = client.count("notifications/tools/list_changed");
    let app = app.again().await;
    app.until_status("x", "connected").await;
    crate::app::eventually("told to look again", || {
        client.count("notifications/tools/list_changed") > before
    })
    .await;
    assert_eq!(client.count("notifications/subscriptions/acknowledged"), 1);
    let params = json!({"requestId": id});
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    let missing = client.ask_modern("subscriptions/listen", json!({})).await;
    assert!(error(&missing).contains("notifications"), "{missing}");
    assert!(!client.seen().iter().any(|m| m["id"] == id), "no answer");
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn k3_k5_a_running_connect_follows_a_new_token() {
    let app = setup()
        .without("PORTWAY_ADMIN_TOKEN")
        .mcp(fixtures(&[("x", &[])]))
        .start()
        .await;
    let mut command = command(&app.setup, &[]);
    command.env_remove("PORTWAY_ADMIN_TOKEN");
    let mut client = StdioClient::run(command);
    let before = client.ask_modern("tools/list", json!({})).await;
    assert!(before["result"]["tools"].is_array(), "{before}");
    let mut rotate = crate::k_cli::command(app.setup.path(), &["token", "rotate", "--yes"]);
    rotate.env_remove("PORTWAY_ADMIN_TOKEN");
    crate::k_cli::ended(rotate).await.ok();
    let after = client.ask_modern("tools/list", json!({})).await;
    assert!(after["result"]["tools"].is_array(), "{after}");
}
