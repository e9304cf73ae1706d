//! The traps of a naive gateway, on the side of its modern clients.

use serde_json::{Value, json};

use super::{X, call, legacy, modern, portway, said};
use crate::app::{PATIENCE, fixtures, setup};

#[tokio::test]
async fn trap17_a_notification_goes_to_one_stream() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    client.notify("notifications/initialized", json!({})).await;
    let mut own = client.listen().send().await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = modern(&app, X, "subscriptions/listen", listen).send().await;
    let (_, acknowledged) = listening.message().await.unwrap();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );

    // A call that runs meanwhile, of either era, hears nothing of it.
    let slow = json!({"name": "progress", "arguments": {"steps": 3, "ms": 700},
        "_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}});
    let mut old = client.request(1, "tools/call", slow.clone()).send().await;
    let mut new = modern(&app, X, "tools/call", slow).send().await;
    let toggled = modern(&app, X, "tools/call", call("toggle_tool", json!({})));
    drop(toggled.send().await.answer().await);
    for talk in [&mut old, &mut new] {
        while let Some((_, message)) = talk.message().await {
            let method = message["method"].as_str().unwrap_or("answer");
            assert!(
                ["answer", "notifications/progress"].contains(&method),
                "{message}"
            );
        }
    }
    // Each listener hears of it once, and of nothing else.
    let logged = modern(&app, X, "tools/call", call("log", json!({"message": "x"})));
    assert_eq!(said(&logged.send().await.answer().await), "logged");
    let again = modern(&app, X, "tools/call", call("toggle_tool", json!({})));
    drop(again.send().await.answer().await);
    for talk in [&mut own, &mut listening] {
        for _ in 0..2 {
            let (_, message) = talk.message().await.unwrap();
            assert_eq!(
                message["method"], "notifications/tools/list_changed",
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn trap22_an_unknown_method_is_404_with_a_body() {
    let app = portway(&[]).await;
    for method in ["no/such", "initialize", "ping", "logging/setLevel"] {
        let talk = modern(&app, X, method, json!({})).send().await;
        assert_eq!(talk.status, 404);
        assert_eq!(talk.header("content-type"), "application/json");
        let body: Value = talk.json().await;
        assert_eq!(body["id"], 1);
        assert_eq!(body["error"]["code"], -32601);
    }
    // A server's own error of that code says nothing about the method.
    let params = call("error", json!({"code": -32601}));
    let talk = modern(&app, X, "tools/call", params).send().await;
    assert_eq!(talk.verdict().await, (200, Some(-32601)));
}

#[tokio::test]
async fn k4_a_listen_ends_with_its_answer_at_shutdown() {
    // Calls in flight would be given this long.
    let app = setup()
        .env("PORTWAY_DRAIN", "600s")
        .mcp(fixtures(&[("x", &[])]))
        .start()
        .await;
    app.until_status("x", "connected").await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let mut own = client.listen().send().await;
    assert!(own.event().await.is_some());
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = modern(&app, X, "subscriptions/listen", listen).send().await;
    listening.message().await.unwrap();
    let mut old = super::ask(&app, "GET", "/sse").send().await;
    assert!(old.event().await.is_some());
    app.signal(nix::sys::signal::Signal::SIGTERM);
    let (_, last) = listening.message().await.unwrap();
    assert_eq!(last["id"], 1);
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(
        last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        1
    );
    for talk in [&mut own, &mut listening, &mut old] {
        assert!(talk.event().await.is_none());
    }
    let crate::app::App { mut child, .. } = app;
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
    assert!(ended.expect("no stream holds it up").unwrap().success());
}
