//! SPEC C6: a lost session is opened again; no request runs twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::legacy::legacy;
use super::server::{ReceivedRequest, ScriptedReply, ScriptedServer, event, event_with_id};
use super::{PATIENCE, call, connect, next_notification, text_result, until};
use crate::{Connection, UpstreamError};

/// A server that can forget its sessions, and counts the calls it runs.
#[derive(Clone, Default)]
struct Forgetful {
    session: Arc<AtomicUsize>,
    ran: Arc<AtomicUsize>,
    refuses: Arc<AtomicBool>,
    changed: Arc<AtomicBool>,
}

impl Forgetful {
    async fn start(&self, lost: fn(&ReceivedRequest) -> ScriptedReply) -> ScriptedServer {
        let this = self.clone();
        ScriptedServer::start(move |asked| {
            let this = this.clone();
            async move { this.answer(asked, lost) }
        })
        .await
    }

    fn answer(
        &self,
        asked: ReceivedRequest,
        lost: fn(&ReceivedRequest) -> ScriptedReply,
    ) -> ScriptedReply {
        match asked.method() {
            "server/discover" => return ScriptedReply::Status(404),
            "initialize" if self.refuses.load(Ordering::Relaxed) => {
                return ScriptedReply::Status(503);
            }
            "initialize" => {
                let number = self.session.fetch_add(1, Ordering::Relaxed) + 1;
                let mut answer = asked.initialized();
                if self.changed.load(Ordering::Relaxed) {
                    answer["result"]["capabilities"] = json!({"prompts": {}});
                }
                return ScriptedReply::Json(200, answer)
                    .with("Mcp-Session-Id", &format!("s-{number}"));
            }
            _ => {}
        }
        let current = format!("s-{}", self.session.load(Ordering::Relaxed));
        if asked.header("mcp-session-id") != Some(&current) {
            return lost(&asked);
        }
        match asked.method() {
            "tools/call" => {
                self.ran.fetch_add(1, Ordering::Relaxed);
                ScriptedReply::Json(200, asked.result(text_result(&current)))
            }
            "GET" => ScriptedReply::Status(405),
            _ => ScriptedReply::Status(202),
        }
    }

    fn forget(&self) {
        self.session.fetch_add(1, Ordering::Relaxed);
    }
}

async fn call_many(connection: &Connection, count: usize) -> Vec<Result<Value, UpstreamError>> {
    let calls = (0..count).map(|_| call(connection, "x"));
    futures_util::future::join_all(calls).await
}

#[tokio::test]
async fn c6_a_forgotten_session_is_opened_again_once_for_all() {
    let ways: [fn(&ReceivedRequest) -> ScriptedReply; 5] = [
        |_| ScriptedReply::Status(404),
        |asked| ScriptedReply::Json(404, asked.error(-32001, "Session not found")),
        |asked| {
            ScriptedReply::Json(
                400,
                asked.error(-32000, "Bad Request: No valid session ID provided"),
            )
        },
        |_| ScriptedReply::Text(400, "text/plain", "Unknown session".into()),
        |_| ScriptedReply::Text(401, "text/plain", "Unauthorized: Session not found".into()),
    ];
    for way in ways {
        let script = Forgetful::default();
        let server = script.start(way).await;
        let (mut link, connection) = connect(&server).await;
        script.forget();
        let answers = call_many(&connection, 20).await;
        for answer in answers {
            assert_eq!(answer.unwrap(), text_result("s-3"));
        }
        assert_eq!(script.ran.load(Ordering::Relaxed), 20);
        assert_eq!(server.count("initialize"), 2);
        assert_eq!(server.count("notifications/initialized"), 2);
        // The server's lists may have changed.
        assert_eq!(
            next_notification(&mut link).await,
            "notifications/tools/list_changed"
        );
        link.end().await;
        let goodbye = server.find("DELETE").unwrap();
        assert_eq!(goodbye.header("mcp-session-id"), Some("s-3"));
    }
}

#[tokio::test]
async fn c6_a_call_refused_in_the_new_session_too_is_an_error() {
    // Opens sessions, and then knows none of them.
    let server = legacy(|asked| async move {
        (asked.method() == "tools/call").then_some(ScriptedReply::Status(404))
    })
    .await;
    let (link, connection) = connect(&server).await;
    let error = call(&connection, "x").await.unwrap_err();
    assert!(
        matches!(&error, UpstreamError::Protocol(text) if text.contains("404")),
        "{error:?}"
    );
    assert_eq!(server.count("tools/call"), 2);
    assert_eq!(server.count("initialize"), 2);
    link.end().await;
}

#[tokio::test]
async fn c6_without_a_session_404_is_just_an_error() {
    let server = ScriptedServer::start(|asked| async move {
        match asked.method() {
            "initialize" => ScriptedReply::Json(200, asked.initialized()),
            "notifications/initialized" => ScriptedReply::Status(202),
            "tools/call" => ScriptedReply::Json(404, asked.error(-32601, "no such method")),
            _ => ScriptedReply::Status(404),
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    let error = call(&connection, "x").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Rpc(_)), "{error:?}");
    assert_eq!(server.count("initialize"), 1);
    link.end().await;
    assert_eq!(server.count("DELETE"), 0);
}

#[tokio::test]
async fn c6_a_session_that_cannot_be_opened_again_ends_the_connection() {
    let script = Forgetful::default();
    let server = script.start(|_| ScriptedReply::Status(404)).await;
    let (link, connection) = connect(&server).await;
    script.forget();
    script.refuses.store(true, Ordering::Relaxed);
    let error = call(&connection, "x").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Unreachable(_)), "{error:?}");
    let gone = tokio::time::timeout(PATIENCE, link.gone())
        .await
        .expect("gone in time");
    assert!(matches!(gone, UpstreamError::Unreachable(_)), "{gone:?}");
    let sent = server.seen().len();
    assert!(call(&connection, "x").await.is_err());
    assert_eq!(server.seen().len(), sent);
    assert_eq!(script.ran.load(Ordering::Relaxed), 0);
    link.end().await;
}

