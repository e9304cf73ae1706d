//! SPEC D4–D6 through the front, in all four cells: limits, failures, and
//! calls side by side.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::mcp_front::{X, call, legacy, modern, said, until};
use crate::traps::{rig, rig_with};

const CELLS: [(&str, bool); 4] = [
    ("legacy", false),
    ("modern", false),
    ("legacy", true),
    ("modern", true),
];

/// A failure that a model can read.
#[track_caller]
fn failure(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    said(answer).to_owned()
}

#[tokio::test]
async fn d4_a_call_over_its_limit_says_so_and_the_session_goes_on() {
    join_all(CELLS.map(|(era, http)| async move {
        let rig = rig_with(http, &["--era", era], json!({"timeout": 700})).await;
        let app = &rig.app;
        let client = legacy(app, X, "2025-11-25", json!({})).await;
        client.notify("notifications/initialized", json!({})).await;
        let mut own = client.listen().send().await;
        let old = client.tool("h", "hang", json!({})).send().await;
        let old = old.answer().await;
        assert_eq!(old["id"], "h");
        let new = modern(app, X, "tools/call", call("hang", json!({})))
            .send()
            .await;
        assert_eq!(new.status, 200);
        for answer in [old, new.answer().await] {
            let text = failure(&answer);
            for part in ["hang", "server x", "700 ms"] {
                assert!(text.contains(part), "{era}: {text:?} lacks {part:?}");
            }
        }
        let named = modern(app, "/mcp", "tools/call", call("mcp_x_hang", json!({})));
        let text = failure(&named.send().await.answer().await);
        assert!(text.contains("mcp_x_hang"), "{text}");
        until("the server hears that nobody waits", || async {
            client.cancelled().await.len() == 3
        })
        .await;
        let echo = client.tool(2, "echo", json!({"text": "hi"})).send().await;
        assert_eq!(said(&echo.answer().await), "hi");
        // The session's own stream lives as well.
        drop(
            client
                .tool(3, "toggle_tool", json!({}))
                .send()
                .await
                .answer()
                .await,
        );
        let (_, told) = own.message().await.expect("the stream goes on");
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }))
    .await;
}

#[tokio::test]
async fn d4_progress_restarts_the_limit_for_either_client() {
    join_all(CELLS.map(|(era, http)| async move {
        let rig = rig_with(http, &["--era", era], json!({"timeout": 1500})).await;
        let client = legacy(&rig.app, X, "2025-11-25", json!({})).await;
        let steps = json!({"name": "progress", "arguments": {"steps": 6, "ms": 500},
            "_meta": {"progressToken": "t"}});
        let (old, new) = tokio::join!(
            client.request(1, "tools/call", steps.clone()).send(),
            modern(&rig.app, X, "tools/call", steps).send(),
        );
        let (old, new) = tokio::join!(old.answer(), new.answer());
        assert_eq!((said(&old), said(&new)), ("6 steps", "6 steps"), "{era}");
    }))
    .await;
}

#[tokio::test]
async fn d5_a_tools_own_failure_comes_with_its_details() {
    for (era, http) in CELLS {
        let rig = rig(http, &["--era", era]).await;
        let client = legacy(&rig.app, X, "2025-11-25", json!({})).await;
        let data = json!({"why": ["a", 1.5], "big": 9_007_199_254_740_993_u64});
        for (tool, arguments) in [
            ("fail", json!({"text": "no more paper"})),
            ("error", json!({"code": 1234, "data": data})),
        ] {
            let params = call(tool, arguments);
            let old = client.request(1, "tools/call", params.clone()).send().await;
            let new = modern(&rig.app, X, "tools/call", params).send().await;
            for answer in [old.answer().await, new.answer().await] {
                if tool == "fail" {
                    assert_eq!(failure(&answer), "no more paper");
                } else {
                    assert_eq!(answer["error"]["code"], 1234);
                    assert_eq!(answer["error"]["message"], "an error as told");
                    assert_eq!(answer["error"]["data"], data);
                }
            }
        }
    }
}

#[tokio::test]
async fn d5_a_call_to_a_stopped_server_says_so_at_once() {
    let rig = rig(false, &[]).await;
    let app = &rig.app;
    let client = legacy(app, X, "2025-11-25", json!({})).await;
    let shared = legacy(app, "/mcp", "2025-11-25", json!({})).await;
    app.act("x", "stop").await;
    let echo = |name: &str| call(name, json!({"text": "hi"}));
    let answers = [
        client.request(1, "tools/call", echo("echo")).send().await,
        modern(app, X, "tools/call", echo("echo")).send().await,
    ];
    for talk in answers {
        let text = talk.answer().await.to_string();
        assert!(text.contains("server \\\"x\\\" is not connected"), "{text}");
    }
    let named = [
        shared
            .request(1, "tools/call", echo("mcp_x_echo"))
            .send()
            .await,
        modern(app, "/mcp", "tools/call", echo("mcp_x_echo"))
            .send()
            .await,
    ];
    for talk in named {
        let text = talk.answer().await.to_string();
        assert!(
            text.contains("mcp_x_echo") || text.contains("not connected"),
            "{text}"
        );
    }
    // And it is there again when the server is.
    app.act("x", "start").await;
    app.until_status("x", "connected").await;
    let back = client.request(2, "tools/call", echo("echo")).send().await;
    assert_eq!(said(&back.answer().await), "hi");
}

#[tokio::test]
async fn d6_a_slow_tool_delays_nobody() {
    for (era, http) in CELLS {
        let rig = rig(http, &["--era", era]).await;
        let app = &rig.app;
        let client = legacy(app, X, "2025-11-25", json!({})).await;
        let hang = || async {
            let slow = modern(app, X, "tools/call", call("hang", json!({})));
            slow.send().await.answer().await
        };
        let slow = futures_util::future::join_all((0..20).map(|_| hang()));
        let quick = async {
            crate::mcp_front::has_begun(&client, 19).await;
            for id in 0..20 {
                let echo = json!({"text": id.to_string()});
                let old = client.tool(id, "echo", echo.clone()).send().await;
                assert_eq!(said(&old.answer().await), id.to_string());
                let new = modern(app, X, "tools/call", call("echo", echo))
                    .send()
                    .await;
                assert_eq!(said(&new.answer().await), id.to_string());
            }
        };
        tokio::select! {
            _ = slow => panic!("{era}: a hanging call ended before the quick ones"),
            () = quick => {}
        }
    }
}
