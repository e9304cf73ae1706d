//! Messages nested too deep: each fails its own request, and nothing else.

use serde_json::{Value, json};

use super::{X, call, legacy, modern, portway, post, said};
use crate::remote::fixture;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn t_a_request_nested_too_deep_is_refused_by_its_id() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let echo = call("echo", json!({"text": "hi", "more": nested(100)}));
    let body = json!({"jsonrpc": "2.0", "id": "deep", "method": "tools/call", "params": echo});
    for ask in [post(&app, X, &body), client.post(body.clone())] {
        let talk = ask.send().await;
        assert_eq!(talk.status, 400);
        let answer = talk.json().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("deep"), &json!(-32700))
        );
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("64 levels"), "{message}");
    }
    let hi = client.tool(2, "echo", json!({"text": "hi"})).send().await;
    assert_eq!(said(&hi.answer().await), "hi");
}

#[tokio::test]
async fn t_an_answer_nested_too_deep_fails_its_call_alone() {
    let app = portway(&[]).await;
    let remote = fixture(&["--http", "0"]).await;
    let body = json!({"name": "far", "url": remote.url});
    app.post("/api/mcp/servers", body).await.expect(201);
    app.until_status("far", "connected").await;
    let before = app.server("x").await["pid"].clone();
    for server in ["x", "far"] {
        let path = format!("/servers/{server}/mcp");
        let ask = || modern(&app, &path, "tools/call", call("deep", json!({})));
        // More often than lines that are no messages would be put up with.
        for _ in 0..120 {
            let answer = ask().send().await.answer().await;
            let message = answer["error"]["message"].as_str();
            let message = message.unwrap_or_else(|| panic!("{answer}"));
            assert!(message.contains("64 levels"), "{message}");
        }
        let hi = modern(
            &app,
            &path,
            "tools/call",
            call("echo", json!({"text": "hi"})),
        );
        assert_eq!(said(&hi.send().await.answer().await), "hi");
        let fits = modern(
            &app,
            &path,
            "tools/call",
            call("deep", json!({"levels": 20})),
        );
        assert_eq!(said(&fits.send().await.answer().await), "deep");
    }
    assert_eq!(app.server("x").await["pid"], before);
}
