use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use super::server::{ReceivedRequest, ScriptedReply, ScriptedServer, event, event_with_id};
use super::{PATIENCE, call, call_within, connect, next_notification, raw, text_result, until};
use crate::{CallEvent, InboundMessage, UpstreamCall, UpstreamError, event_queue};

/// A legacy server with one session; `script` may override any response.
pub(super) async fn legacy<F>(
    script: impl Fn(ReceivedRequest) -> F + Clone + Send + Sync + 'static,
) -> ScriptedServer
where
    F: Future<Output = Option<ScriptedReply>> + Send + 'static,
{
    ScriptedServer::start(move |asked| {
        let script = script.clone();
        async move {
            if let Some(say) = script(asked.clone()).await {
                return say;
            }
            match asked.method() {
                "server/discover" => ScriptedReply::Status(404),
                "initialize" => {
                    ScriptedReply::Json(200, asked.initialized()).with("Mcp-Session-Id", "s-1")
                }
                "GET" => ScriptedReply::Status(405),
                "tools/call" => ScriptedReply::Json(200, asked.result(text_result("ran"))),
                "DELETE" => ScriptedReply::Status(200),
                _ => ScriptedReply::Status(202),
            }
        }
    })
    .await
}

#[tokio::test]
async fn c1_a_session_is_kept_used_and_ended() {
    let server = legacy(|_| async { None }).await;
    let (link, connection) = connect(&server).await;
    call(&connection, "x").await.unwrap();
    until("the stream is asked for", || server.count("GET") == 1).await;
    link.end().await;
    assert_eq!(server.count("DELETE"), 1);
    for asked in server.seen() {
        let opening = matches!(asked.method(), "server/discover" | "initialize");
        let expected = (!opening).then_some("s-1");
        assert_eq!(
            asked.header("mcp-session-id"),
            expected,
            "{}",
            asked.method()
        );
        if asked.method() == "initialize" {
            assert_eq!(asked.header("mcp-protocol-version"), None);
        } else if !opening {
            assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25"));
        }
        if asked.verb == "GET" {
            assert_eq!(asked.header("accept"), Some("text/event-stream"));
        }
    }
}

#[tokio::test]
async fn c1_a_goodbye_that_hangs_holds_up_nobody() {
    let server = legacy(|asked| async move {
        if asked.verb == "DELETE" {
            std::future::pending::<()>().await;
        }
        None
    })
    .await;
    let (link, _) = connect(&server).await;
    tokio::time::timeout(Duration::from_secs(10), link.end())
        .await
        .expect("an end in time");
}

#[tokio::test]
async fn c3_the_servers_own_stream_is_heard_and_picked_up_again() {
    let streams = Arc::new(AtomicUsize::new(0));
    let counter = streams.clone();
    let server = legacy(move |asked| {
        let counter = counter.clone();
        async move {
            if asked.verb != "GET" {
                return None;
            }
            let number = counter.fetch_add(1, Ordering::Relaxed);
            let say = |method: &str| json!({"jsonrpc": "2.0", "method": method});
            let tools = event_with_id("e1", &say("notifications/tools/list_changed"));
            let prompts = event_with_id("e2", &say("notifications/prompts/list_changed"));
            Some(match number {
                0 => ScriptedReply::Status(503),
                // The stream breaks after one event.
                1 => ScriptedReply::events(&["retry: 10\n\n".into(), tools, String::new()]),
                // Repeats an event, as careless servers do.
                2 => ScriptedReply::events(&[tools, prompts]),
                _ => std::future::pending().await,
            })
        }
    })
    .await;
    let (mut link, _connection) = connect(&server).await;
    assert_eq!(
        next_notification(&mut link).await,
        "notifications/tools/list_changed"
    );
    assert_eq!(
        next_notification(&mut link).await,
        "notifications/prompts/list_changed"
    );
    until("it goes on", || streams.load(Ordering::Relaxed) == 4).await;
    assert!(link.inbound.try_recv().is_err());
    let gets: Vec<_> = server
        .seen()
        .into_iter()
        .filter(|asked| asked.verb == "GET")
        .collect();
    let places: Vec<_> = gets
        .iter()
        .map(|asked| asked.header("last-event-id"))
        .collect();
    assert_eq!(places, [None, None, Some("e1"), Some("e2")]);
    link.end().await;
}

#[tokio::test]
async fn c3_a_stream_that_cannot_be_picked_up_counts_as_a_change() {
    let server = legacy(|asked| async move {
        // The stream ends at once, without an id to resume from.
        (asked.verb == "GET").then(|| ScriptedReply::events(&["retry: 10\n\n".into()]))
    })
    .await;
    let (mut link, _connection) = connect(&server).await;
    assert_eq!(
        next_notification(&mut link).await,
        "notifications/tools/list_changed"
    );
    let streams = server
        .seen()
        .into_iter()
        .filter(|asked| asked.verb == "GET");
    assert!(streams.count() >= 2, "the first one is no loss");
    link.end().await;
}

