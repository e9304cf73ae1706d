use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::server::{ReceivedRequest, ScriptedReply, ScriptedServer, event};
use super::{PATIENCE, call, call_within, connect, raw, text_result, until};
use crate::{CallEvent, UpstreamCall, UpstreamError, event_queue};

/// A modern server; `script` answers all requests except the discovery.
async fn modern<F>(
    script: impl Fn(ReceivedRequest) -> F + Clone + Send + Sync + 'static,
) -> ScriptedServer
where
    F: Future<Output = ScriptedReply> + Send + 'static,
{
    ScriptedServer::start(move |asked| {
        let script = script.clone();
        async move {
            match asked.method() {
                "server/discover" => ScriptedReply::Json(200, asked.discovered()),
                _ => script(asked).await,
            }
        }
    })
    .await
}

fn progress(asked: &ReceivedRequest, step: u64) -> Value {
    let token = &asked.body["params"]["_meta"]["progressToken"];
    json!({"jsonrpc": "2.0", "method": "notifications/progress",
           "params": {"progressToken": token, "progress": step}})
}

#[tokio::test]
async fn c1_a_modern_request_says_in_headers_what_its_body_says() {
    let server =
        modern(|asked| async move { ScriptedReply::Json(200, asked.result(json!({}))) }).await;
    let (link, connection) = connect(&server).await;
    let cases = [
        (
            "tools/call",
            json!({"name": "größe"}),
            Some("=?base64?Z3LDtsOfZQ==?="),
        ),
        (
            "prompts/get",
            json!({"name": "plain name"}),
            Some("plain name"),
        ),
        (
            "resources/read",
            json!({"uri": "file:///a.txt"}),
            Some("file:///a.txt"),
        ),
        ("tools/list", json!({}), None),
    ];
    for (method, params, name) in cases {
        let params = raw(params);
        let call = UpstreamCall::new(method, PATIENCE).params(Some(&params));
        connection.request(call).await.unwrap();
        let asked = server.find(method).unwrap();
        assert_eq!(asked.verb, "POST");
        assert_eq!(asked.header("mcp-method"), Some(method));
        assert_eq!(asked.header("mcp-name"), name, "{method}");
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(
            asked.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(asked.header("accept-encoding"), Some("identity"));
        assert_eq!(asked.header("mcp-session-id"), None);
        let version = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(asked.body["params"]["_meta"][version], "2026-07-28");
    }
    link.end().await;
    assert_eq!(server.count("DELETE"), 0);
}

#[tokio::test]
async fn c1_arguments_are_mirrored_as_the_schema_asks_once_it_is_known() {
    let server = modern(|asked| async move {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"}}});
        let bad = json!({"type": "object", "properties": {
            "x": {"type": "number", "x-mcp-header": "X"}}});
        match asked.method() {
            "tools/list" if asked.body["params"]["cursor"].is_null() => {
                let tools = json!([{"name": "bad", "inputSchema": bad}]);
                ScriptedReply::Json(200, asked.result(json!({"tools": tools, "nextCursor": ""})))
            }
            "tools/list" => {
                let tools = json!([{"name": "find", "inputSchema": schema}]);
                ScriptedReply::Json(200, asked.result(json!({"tools": tools})))
            }
            "tools/call" if asked.header("mcp-param-region").is_none() => {
                ScriptedReply::Json(400, asked.error(-32020, "Mcp-Param-Region is missing"))
            }
            _ => ScriptedReply::Json(200, asked.result(text_result("found"))),
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    let params = raw(json!({"name": "find", "arguments": {"region": " eu", "n": 7, "q": "x"}}));
    let find = || UpstreamCall::new("tools/call", PATIENCE).params(Some(&params));

    // Called before any list was read: refused, looked up, sent again.
    connection.request(find()).await.unwrap();
    assert_eq!(
        server.methods()[1..],
        ["tools/call", "tools/list", "tools/list", "tools/call"]
    );
    connection.request(find()).await.unwrap();
    assert_eq!(server.count("tools/call"), 3);
    let last = server.seen().pop().unwrap();
    assert_eq!(last.header("mcp-param-region"), Some("=?base64?IGV1?="));
    assert_eq!(last.header("mcp-param-n"), Some("7"));

    assert!(connection.tool_fault("find").is_none());
    let fault = connection.tool_fault("bad").unwrap();
    assert!(fault.contains("x-mcp-header"), "{fault}");
    assert!(matches!(
        call(&connection, "bad").await,
        Err(UpstreamError::Protocol(_))
    ));
    link.end().await;
}

#[tokio::test]
async fn c1_a_header_mismatch_that_stays_is_the_callers_error() {
    let server = modern(|asked| async move {
        match asked.method() {
            "tools/list" => ScriptedReply::Json(200, asked.result(json!({"tools": []}))),
            _ => ScriptedReply::Json(400, asked.error(-32020, "no")),
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    let error = call(&connection, "x").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Rpc(error) if error.code == -32020));
    assert_eq!(server.count("tools/call"), 1);
    link.end().await;
}

#[tokio::test]
async fn c1_progress_comes_in_order_before_the_answer() {
    let server = modern(|asked| async move {
        let mut chunks: Vec<String> = (1..=3).map(|step| event(&progress(&asked, step))).collect();
        // A server request is not allowed here.
        chunks.insert(
            1,
            event(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})),
        );
        chunks.push(event(&asked.result(text_result("done"))));
        // Split at arbitrary positions.
        let whole = chunks.concat();
        let pieces = whole
            .as_bytes()
            .chunks(7)
            .map(|c| String::from_utf8(c.to_vec()).unwrap());
        ScriptedReply::events(&pieces.collect::<Vec<_>>())
    })
    .await;
    let (mut link, connection) = connect(&server).await;
    let (sender, mut events) = event_queue(8);
    let params = raw(json!({"name": "x"}));
    let mut call = UpstreamCall::new("tools/call", PATIENCE).params(Some(&params));
    call.progress = true;
    call.events = Some(sender);
    let answer = connection.request(call).await.unwrap();
    assert!(answer.get().contains("done"));
    let mut steps = Vec::new();
    while let Some(CallEvent::Notification(progress)) = events.recv().await {
        let params: Value = serde_json::from_str(progress.params.unwrap().get()).unwrap();
        steps.push(params["progress"].as_u64().unwrap());
    }
    assert_eq!(steps, [1, 2, 3]);
    assert!(link.inbound.try_recv().is_err());
    link.end().await;
}

#[tokio::test]
async fn c3_a_listen_hears_until_it_is_dropped() {
    let server = modern(|asked| async move {
        let (sender, receiver) = mpsc::channel(8);
        tokio::spawn(async move {
            let say = |method: &str| event(&json!({"jsonrpc": "2.0", "method": method}));
            let _ = sender
                .send(say("notifications/subscriptions/acknowledged"))
                .await;
            let _ = sender.send(say("notifications/tools/list_changed")).await;
            asked.hung_up.cancelled().await;
        });
        ScriptedReply::Events(receiver)
    })
    .await;
    let (link, connection) = connect(&server).await;
    let (sender, mut events) = event_queue(8);
    let params = raw(json!({"notifications": {"toolsListChanged": true}}));
    let mut listen = UpstreamCall::new("subscriptions/listen", PATIENCE).params(Some(&params));
    listen.limit = None;
    listen.events = Some(sender);
    let heard = async {
        let mut heard = Vec::new();
        while heard.len() < 2 {
            match events.recv().await {
                Some(CallEvent::Notification(notification)) => heard.push(notification.method),
                other => panic!("{other:?}"),
            }
        }
        heard
    };
    tokio::select! {
        answer = connection.request(listen) => panic!("{answer:?}"),
        heard = heard => assert_eq!(heard, [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ]),
    }
    let asked = server.find("subscriptions/listen").unwrap();
    tokio::time::timeout(PATIENCE, asked.hung_up.cancelled())
        .await
        .expect("a closed stream");
    link.end().await;
}

#[tokio::test]
async fn d4_giving_up_closes_the_stream_and_that_cancels() {
    let server = modern(|asked| async move {
        match asked.tool() {
            "silent" => std::future::pending().await,
            "chatty" => {
                let (sender, receiver) = mpsc::channel(1);
                tokio::spawn(async move {
                    // Keep-alive comments are not progress.
                    while sender.send(": still here\n\n".into()).await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
                ScriptedReply::Events(receiver)
            }
            _ => ScriptedReply::Json(200, asked.result(text_result("fine"))),
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    let limit = Duration::from_millis(200);
    for tool in ["silent", "chatty"] {
        let error = call_within(&connection, tool, limit).await.unwrap_err();
        assert!(
            matches!(error, UpstreamError::Timeout { .. }),
            "{tool}: {error}"
        );
        let asked = server.seen().pop().unwrap();
        tokio::time::timeout(PATIENCE, asked.hung_up.cancelled())
            .await
            .expect("cancelled");
    }
    // The connection continues, and nothing else was sent.
    call(&connection, "fine").await.unwrap();
    assert_eq!(server.count("notifications/cancelled"), 0);
    assert_eq!(server.count("tools/call"), 3);
    link.end().await;
}

#[tokio::test]
async fn d4_progress_restarts_the_limit() {
    let server = modern(|asked| async move {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            for step in 0..12 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let _ = sender.send(event(&progress(&asked, step))).await;
            }
            let _ = sender.send(event(&asked.result(text_result("slow")))).await;
        });
        ScriptedReply::Events(receiver)
    })
    .await;
    let (link, connection) = connect(&server).await;
    let params = raw(json!({"name": "x"}));
    let mut call =
        UpstreamCall::new("tools/call", Duration::from_millis(900)).params(Some(&params));
    call.progress = true;
    connection
        .request(call)
        .await
        .expect("an answer after more than the limit");
    link.end().await;
}

#[tokio::test]
async fn c6_trap13_a_broken_modern_stream_is_lost_and_not_asked_again() {
    let server = modern(|asked| async move {
        match asked.tool() {
            "cut" => ScriptedReply::events(&[
                format!("id: 1\n{}", event(&progress(&asked, 1))),
                String::new(),
            ]),
            "ended" => ScriptedReply::events(&[": x\n\n".into()]),
            _ => ScriptedReply::Nothing,
        }
    })
    .await;
    let (mut link, connection) = connect(&server).await;
    for tool in ["cut", "ended", "reset"] {
        let error = call(&connection, tool).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Lost(_)), "{tool}: {error:?}");
    }
    assert_eq!(server.count("tools/call"), 3);
    assert_eq!(server.count("GET"), 0);
    until("the queue is read", || link.inbound.try_recv().is_err()).await;
    link.end().await;
}

#[tokio::test]
async fn d5_errors_are_the_servers_own_whatever_the_status() {
    let server = modern(|asked| async move {
        let status = asked.tool().parse().unwrap();
        let mut error = asked.error(-32602, "no such tool");
        error["error"]["data"] = json!({"hint": "look"});
        ScriptedReply::Json(status, error)
    })
    .await;
    let (link, connection) = connect(&server).await;
    for status in ["200", "400", "404", "500"] {
        match call(&connection, status).await {
            Err(UpstreamError::Rpc(error)) => {
                assert_eq!(
                    (error.code, &*error.message),
                    (-32602, "no such tool"),
                    "{status}"
                );
                assert_eq!(error.data.unwrap().get(), r#"{"hint":"look"}"#);
            }
            other => panic!("{status}: {other:?}"),
        }
    }
    link.end().await;
}

#[tokio::test]
async fn ended_connections_fail_what_is_in_flight_and_what_comes() {
    let server = modern(|_| std::future::pending()).await;
    let (link, connection) = connect(&server).await;
    let waiting = tokio::spawn({
        let connection = connection.clone();
        async move { call(&connection, "x").await }
    });
    until("the call arrived", || server.count("tools/call") == 1).await;
    tokio::time::timeout(PATIENCE, link.end())
        .await
        .expect("an end in time");
    assert!(matches!(
        waiting.await.unwrap(),
        Err(UpstreamError::Lost(_))
    ));
    assert!(matches!(
        call(&connection, "x").await,
        Err(UpstreamError::Lost(_))
    ));
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_connection_is_used_again_after_an_answered_stream() {
    let server = modern(|asked| async move {
        ScriptedReply::events(&[event(&asked.result(text_result("fine")))])
    })
    .await;
    let (link, connection) = connect(&server).await;
    for _ in 0..30 {
        call(&connection, "x").await.unwrap();
    }
    // A stream may still be ending when the next request needs a connection.
    assert!(server.connections() < 10, "{}", server.connections());
    link.end().await;
}