#[tokio::test]
async fn c6_a_server_that_comes_back_as_another_is_connected_anew() {
    let script = Forgetful::default();
    let server = script.start(|_| ScriptedReply::Status(404)).await;
    let (link, connection) = connect(&server).await;
    script.forget();
    script.changed.store(true, Ordering::Relaxed);
    // No request ran: the caller may wait for the new connection.
    let error = call(&connection, "x").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Draining), "{error:?}");
    tokio::time::timeout(PATIENCE, link.gone())
        .await
        .expect("gone in time");
    assert_eq!(script.ran.load(Ordering::Relaxed), 0);
    link.end().await;
}

#[tokio::test]
async fn c6_the_lost_session_is_noticed_on_the_servers_own_stream() {
    let streams = Arc::new(AtomicUsize::new(0));
    let counter = streams.clone();
    let server = legacy(move |asked| {
        let counter = counter.clone();
        async move {
            if asked.verb != "GET" {
                return None;
            }
            Some(match counter.fetch_add(1, Ordering::Relaxed) {
                0 => ScriptedReply::events(&["retry: 10\n\n".into()]),
                // The server was restarted meanwhile.
                1 => ScriptedReply::Status(404),
                _ => ScriptedReply::Status(405),
            })
        }
    })
    .await;
    let (mut link, _connection) = connect(&server).await;
    assert_eq!(
        next_notification(&mut link).await,
        "notifications/tools/list_changed"
    );
    until("it listens again", || streams.load(Ordering::Relaxed) == 3).await;
    assert_eq!(server.count("initialize"), 2);
    link.end().await;
}

#[tokio::test]
async fn c6_a_server_without_a_stream_is_not_taken_for_one_that_forgot_us() {
    let server =
        legacy(|asked| async move { (asked.verb == "GET").then_some(ScriptedReply::Status(404)) })
            .await;
    let (link, connection) = connect(&server).await;
    until("the stream is asked for", || server.count("GET") == 1).await;
    call(&connection, "x").await.unwrap();
    link.end().await;
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test]
async fn c6_an_answer_is_picked_up_where_its_stream_broke() {
    let ran = Arc::new(AtomicUsize::new(0));
    let answer = Arc::new(std::sync::Mutex::new(Value::Null));
    let counter = ran.clone();
    let server = legacy(move |asked| {
        let (counter, answer) = (counter.clone(), answer.clone());
        async move {
            let progress = |step: u64| {
                json!({"jsonrpc": "2.0", "method": "notifications/progress",
                       "params": {"progressToken": 0, "progress": step}})
            };
            match (asked.method(), asked.header("last-event-id")) {
                ("tools/call", _) => {
                    counter.fetch_add(1, Ordering::Relaxed);
                    *answer.lock().unwrap() = asked.result(text_result("in the end"));
                    // The stream starts with an id and closes: the client polls.
                    Some(ScriptedReply::events(&[
                        "id: c-0\nretry: 20\ndata:\n\n".into()
                    ]))
                }
                ("GET", Some("c-0")) => {
                    // The stream breaks in the middle of an event.
                    let first = event_with_id("c-1", &progress(1));
                    Some(ScriptedReply::events(&[
                        first,
                        "id: c-2\ndata: {\"json".into(),
                        String::new(),
                    ]))
                }
                ("GET", Some("c-1")) if counter.fetch_add(100, Ordering::Relaxed) < 100 => {
                    Some(ScriptedReply::Status(503))
                }
                ("GET", Some("c-1")) => {
                    let answer = answer.lock().unwrap().clone();
                    Some(ScriptedReply::events(&[event_with_id("c-2", &answer)]))
                }
                _ => None,
            }
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    assert_eq!(
        call(&connection, "x").await.unwrap(),
        text_result("in the end")
    );
    assert_eq!(server.count("tools/call"), 1);
    assert_eq!(ran.load(Ordering::Relaxed) % 100, 1);
    for asked in server.seen().iter().filter(|asked| asked.verb == "GET") {
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
    }
    link.end().await;
}

#[tokio::test]
async fn c6_trap13_an_answer_that_cannot_be_picked_up_is_lost_and_nothing_runs_twice() {
    let server = legacy(|asked| async move {
        let started = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        Some(match asked.tool() {
            "no ids" => ScriptedReply::events(&[event(&started), String::new()]),
            "ids" => ScriptedReply::events(&[event_with_id("1", &started), String::new()]),
            "reset" => ScriptedReply::Nothing,
            "half" => ScriptedReply::Raw(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{",
            ),
            _ => return None,
        })
    })
    .await;
    let (link, connection) = connect(&server).await;
    let tools = ["no ids", "ids", "reset", "half"];
    for tool in tools {
        let error = call(&connection, tool).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Lost(_)), "{tool}: {error:?}");
    }
    assert_eq!(server.count("tools/call"), tools.len());
    assert_eq!(server.count("initialize"), 1);
    // The connection itself continues.
    tokio::time::timeout(Duration::from_secs(20), call(&connection, "fine"))
        .await
        .unwrap()
        .unwrap();
    until("one more", || server.count("tools/call") == tools.len() + 1).await;
    link.end().await;
}
