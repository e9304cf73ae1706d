//! Trap 11: clients that use the same ids, tokens and subscriptions at once.

use serde_json::{Value, json};

use super::rig;
use crate::mcp_front::{FrontResponse, X, call, legacy, modern, modern_body, post, said, until};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Reads a call that reports `steps` times; all it hears is its own.
async fn hears_its_own(mut talk: FrontResponse, steps: u64, token: &Value) {
    let mut heard = 0;
    while let Some((_, message)) = talk.message().await {
        let params = &message["params"];
        if message.get("method").is_none() {
            assert_eq!(message["id"], 1);
            assert_eq!(said(&message), format!("{steps} steps"));
            continue;
        }
        assert_eq!(&params["progressToken"], token);
        assert_eq!(params["total"], steps);
        heard += 1;
        assert_eq!(params["progress"], heard);
    }
    assert_eq!(heard, steps);
}

#[tokio::test]
async fn trap11_the_same_ids_and_tokens_do_not_meet() {
    for (era, http) in [
        ("legacy", false),
        ("modern", false),
        ("legacy", true),
        ("modern", true),
    ] {
        let rig = rig(http, &["--era", era]).await;
        let app = &rig.app;
        let one = legacy(app, X, "2025-11-25", json!({})).await;
        let two = legacy(app, X, "2025-11-25", json!({})).await;
        let token = json!("t");
        let steps = |steps: u64| {
            let arguments = json!({"steps": steps, "ms": 120});
            json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": token}})
        };
        let talks = tokio::join!(
            one.request(1, "tools/call", steps(2)).send(),
            two.request(1, "tools/call", steps(3)).send(),
            modern(app, X, "tools/call", steps(4)).send(),
            modern(app, X, "tools/call", steps(5)).send(),
        );
        tokio::join!(
            hears_its_own(talks.0, 2, &token),
            hears_its_own(talks.1, 3, &token),
            hears_its_own(talks.2, 4, &token),
            hears_its_own(talks.3, 5, &token),
        );
    }
}

/// Reads to the end of the stream, which brings no answer.
async fn never_answered(mut talk: FrontResponse) {
    while let Some((_, message)) = talk.message().await {
        assert!(message.get("method").is_some(), "{message}");
    }
    std::future::pending().await
}

#[tokio::test]
async fn trap11_a_cancellation_ends_one_call_of_that_number() {
    for (era, http) in [("legacy", false), ("modern", true)] {
        let rig = rig(http, &["--era", era]).await;
        let one = legacy(&rig.app, X, "2025-11-25", json!({})).await;
        let two = legacy(&rig.app, X, "2025-11-25", json!({})).await;
        let given_up = one.tool(9, "sleep", json!({"ms": 600_000})).send();
        let other = two.tool(9, "sleep", json!({"ms": 3000})).send();
        let cancel = async {
            crate::mcp_front::has_begun(&two, 1).await;
            let why = json!({"requestId": 9, "reason": "enough"});
            one.notify("notifications/cancelled", why).await;
            until("the server hears of it", || async {
                !two.cancelled().await.is_empty()
            })
            .await;
        };
        let other = tokio::select! {
            () = async { never_answered(given_up.await).await } => unreachable!(),
            (other, ()) = async { tokio::join!(async { other.await.answer().await }, cancel) } => other,
        };
        assert_eq!(said(&other), "slept 3000 ms", "{era}");
        assert_eq!(two.cancelled().await.len(), 1, "{era}");
    }
}

#[tokio::test]
async fn trap11_a_subscription_has_the_number_its_client_gave() {
    for era in ["legacy", "modern"] {
        let rig = rig(false, &["--era", era]).await;
        let app = &rig.app;
        let listen = |id: Value| {
            let wish = json!({"notifications": {"toolsListChanged": true}});
            let body = modern_body(id, "subscriptions/listen", wish);
            post(app, X, body)
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "subscriptions/listen")
        };
        let ids = [json!(7), json!("7"), json!(7)];
        let mut listening = Vec::new();
        for id in &ids {
            let mut talk = listen(id.clone()).send().await;
            let (_, begun) = talk.message().await.unwrap();
            assert_eq!(begun["params"]["_meta"][SUBSCRIPTION], *id, "{begun}");
            listening.push(talk);
        }
        let toggle = modern(app, X, "tools/call", call("toggle_tool", json!({})));
        assert_eq!(said(&toggle.send().await.answer().await), "added");
        for (talk, id) in listening.iter_mut().zip(&ids) {
            let (_, told) = talk.message().await.unwrap();
            assert_eq!(told["method"], "notifications/tools/list_changed");
            assert_eq!(told["params"]["_meta"][SUBSCRIPTION], *id, "{told}");
        }
    }
}
