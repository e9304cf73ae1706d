//! The old HTTP+SSE transport.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use super::server::{ReceivedRequest, ScriptedReply, ScriptedServer, event};
use super::{PATIENCE, call, call_within, connect_with, options, text_result, until};
use crate::{InboundMessage, UpstreamError};
use config::{EraChoice, RemoteKind};
use wire::Era;

/// The stream of the only client.
type OldSseStream = Arc<Mutex<Option<mpsc::Sender<String>>>>;

/// A server that names `endpoint` for messages. Posts to `/mcp` itself get
/// `post`.
async fn old(endpoint: &'static str, post: u16) -> (ScriptedServer, OldSseStream) {
    let stream = OldSseStream::default();
    let kept = stream.clone();
    let server = ScriptedServer::start(move |asked| {
        let stream = kept.clone();
        async move {
            if asked.verb == "GET" {
                let (sender, receiver) = mpsc::channel(64);
                let hello = format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n");
                sender.try_send(hello).unwrap();
                *stream.lock().unwrap() = Some(sender);
                return ScriptedReply::Events(receiver);
            }
            if asked.target != "/messages?sessionId=1" {
                return ScriptedReply::Status(post);
            }
            take(&asked, &stream)
        }
    })
    .await;
    (server, stream)
}

fn take(asked: &ReceivedRequest, stream: &OldSseStream) -> ScriptedReply {
    let answer = match (asked.method(), asked.tool()) {
        ("initialize", _) => asked.initialized(),
        ("tools/call", "silent") => return ScriptedReply::Status(202),
        ("tools/call", "refused") => return ScriptedReply::Text(400, "text/plain", "bad".into()),
        ("tools/call", _) => asked.result(text_result("ran")),
        _ => return ScriptedReply::Status(202),
    };
    let stream = stream.lock().unwrap();
    let _ = stream.as_ref().unwrap().try_send(event(&answer));
    ScriptedReply::Text(202, "text/plain", "Accepted".into())
}

#[tokio::test]
async fn c1_http_sse_connects_calls_and_cancels() {
    let (server, stream) = old("/messages?sessionId=1", 404).await;
    let (mut link, connection) = connect_with(&server, RemoteKind::Sse, &options().0)
        .await
        .unwrap();
    assert_eq!(connection.peer().era, Era::Legacy);
    until("the handshake is done", || {
        server.count("notifications/initialized") == 1
    })
    .await;
    assert_eq!(
        server.methods(),
        ["GET", "initialize", "notifications/initialized"]
    );
    assert_eq!(call(&connection, "x").await.unwrap(), text_result("ran"));

    let error = call(&connection, "refused").await.unwrap_err();
    assert!(
        matches!(&error, UpstreamError::Protocol(text) if text.contains("400")),
        "{error:?}"
    );

    let limit = Duration::from_millis(100);
    let error = call_within(&connection, "silent", limit).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Timeout { .. }), "{error:?}");
    until("the cancellation", || {
        server.count("notifications/cancelled") == 1
    })
    .await;

    let asking = event(&json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}));
    let sender = stream.lock().unwrap().clone().unwrap();
    sender.send(asking).await.unwrap();
    match link.inbound.recv().await {
        Some(InboundMessage::Request(request)) => assert_eq!(request.method, "roots/list"),
        other => panic!("{other:?}"),
    }
    until("the refusal", || {
        server
            .seen()
            .iter()
            .any(|asked| asked.body["error"]["code"] == -32601)
    })
    .await;
    let get = server.find("GET").unwrap();
    link.end().await;
    tokio::time::timeout(PATIENCE, get.hung_up.cancelled())
        .await
        .expect("a closed stream");
}

#[tokio::test]
async fn c1_http_sse_without_its_stream_is_gone() {
    let (server, stream) = old("/messages?sessionId=1", 404).await;
    let (link, connection) = connect_with(&server, RemoteKind::Sse, &options().0)
        .await
        .unwrap();
    let waiting = tokio::spawn({
        let connection = connection.clone();
        async move { call(&connection, "silent").await }
    });
    until("the call arrived", || server.count("tools/call") == 1).await;
    stream.lock().unwrap().take();
    let gone = tokio::time::timeout(PATIENCE, link.gone())
        .await
        .expect("gone in time");
    assert!(matches!(gone, UpstreamError::Lost(_)), "{gone:?}");
    assert!(matches!(
        waiting.await.unwrap(),
        Err(UpstreamError::Lost(_))
    ));
    assert!(call(&connection, "x").await.is_err());
    assert_eq!(server.count("tools/call"), 1);
    link.end().await;
}

