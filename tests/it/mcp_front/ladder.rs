//! The ladder by which a POST is judged: era by the body, then one check
//! after the other, each with its own status and code.

use serde_json::{Value, json};

use super::{BOTH, MODERN, X, ask, call, legacy, modern, modern_body, portway, post, said};

const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED: i64 = -32022;
const NOT_FOUND: i64 = -32601;
const BAD_PARAMS: i64 = -32602;
const BAD_REQUEST: i64 = -32600;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// One case: the body, the headers that differ from the right ones (None
/// takes one away), the status and the code.
type Case = (
    &'static str,
    Value,
    &'static [(&'static str, Option<&'static str>)],
    u16,
    Option<i64>,
);

fn without(key: &str) -> Value {
    let mut body = modern_body(1, "tools/list", json!({}));
    body["params"]["_meta"].as_object_mut().unwrap().remove(key);
    body
}

fn with(key: &str, value: Value) -> Value {
    modern_body(1, "tools/list", json!({"_meta": {key: value}}))
}

fn cases() -> Vec<Case> {
    let list = || modern_body(1, "tools/list", json!({}));
    let echo = || modern_body(1, "tools/call", call("echo", json!({"text": "hi"})));
    let region = |region: Value| modern_body(1, "tools/call", call("region", region));
    let other = |method: &str| modern_body(1, method, json!({}));
    let bad = |code| (400, Some(code));
    let fine = (200, None);
    let rows: Vec<(_, _, &'static [(_, _)], _)> = vec![
        ("all is well", list(), &[], fine),
        // 1. The envelope.
        (
            "no capabilities",
            without(CAPABILITIES),
            &[],
            bad(BAD_PARAMS),
        ),
        ("no version", without(VERSION), &[], bad(BAD_PARAMS)),
        (
            "no params",
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            &[],
            bad(BAD_PARAMS),
        ),
        (
            "capabilities are a list",
            with(CAPABILITIES, json!([])),
            &[],
            bad(BAD_PARAMS),
        ),
        (
            "version is a number",
            with(VERSION, json!(1)),
            &[],
            bad(BAD_PARAMS),
        ),
        (
            "_meta is text",
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": "x"}}),
            &[],
            bad(BAD_PARAMS),
        ),
        (
            "bad log level",
            with("io.modelcontextprotocol/logLevel", json!("loud")),
            &[],
            bad(BAD_PARAMS),
        ),
        (
            "envelope before headers",
            without(CAPABILITIES),
            &[("mcp-method", None)],
            bad(BAD_PARAMS),
        ),
        // 2. The version header equals the body.
        (
            "no version header",
            list(),
            &[("mcp-protocol-version", None)],
            bad(HEADER_MISMATCH),
        ),
        (
            "legacy header",
            list(),
            &[("mcp-protocol-version", Some("2025-11-25"))],
            bad(HEADER_MISMATCH),
        ),
        (
            "another version in the header",
            with(VERSION, json!("v999")),
            &[],
            bad(HEADER_MISMATCH),
        ),
        (
            "two version headers",
            list(),
            &[("+mcp-protocol-version", Some(MODERN))],
            bad(HEADER_MISMATCH),
        ),
        // 3. The version is one we speak.
        (
            "unknown version",
            with(VERSION, json!("v999")),
            &[("mcp-protocol-version", Some("v999"))],
            bad(UNSUPPORTED),
        ),
        (
            "legacy version in the envelope",
            with(VERSION, json!("2025-11-25")),
            &[("mcp-protocol-version", Some("2025-11-25"))],
            bad(UNSUPPORTED),
        ),
        (
            "version before method",
            with(VERSION, json!("v9")),
            &[("mcp-protocol-version", Some("v9")), ("mcp-method", None)],
            bad(UNSUPPORTED),
        ),
        // 4. Mcp-Method and Mcp-Name.
        (
            "no method header",
            list(),
            &[("mcp-method", None)],
            bad(HEADER_MISMATCH),
        ),
        (
            "another method",
            list(),
            &[("mcp-method", Some("prompts/list"))],
            bad(HEADER_MISMATCH),
        ),
        (
            "method in capitals",
            list(),
            &[("mcp-method", Some("TOOLS/LIST"))],
            bad(HEADER_MISMATCH),
        ),
        (
            "method twice",
            list(),
            &[("+mcp-method", Some("tools/list"))],
            bad(HEADER_MISMATCH),
        ),
        (
            "space around the method",
            list(),
            &[("mcp-method", Some("  tools/list\t"))],
            fine,
        ),
        ("no name header", echo(), &[], bad(HEADER_MISMATCH)),
        (
            "another name",
            echo(),
            &[("mcp-name", Some("danger"))],
            bad(HEADER_MISMATCH),
        ),
        (
            "name twice",
            echo(),
            &[("mcp-name", Some("echo")), ("+mcp-name", Some("echo"))],
            bad(HEADER_MISMATCH),
        ),
        ("the name", echo(), &[("mcp-name", Some("echo"))], fine),
        (
            "space around the name",
            echo(),
            &[("mcp-name", Some("  echo  "))],
            fine,
        ),
        (
            "the name in base64",
            echo(),
            &[("mcp-name", Some("=?base64?ZWNobw==?="))],
            fine,
        ),
        (
            "bad base64",
            echo(),
            &[("mcp-name", Some("=?base64?ZWNobw?="))],
            bad(HEADER_MISMATCH),
        ),
        (
            "headers before the method is known",
            other("no/such"),
            &[("mcp-method", Some("x"))],
            bad(HEADER_MISMATCH),
        ),
        // 5. The method is one of the era.
        (
            "unknown method",
            other("no/such"),
            &[],
            (404, Some(NOT_FOUND)),
        ),
        (
            "a method of the other era",
            other("ping"),
            &[],
            (404, Some(NOT_FOUND)),
        ),
        (
            "subscribing the old way",
            other("resources/subscribe"),
            &[],
            (404, Some(NOT_FOUND)),
        ),
        (
            "a server's method",
            other("roots/list"),
            &[],
            (404, Some(NOT_FOUND)),
        ),
        (
            "an extension we do not have",
            other("tasks/get"),
            &[],
            (404, Some(NOT_FOUND)),
        ),
        // 6. Mcp-Param-*.
        (
            "no parameter header",
            region(json!({"region": "eu"})),
            &[("mcp-name", Some("region"))],
            bad(HEADER_MISMATCH),
        ),
        (
            "another parameter",
            region(json!({"region": "eu"})),
            &[
                ("mcp-name", Some("region")),
                ("mcp-param-region", Some("us")),
            ],
            bad(HEADER_MISMATCH),
        ),
        (
            "a parameter twice",
            region(json!({"region": "eu"})),
            &[
                ("mcp-name", Some("region")),
                ("mcp-param-region", Some("eu")),
                ("+mcp-param-region", Some("eu")),
            ],
            bad(HEADER_MISMATCH),
        ),
        (
            "the parameter",
            region(json!({"region": "eu"})),
            &[
                ("mcp-name", Some("region")),
                ("mcp-param-region", Some("eu")),
            ],
            fine,
        ),
        (
            "the parameter in base64",
            region(json!({"region": "eu"})),
            &[
                ("mcp-name", Some("region")),
                ("mcp-param-region", Some("=?base64?ZXU=?=")),
            ],
            fine,
        ),
        (
            "no argument, no header",
            region(json!({"region": null})),
            &[("mcp-name", Some("region"))],
            fine,
        ),
        // 7. The gateway's own verdicts.
        (
            "unknown tool",
            modern_body(1, "tools/call", call("none", json!({}))),
            &[("mcp-name", Some("none"))],
            (200, Some(BAD_PARAMS)),
        ),
        (
            "no name at all",
            modern_body(1, "tools/call", json!({})),
            &[],
            (200, Some(BAD_PARAMS)),
        ),
    ];
    let split = |(what, body, headers, (status, code))| (what, body, headers, status, code);
    rows.into_iter().map(split).collect()
}

