//! Messages that are too large, too many or invalid: an error, and the
//! connection continues.

use serde_json::json;
use tokio::sync::mpsc;

use super::server::{ScriptedReply, ScriptedServer, event};
use super::{call, connect_with, options, text_result};
use crate::UpstreamError;
use config::RemoteKind;

#[tokio::test]
async fn t_f3_bodies_and_events_have_a_limit_in_both_eras() {
    for modern in [true, false] {
        let server = ScriptedServer::start(move |asked| async move {
            match asked.method() {
                "server/discover" if modern => return ScriptedReply::Json(200, asked.discovered()),
                "initialize" => return ScriptedReply::Json(200, asked.initialized()),
                "notifications/initialized" => return ScriptedReply::Status(202),
                "tools/call" => {}
                _ => return ScriptedReply::Status(404),
            }
            match asked.tool() {
                "body" => ScriptedReply::Json(200, asked.result(text_result(&"x".repeat(40_000)))),
                "event" | "comment" => {
                    let (sender, receiver) = mpsc::channel(1);
                    tokio::spawn(async move {
                        let start = if asked.tool() == "event" {
                            "data: "
                        } else {
                            ":"
                        };
                        let _ = sender.send(start.into()).await;
                        for _ in 0..100 {
                            let _ = sender.send("x".repeat(1000)).await;
                        }
                        let answer = event(&asked.result(text_result("after all")));
                        let _ = sender.send(format!("\n\n{answer}")).await;
                    });
                    ScriptedReply::Events(receiver)
                }
                _ => ScriptedReply::Json(200, asked.result(text_result("small"))),
            }
        })
        .await;
        let (mut options, _) = options();
        options.limits.response = 20_000;
        options.limits.message = 10_000;
        let (link, connection) = connect_with(&server, RemoteKind::Http, &options)
            .await
            .unwrap();
        for (tool, limit) in [("body", 20_000), ("event", 10_000)] {
            match call(&connection, tool).await {
                Err(UpstreamError::TooLarge { limit: said }) => assert_eq!(said, limit),
                other => panic!("{tool}: {other:?}"),
            }
        }
        // An endless comment costs nothing.
        assert_eq!(
            call(&connection, "comment").await.unwrap(),
            text_result("after all")
        );
        assert_eq!(
            call(&connection, "small").await.unwrap(),
            text_result("small")
        );
        link.end().await;
    }
}

#[tokio::test]
async fn t_e6_messages_that_do_not_belong_are_left_alone_until_they_are_too_many() {
    let server = ScriptedServer::start(|asked| async move {
        if asked.method() == "server/discover" {
            return ScriptedReply::Json(200, asked.discovered());
        }
        let foreign = event(&json!({"jsonrpc": "2.0", "id": 999_999, "result": {}}));
        let mut chunks = vec![
            "data: not json\n\n".into(),
            foreign.clone(),
            "data: [1]\n\n".into(),
        ];
        if asked.tool() == "flood" {
            chunks = vec![foreign.repeat(200)];
        }
        chunks.push(event(&asked.result(text_result("fine"))));
        // Sent twice: the second has no waiting request.
        chunks.push(event(&asked.result(text_result("again"))));
        ScriptedReply::events(&chunks)
    })
    .await;
    let (options, lines) = options();
    let (link, connection) = connect_with(&server, RemoteKind::Http, &options)
        .await
        .unwrap();
    assert_eq!(call(&connection, "x").await.unwrap(), text_result("fine"));
    assert_eq!(
        lines
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.contains("ignored"))
            .count(),
        3
    );
    let error = call(&connection, "flood").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Protocol(_)), "{error:?}");
    assert_eq!(call(&connection, "x").await.unwrap(), text_result("fine"));
    link.end().await;
}

#[tokio::test]
async fn t_f4_compressed_answers_are_refused() {
    let server = ScriptedServer::start(|asked| async move {
        match asked.method() {
            "server/discover" => ScriptedReply::Json(200, asked.discovered()),
            _ => ScriptedReply::Json(200, asked.result(json!({}))).with("content-encoding", "gzip"),
        }
    })
    .await;
    let (link, connection) = connect_with(&server, RemoteKind::Http, &options().0)
        .await
        .unwrap();
    let error = call(&connection, "x").await.unwrap_err();
    assert!(
        matches!(&error, UpstreamError::Protocol(text) if text.contains("gzip")),
        "{error:?}"
    );
    link.end().await;
}
