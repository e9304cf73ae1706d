//! Hanging up: to a modern client it means *stop*, to a legacy one nothing.

use serde_json::{Value, json};

use super::{
    FrontRequest, LegacyClient, X, call, calls, has_begun, legacy, modern, portway, post, said,
    until,
};
use crate::app::App;

/// How often the fixture saw a call of `tool` given up.
async fn given_up(client: &LegacyClient<'_>, tool: &str) -> usize {
    let calls = client.cancelled().await;
    calls.iter().filter(|call| call["name"] == tool).count()
}

async fn observer(app: &App) -> LegacyClient<'_> {
    legacy(app, X, "2025-06-18", json!({})).await
}

/// Hangs up once the server has the call, before anything is answered.
async fn hang_up(call: FrontRequest<'_>, observer: &LegacyClient<'_>) {
    let before = calls(observer).await;
    tokio::select! {
        talk = call.send() => panic!("an answer: {}", talk.status),
        () = has_begun(observer, before) => {}
    }
}

#[tokio::test]
async fn trap09_a_modern_client_that_hangs_up_cancels() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        let observer = observer(&app).await;
        // Before anything was answered.
        let body = super::modern_body(9, "tools/call", call("sleep", json!({"ms": 600_000})));
        let waiting = post(&app, X, body)
            .header("mcp-protocol-version", super::MODERN)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "sleep");
        hang_up(waiting, &observer).await;
        until("the server is told", || async {
            given_up(&observer, "sleep").await == 1
        })
        .await;

        // In the middle of a stream.
        let steps = json!({"name": "progress", "arguments": {"steps": 1_000_000, "ms": 20},
            "_meta": {"progressToken": "t"}});
        let mut talk = modern(&app, X, "tools/call", steps).send().await;
        let (id, first) = talk.message().await.unwrap();
        assert_eq!(first["method"], "notifications/progress");
        assert_eq!(id, None, "modern streams cannot be resumed");
        drop(talk);
        until("the server is told", || async {
            given_up(&observer, "progress").await == 1
        })
        .await;
    }
}

#[tokio::test]
async fn trap09_a_legacy_client_that_hangs_up_does_not() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        let observer = observer(&app).await;
        let client = legacy(&app, X, "2025-06-18", json!({})).await;
        let waiting = client.tool(1, "sleep", json!({"ms": 3000}));
        hang_up(waiting, &observer).await;
        // The next call comes through, and nothing was given up meanwhile.
        let answer = client
            .tool(2, "sleep", json!({"ms": 4000}))
            .send()
            .await
            .answer()
            .await;
        assert_eq!(said(&answer), "slept 4000 ms");
        assert_eq!(given_up(&observer, "sleep").await, 0);
    }
}

#[tokio::test]
async fn d4_a_legacy_client_cancels_by_saying_so() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        let observer = observer(&app).await;
        for version in ["2025-06-18", "2025-11-25"] {
            let client = legacy(&app, X, version, json!({})).await;
            let before = given_up(&observer, "sleep").await;
            let seen = calls(&observer).await;
            let call = client.tool("mine", "sleep", json!({"ms": 600_000}));
            let cancel = async {
                has_begun(&observer, seen).await;
                // Not that one: ids have a type.
                client
                    .notify("notifications/cancelled", json!({"requestId": 1}))
                    .await;
                let params = json!({"requestId": "mine", "reason": "enough"});
                client.notify("notifications/cancelled", params).await;
            };
            let (talk, ()) = tokio::join!(
                async {
                    let mut talk = call.send().await;
                    while let Some((_, message)) = talk.message().await {
                        assert!(message.get("result").is_none(), "{message}");
                    }
                    talk
                },
                cancel
            );
            assert!(talk.is_stream());
            until("the server is told", || async {
                given_up(&observer, "sleep").await == before + 1
            })
            .await;
        }
    }
}

#[tokio::test]
async fn d6_another_sessions_cancellation_is_its_own() {
    let app = portway(&[]).await;
    let one = legacy(&app, X, "2025-06-18", json!({})).await;
    let other = legacy(&app, X, "2025-06-18", json!({})).await;
    let slow = async {
        let answer: Value = one
            .tool(1, "sleep", json!({"ms": 2000}))
            .send()
            .await
            .answer()
            .await;
        assert_eq!(said(&answer), "slept 2000 ms");
    };
    let rude = async {
        has_begun(&other, 0).await;
        other
            .notify("notifications/cancelled", json!({"requestId": 1}))
            .await;
    };
    tokio::join!(slow, rude);
}