#[tokio::test]
async fn k4_modern_requests_are_judged_in_order() {
    let app = portway(&[]).await;
    for (what, body, changes, status, code) in cases() {
        let method = body["method"].as_str().unwrap().to_owned();
        let mut request = post(&app, X, &body)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", &method);
        for (name, value) in changes {
            request = match (name.strip_prefix('+'), value) {
                (Some(name), Some(value)) => request.also(name, value),
                (None, Some(value)) => request.header(name, value),
                (_, None) => request.without(name),
            };
        }
        let talk = request.send().await;
        let got = talk.status;
        let answer = talk.answer().await;
        assert_eq!(
            (got, answer["error"]["code"].as_i64()),
            (status, code),
            "{what}: {answer}"
        );
        assert_eq!(answer["id"], 1, "{what}: {answer}");
    }
}

#[tokio::test]
async fn k4_an_unsupported_version_names_those_we_speak() {
    let app = portway(&[]).await;
    let body = with(VERSION, json!("v999.0.0"));
    let talk = post(&app, X, body)
        .header("mcp-protocol-version", "v999.0.0")
        .header("mcp-method", "tools/list");
    let answer = talk.send().await.json().await;
    let data = json!({"supported": [MODERN], "requested": "v999.0.0"});
    assert_eq!(answer["error"]["data"], data);
}