#[tokio::test]
async fn c2_a_url_said_to_be_http_may_be_http_sse() {
    for post in [400, 404, 405] {
        let (server, _stream) = old("/messages?sessionId=1", post).await;
        let (link, connection) = connect_with(&server, RemoteKind::Http, &options().0)
            .await
            .unwrap();
        assert_eq!(call(&connection, "x").await.unwrap(), text_result("ran"));
        link.end().await;
    }
    // The definition requires the modern era: no legacy handshake is tried.
    let (server, _stream) = old("/messages?sessionId=1", 405).await;
    let (mut options, _) = options();
    options.era = EraChoice::Modern;
    assert!(
        connect_with(&server, RemoteKind::Http, &options)
            .await
            .is_err()
    );
    assert_eq!(server.methods(), ["server/discover"]);
}

#[tokio::test]
async fn c2_a_url_said_to_be_sse_may_be_streamable_http() {
    let gets: [fn() -> ScriptedReply; 5] = [
        || ScriptedReply::Status(405),
        || ScriptedReply::Status(404),
        || ScriptedReply::Status(400),
        || ScriptedReply::Text(200, "text/html", "<html>".into()),
        // An event stream, but not of this transport.
        || {
            ScriptedReply::events(&[event(
                &json!({"jsonrpc": "2.0", "method": "notifications/x"}),
            )])
        },
    ];
    for get in gets {
        let server = ScriptedServer::start(move |asked| async move {
            match asked.method() {
                "GET" => get(),
                "server/discover" => ScriptedReply::Json(200, asked.discovered()),
                _ => ScriptedReply::Json(200, asked.result(text_result("modern"))),
            }
        })
        .await;
        let (link, connection) = connect_with(&server, RemoteKind::Sse, &options().0)
            .await
            .unwrap();
        assert_eq!(connection.peer().era, Era::Modern);
        assert_eq!(server.methods(), ["GET", "server/discover"]);
        link.end().await;
    }
    // Neither: the error is that of the transport in the definition.
    let server = ScriptedServer::start(|_| async { ScriptedReply::Status(404) }).await;
    let error = connect_with(&server, RemoteKind::Sse, &options().0)
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&error, UpstreamError::Protocol(text) if text.contains("404")),
        "{error:?}"
    );
    let server = ScriptedServer::start(|_| async { ScriptedReply::Status(401) }).await;
    let error = connect_with(&server, RemoteKind::Sse, &options().0)
        .await
        .err()
        .unwrap();
    assert!(matches!(error, UpstreamError::Login(_)), "{error:?}");
    assert_eq!(server.methods(), ["GET"]);
}

#[tokio::test]
async fn g3_trap24_messages_go_to_no_other_origin() {
    for endpoint in [
        "http://evil.example/messages",
        "//evil.example/messages",
        "https://127.0.0.1/messages",
        "http://127.0.0.1:1/messages",
        "javascript:alert(1)",
    ] {
        let (server, _stream) = old(endpoint, 404).await;
        let error = connect_with(&server, RemoteKind::Sse, &options().0)
            .await
            .err()
            .unwrap();
        assert!(
            matches!(&error, UpstreamError::Protocol(text) if text.contains("origin")),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn t_f3_events_of_http_sse_have_a_limit() {
    let (server, stream) = old("/messages?sessionId=1", 404).await;
    let (mut options, _) = options();
    options.limits.message = 10_000;
    let (link, _connection) = connect_with(&server, RemoteKind::Sse, &options)
        .await
        .unwrap();
    let sender = stream.lock().unwrap().clone().unwrap();
    sender
        .send(format!("data: {}", "x".repeat(20_000)))
        .await
        .unwrap();
    let gone = tokio::time::timeout(PATIENCE, link.gone())
        .await
        .expect("gone in time");
    assert!(
        matches!(gone, UpstreamError::TooLarge { limit: 10_000 }),
        "{gone:?}"
    );
    link.end().await;
}