#[tokio::test]
async fn c1_requests_of_the_server_go_to_the_call_they_came_with() {
    let server = legacy(|asked| async move {
        if asked.method() != "tools/call" {
            return None;
        }
        let request = |id: &str, method: &str| {
            event(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}))
        };
        let logged = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        Some(ScriptedReply::events(&[
            request("p", "ping"),
            event(&logged),
            event(&changed),
            request("q", "elicitation/create"),
            event(&asked.result(text_result("done"))),
        ]))
    })
    .await;
    let (mut link, connection) = connect(&server).await;
    let params = raw(json!({"name": "x"}));
    let (sender, mut events) = event_queue(8);
    let mut asking = UpstreamCall::new("tools/call", PATIENCE).params(Some(&params));
    asking.events = Some(sender);
    connection.request(asking).await.unwrap();
    match events.recv().await {
        Some(CallEvent::Notification(log)) => assert_eq!(log.method, "notifications/message"),
        other => panic!("{other:?}"),
    }
    match events.recv().await {
        Some(CallEvent::Request(request)) => request.answer(Ok(raw(json!({"action": "cancel"})))),
        other => panic!("{other:?}"),
    }
    assert!(events.recv().await.is_none());
    assert_eq!(
        next_notification(&mut link).await,
        "notifications/tools/list_changed"
    );

    // Without an event queue the request goes to the owner, which refuses it.
    call(&connection, "x").await.unwrap();
    loop {
        match link.inbound.recv().await.unwrap() {
            InboundMessage::Request(request) => break drop(request),
            InboundMessage::Notification(_) => {}
        }
    }
    let replies = || {
        let seen = server
            .seen()
            .into_iter()
            .filter(|asked| asked.body["method"].is_null());
        seen.filter(|asked| asked.verb == "POST")
            .map(|asked| asked.body)
            .collect::<Vec<_>>()
    };
    until("all are answered", || replies().len() == 4).await;
    let reply = |id: &str| {
        replies()
            .into_iter()
            .filter(|reply| reply["id"] == *id)
            .collect::<Vec<_>>()
    };
    assert!(reply("p").iter().all(|pong| pong["result"] == json!({})));
    let answers = reply("q");
    // Both refusals, ours and that of a dropped request, only cancel.
    let cancelled = |reply: &serde_json::Value| reply["result"]["action"] == "cancel";
    assert!(
        answers.len() == 2 && answers.iter().all(cancelled),
        "{answers:?}"
    );
    link.end().await;
}

#[tokio::test]
async fn d4_giving_up_is_said_because_hanging_up_says_nothing() {
    let server = legacy(|asked| async move {
        match asked.tool() {
            "silent" => std::future::pending().await,
            "streaming" => {
                let (sender, receiver) = mpsc::channel(1);
                tokio::spawn(async move {
                    while sender.send(": still here\n\n".into()).await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
                Some(ScriptedReply::Events(receiver))
            }
            _ => None,
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    let cancelled = || {
        let all = server.seen().into_iter();
        let all = all.filter(|asked| asked.method() == "notifications/cancelled");
        all.map(|asked| asked.body["params"]["requestId"].clone())
            .collect::<Vec<_>>()
    };
    for (count, tool) in ["silent", "streaming"].into_iter().enumerate() {
        let limit = Duration::from_millis(200);
        let error = call_within(&connection, tool, limit).await.unwrap_err();
        assert!(
            matches!(error, UpstreamError::Timeout { .. }),
            "{tool}: {error}"
        );
        until("the cancellation", || cancelled().len() == count + 1).await;
    }
    // A caller that drops its call cancels too.
    let left = tokio::time::timeout(Duration::from_millis(100), call(&connection, "silent"));
    assert!(left.await.is_err());
    until("the third", || cancelled().len() == 3).await;
    let asked: Vec<_> = server
        .seen()
        .into_iter()
        .filter(|asked| asked.method() == "tools/call")
        .map(|asked| asked.body["id"].clone())
        .collect();
    assert_eq!(cancelled(), asked);
    call(&connection, "fine").await.unwrap();
    link.end().await;
    assert_eq!(cancelled().len(), 3);
}

#[tokio::test]
async fn c1_progress_on_the_servers_own_stream_finds_its_call() {
    let (sender, receiver) = mpsc::channel(8);
    let own = Arc::new(std::sync::Mutex::new(Some(receiver)));
    let server = legacy(move |asked| {
        let (own, sender) = (own.clone(), sender.clone());
        async move {
            match asked.method() {
                "GET" => Some(ScriptedReply::Events(own.lock().unwrap().take()?)),
                "tools/call" => {
                    let token = &asked.body["params"]["_meta"]["progressToken"];
                    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                                          "params": {"progressToken": token, "progress": 1}});
                    sender.send(event(&progress)).await.unwrap();
                    // Responds only after the client has seen the progress.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    None
                }
                _ => None,
            }
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    until("the stream is open", || server.count("GET") == 1).await;
    let (events, mut heard) = event_queue(8);
    let params = raw(json!({"name": "x"}));
    let mut asking = UpstreamCall::new("tools/call", PATIENCE).params(Some(&params));
    asking.progress = true;
    asking.events = Some(events);
    connection.request(asking).await.unwrap();
    assert!(matches!(
        heard.recv().await,
        Some(CallEvent::Notification(_))
    ));
    link.end().await;
}