#[tokio::test]
async fn k4_legacy_requests_are_judged_in_order() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let ping = || json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let session = client.session.as_str();
    let rows: Vec<(&str, super::Ask<'_>, u16, Option<i64>)> = vec![
        ("all is well", client.post(ping()), 200, None),
        ("no session", post(&app, X, ping()), 400, Some(BAD_REQUEST)),
        (
            "unknown session",
            client.post(ping()).header("mcp-session-id", "x"),
            404,
            Some(-32001),
        ),
        (
            "two sessions",
            client.post(ping()).also("mcp-session-id", session),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "its version",
            client
                .post(ping())
                .header("mcp-protocol-version", "2025-11-25"),
            200,
            None,
        ),
        (
            "another legacy version",
            client
                .post(ping())
                .header("mcp-protocol-version", "2025-03-26"),
            200,
            None,
        ),
        (
            "a version that never was",
            client
                .post(ping())
                .header("mcp-protocol-version", "2025-01-01"),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "no version but a word",
            client.post(ping()).header("mcp-protocol-version", "latest"),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "modern by its header alone",
            client.post(ping()).header("mcp-protocol-version", MODERN),
            400,
            Some(BAD_PARAMS),
        ),
        (
            "later still",
            client
                .post(ping())
                .header("mcp-protocol-version", "2027-01-01"),
            400,
            Some(BAD_PARAMS),
        ),
        (
            "unknown method",
            client.request(7, "no/such", json!({})),
            200,
            Some(NOT_FOUND),
        ),
        (
            "a modern method",
            client.request(7, "server/discover", json!({})),
            200,
            Some(NOT_FOUND),
        ),
    ];
    for (what, request, status, code) in rows {
        let talk = request.send().await;
        let got = talk.status;
        let answer = talk.answer().await;
        let verdict = (got, answer["error"]["code"].as_i64());
        assert_eq!(verdict, (status, code), "{what}: {answer}");
        assert_eq!(answer["id"], 7, "{what}");
    }
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let reply = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
    for body in [told, reply] {
        assert_eq!(client.post(body.clone()).send().await.status, 202);
        let nobody = post(&app, X, &body).send().await;
        assert_eq!(nobody.status, 400);
        let stranger = client.post(body).header("mcp-session-id", "x");
        assert_eq!(stranger.send().await.status, 404);
    }
}

#[tokio::test]
async fn threat_e4_what_is_not_a_message_is_400() {
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
async fn threat_e5_ids_come_back_as_they_were_written() {
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
        (
            client.request(1, "ping", json!({})).without("content-type"),
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
    let _ = BOTH;
}

#[tokio::test]
async fn e8_k3_endpoints_need_a_credential_and_upstream_sees_nothing_without() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    let app = portway(&["--record", record.to_str().unwrap()]).await;
    let before = std::fs::read_to_string(&record).unwrap().lines().count();
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
    let after = std::fs::read_to_string(&record).unwrap().lines().count();
    assert_eq!(before, after);
    let key = call()
        .without("authorization")
        .header("x-api-key", crate::app::TOKEN);
    assert_eq!(said(&key.send().await.answer().await), "hi");
}
