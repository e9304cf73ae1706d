use std::time::Duration;

use serde_json::{Value, json};
use upstream::{CallEvent, InboundMessage, UpstreamCall, UpstreamError, event_queue};

use super::{call, call_within, connect, fixture, say};
use crate::app::PATIENCE;

#[tokio::test]
async fn c6_calls_survive_lost_sessions_and_none_runs_twice() {
    let server = fixture(&[
        "--http",
        "0",
        "--era",
        "legacy",
        "--drop-session-after",
        "25",
    ])
    .await;
    let (link, connection) = server.connect().await;
    let calls = (0..20).map(|n| {
        let connection = &connection;
        async move {
            let text = format!("call {n}");
            assert_eq!(say(connection, "echo", json!({"text": text})).await, text);
        }
    });
    // One after the other, then all at once.
    for one in calls.clone() {
        one.await;
    }
    futures_util::future::join_all(calls).await;
    assert_eq!(say(&connection, "count", json!({})).await, "40");
    link.end().await;
}

#[tokio::test]
async fn c6_a_cut_answer_is_picked_up_by_a_legacy_connection_and_lost_by_a_modern_one() {
    for era in ["legacy", "modern"] {
        let server = fixture(&["--http", "0", "--era", era, "--cut-stream"]).await;
        let (link, connection) = server.connect().await;
        let answer = call(&connection, "echo", json!({"text": "whole"})).await;
        match era {
            "legacy" => assert_eq!(answer.unwrap()["content"][0]["text"], "whole"),
            _ => assert!(matches!(answer, Err(UpstreamError::Lost(_))), "{answer:?}"),
        }
        link.end().await;
    }
}

#[tokio::test]
async fn d4_a_call_that_takes_too_long_is_cancelled_over_every_transport() {
    for args in [
        &["--http", "0", "--era", "modern"][..],
        &["--http", "0", "--era", "legacy"],
        &["--http", "0", "--era", "legacy", "--always-stream"],
        &["--sse", "0"],
    ] {
        let server = fixture(args).await;
        let (link, connection) = server.connect().await;
        let limit = Duration::from_millis(300);
        let error = call_within(&connection, "hang", json!({}), limit)
            .await
            .unwrap_err();
        assert!(
            matches!(error, UpstreamError::Timeout { .. }),
            "{args:?}: {error:?}"
        );
        let start = tokio::time::Instant::now();
        while say(&connection, "cancelled", json!({})).await == "[]" {
            assert!(
                start.elapsed() < PATIENCE,
                "{args:?}: the server never heard of it"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(
            say(&connection, "echo", json!({"text": "on"})).await,
            "on",
            "{args:?}"
        );
        link.end().await;
    }
}

#[tokio::test]
async fn d4_progress_arrives_in_order_and_restarts_the_limit_over_every_transport() {
    let transports = [
        &["--http", "0", "--era", "modern"][..],
        &["--http", "0", "--era", "legacy"],
        &["--sse", "0"],
    ];
    futures_util::future::join_all(transports.map(progress)).await;
}

async fn progress(args: &[&str]) {
    let server = fixture(args).await;
    let (link, connection) = server.connect().await;
    let params = json!({"name": "progress", "arguments": {"steps": 8, "ms": 400}});
    let params = serde_json::value::to_raw_value(&params).unwrap();
    let (events, mut heard) = event_queue(32);
    let mut call = UpstreamCall::new("tools/call", Duration::from_secs(2)).params(Some(&params));
    call.progress = true;
    call.events = Some(events);
    let answer = connection.request(call).await;
    answer.unwrap_or_else(|error| panic!("{args:?}: {error}"));
    let mut steps = Vec::new();
    while let Some(CallEvent::Notification(note)) = heard.recv().await {
        let params: Value = serde_json::from_str(note.params.unwrap().get()).unwrap();
        steps.push(params["progress"].as_f64().unwrap());
    }
    assert!(steps.len() >= 8 && steps.is_sorted(), "{args:?}: {steps:?}");
    link.end().await;
}

#[tokio::test]
async fn c3_changes_are_heard_on_the_stream_of_each_transport() {
    for args in [&["--http", "0", "--era", "legacy"][..], &["--sse", "0"]] {
        let server = fixture(args).await;
        let (mut link, connection) = server.connect().await;
        // The stream is opened after the handshake, so the first may be early.
        let heard = async {
            loop {
                match link.inbound.recv().await.expect("a living connection") {
                    InboundMessage::Notification(note) => break note.method,
                    InboundMessage::Request(_) => {}
                }
            }
        };
        let toggling = async {
            loop {
                call(&connection, "toggle_tool", json!({})).await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            method = heard => assert_eq!(method, "notifications/tools/list_changed"),
            () = toggling => {}
            () = tokio::time::sleep(PATIENCE) => panic!("{args:?}: nothing heard"),
        }
        link.end().await;
    }
}

#[tokio::test]
async fn d1_an_argument_is_mirrored_into_the_header_its_schema_names() {
    let server = fixture(&["--http", "0", "--era", "modern"]).await;
    let (link, connection) = server.connect().await;
    // Not listed yet: found out on the way.
    assert_eq!(
        say(&connection, "region", json!({"region": "größe"})).await,
        "größe"
    );
    assert_eq!(
        say(&connection, "region", json!({"region": "eu"})).await,
        "eu"
    );
    link.end().await;
}

#[tokio::test]
async fn a7_a_dead_server_is_noticed_where_a_stream_is_the_connection() {
    let server = fixture(&["--sse", "0"]).await;
    let (link, connection) = connect(server.sse()).await.unwrap();
    let error = call(&connection, "crash", json!({})).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Lost(_)), "{error:?}");
    tokio::time::timeout(PATIENCE, link.gone())
        .await
        .expect("gone in time");
    link.end().await;

    // Streamable HTTP: the call fails, later ones say what they find.
    let server = fixture(&["--http", "0", "--era", "legacy"]).await;
    let (link, connection) = server.connect().await;
    let error = call(&connection, "crash", json!({})).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Lost(_)), "{error:?}");
    let error = call(&connection, "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    let refused = matches!(&error, UpstreamError::Unreachable(text) if text.contains("refused"));
    assert!(
        refused || matches!(error, UpstreamError::Lost(_)),
        "{error:?}"
    );
    link.end().await;
}
