//! What is of the transport alone: what is a message, which forms an answer
//! has, who may ask.

use serde_json::{Value, json};

use super::{X, ask, call, legacy, modern, portway, post, said};

const BAD_REQUEST: i64 = -32600;

#[tokio::test]
async fn t_e4_what_is_not_a_message_is_400() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let rows: Vec<(&str, i64)> = vec![
        ("", -32700),
        ("{", -32700),
        ("\u{feff}{}", -32700),
        (&deep, -32700),
        ("{}", BAD_REQUEST),
        ("1", BAD_REQUEST),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, BAD_REQUEST),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            BAD_REQUEST,
        ),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, BAD_REQUEST),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
            BAD_REQUEST,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, BAD_REQUEST),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            BAD_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            BAD_REQUEST,
        ),
    ];
    for (body, code) in rows {
        let talk = client.post(json!(null)).body(body.to_owned()).send().await;
        let short: String = body.chars().take(60).collect();
        assert_eq!(talk.verdict().await, (400, Some(code)), "{short}");
    }
}

#[tokio::test]
async fn t_e5_ids_come_back_as_they_were_written() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    for id in [
        "0",
        "-7",
        "9007199254740992",
        r#""""#,
        r#""1""#,
        r#""é🦀\u00e9""#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let text = client
            .post(json!(null))
            .body(body)
            .send()
            .await
            .text()
            .await;
        assert_eq!(
            text,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        );
    }
}

#[tokio::test]
async fn k4_statuses_of_the_transport() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let rows = [
        (ask(&app, "GET", X), 405),
        (ask(&app, "DELETE", X), 405),
        (ask(&app, "PUT", X), 405),
        (ask(&app, "GET", X).header("mcp-session-id", "x"), 404),
        (ask(&app, "DELETE", X).header("mcp-session-id", "x"), 404),
        (client.listen().header("accept", "application/json"), 406),
        (
            client
                .request(1, "ping", json!({}))
                .header("accept", "text/html"),
            406,
        ),
        (
            client
                .request(1, "ping", json!({}))
                .header("content-type", "text/plain"),
            415,
        ),
        // A program may leave it out; a browser, which may act for a page of
        // another site, may not.
        (
            client.request(1, "ping", json!({})).without("content-type"),
            200,
        ),
        (
            client
                .request(1, "ping", json!({}))
                .without("content-type")
                .header("sec-fetch-site", "same-origin"),
            415,
        ),
        (
            client
                .request(1, "ping", json!({}))
                .without("content-type")
                .header("origin", &app.url),
            415,
        ),
        (
            client
                .request(1, "ping", json!({}))
                .without("content-type")
                .header("origin", "http://elsewhere.example"),
            403,
        ),
        (
            post(&app, "/api/mcp/servers", json!({})).without("content-type"),
            415,
        ),
        (client.request(1, "ping", json!({})).without("accept"), 200),
        (
            client.request(1, "ping", json!({})).header("accept", "*/*"),
            200,
        ),
        (post(&app, "/servers/none/mcp", json!({})), 404),
        (ask(&app, "GET", "/servers/none/mcp"), 404),
        (ask(&app, "OPTIONS", X), 405),
    ];
    for (request, status) in rows {
        let talk = request.send().await;
        let got = talk.status;
        assert!(
            talk.headers
                .keys()
                .all(|name| !name.as_str().starts_with("access-control"))
        );
        let text = talk.text().await;
        assert_eq!(got, status, "{text}");
        if status >= 400 {
            let body: Value = serde_json::from_str(&text).unwrap();
            assert!(body["error"]["message"].is_string(), "{text}");
        }
    }
    let unknown = post(&app, "/servers/none/mcp", json!({})).send().await;
    assert_eq!(unknown.json().await["error"]["code"], "NOT_FOUND");
    let old = ask(&app, "GET", X).send().await;
    assert_eq!(old.header("allow"), "POST");
}

#[tokio::test]
async fn k4_a_server_is_named_by_its_id_too() {
    let app = portway(&[]).await;
    let id = app.server("x").await["id"].as_str().unwrap().to_owned();
    let path = format!("/servers/{id}/mcp");
    let echo = modern(
        &app,
        &path,
        "tools/call",
        call("echo", json!({"text": "hi"})),
    );
    assert_eq!(said(&echo.send().await.answer().await), "hi");
    // It is one endpoint by two names.
    let client = legacy(&app, &path, "2025-11-25", json!({})).await;
    let named = post(
        &app,
        X,
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    );
    let named = named.header("mcp-session-id", &client.session);
    assert_eq!(named.send().await.status, 200);
}

#[tokio::test]
async fn k4_clients_that_take_one_form_get_that_form() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let only = |kind: &str| client.request(1, "ping", json!({})).header("accept", kind);
    let json_only = only("application/json").send().await;
    assert_eq!(json_only.header("content-type"), "application/json");
    assert_eq!(json_only.json().await["result"], json!({}));
    let stream_only = only("text/event-stream").send().await;
    assert!(stream_only.is_stream());
    assert_eq!(stream_only.header("x-accel-buffering"), "no");
    assert_eq!(stream_only.header("cache-control"), "no-store");
    assert_eq!(stream_only.answer().await["result"], json!({}));
    // What comes before the answer is left out where it cannot be sent.
    let steps =
        json!({"name": "progress", "arguments": {"steps": 3}, "_meta": {"progressToken": 1}});
    let quiet = client.request(2, "tools/call", steps.clone());
    let quiet = quiet.header("accept", "application/json").send().await;
    assert_eq!(said(&quiet.json().await), "3 steps");
    let quiet = modern(&app, X, "tools/call", steps);
    let quiet = quiet.header("accept", "application/json").send().await;
    assert_eq!(said(&quiet.json().await), "3 steps");
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(&app, X, "subscriptions/listen", listen);
    let refused = listen.header("accept", "application/json").send().await;
    assert_eq!(refused.status, 406);
    let found = modern(&app, X, "tools/list", json!({})).header("accept", "text/event-stream");
    assert!(found.send().await.answer().await["result"]["tools"].is_array());
}

#[tokio::test]
async fn e8_k3_endpoints_need_a_credential_and_upstream_sees_nothing_without() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    let app = portway(&["--record", record.to_str().unwrap()]).await;
    let call = || modern(&app, X, "tools/call", call("echo", json!({"text": "hi"})));
    let hello = || {
        post(
            &app,
            X,
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}),
        )
    };
    let wrong = [
        call().without("authorization"),
        call().header("authorization", "Bearer made-up"),
        call()
            .without("authorization")
            .header("x-api-key", "made-up"),
        call().header("x-api-key", "made-up"),
        hello().without("authorization"),
        hello().header("authorization", "Bearer made-up"),
        ask(&app, "GET", X).without("authorization"),
        ask(&app, "DELETE", X).without("authorization"),
        ask(&app, "GET", "/sse").without("authorization"),
        ask(&app, "GET", "/servers/x/sse").without("authorization"),
        post(&app, "/messages?sessionId=x", json!({})).without("authorization"),
        post(&app, "/mcp", json!({})).without("authorization"),
    ];
    for request in wrong {
        let talk = request.send().await;
        assert_eq!(talk.status, 401);
        assert_eq!(talk.header("www-authenticate"), "Bearer");
    }
    let seen = || std::fs::read_to_string(&record).unwrap();
    assert!(!seen().contains("tools/call"));
    let key = call()
        .without("authorization")
        .header("x-api-key", crate::app::TOKEN);
    assert_eq!(said(&key.send().await.answer().await), "hi");
    assert!(seen().contains("tools/call"));
}
