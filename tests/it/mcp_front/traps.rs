//! The traps of a naive gateway, on the side of its clients: legacy ones, and
//! where the eras meet.

use serde_json::{Value, json};

use super::{MODERN, X, ask, call, legacy, modern, modern_body, portway, post, said};

const ELICITS: &str = "elicitation/create";

#[tokio::test]
async fn trap01_the_era_is_in_the_body_not_in_the_method_or_header() {
    let app = portway(&[]).await;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let body = modern_body(1, "initialize", hello);
    let talk = post(&app, X, &body)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "initialize");
    let talk = talk.send().await;
    assert_eq!(talk.header("mcp-session-id"), "");
    assert_eq!(talk.verdict().await, (404, Some(-32601)));
    // A session and a legacy header do not make it legacy.
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let body = modern_body(1, "tools/list", json!({}));
    let talk = client
        .post(body)
        .header("mcp-protocol-version", "2025-11-25");
    assert_eq!(talk.send().await.verdict().await, (400, Some(-32020)));
}

#[tokio::test]
async fn trap02_a_stray_session_id_does_not_matter_to_modern_requests() {
    for era in ["both", "legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        let client = legacy(&app, X, "2025-11-25", json!({})).await;
        let ended = client.session.clone();
        let gone = ask(&app, "DELETE", X).header("mcp-session-id", &ended);
        assert_eq!(gone.send().await.status, 204);
        for stray in ["made-up", &ended, ""] {
            let echo = modern(&app, X, "tools/call", call("echo", json!({"text": "hi"})));
            let echo = echo
                .header("mcp-session-id", stray)
                .header("last-event-id", "p1-1");
            let talk = echo.send().await;
            assert_eq!(talk.status, 200, "{era} {stray:?}");
            assert_eq!(talk.header("mcp-session-id"), "");
            assert_eq!(said(&talk.answer().await), "hi");
        }
    }
}

#[tokio::test]
async fn trap08_each_era_gets_its_own_results() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        let client = legacy(&app, X, "2025-11-25", json!({})).await;
        let empty = [
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "info"})),
            ("resources/subscribe", json!({"uri": "fixture://watched"})),
            ("resources/unsubscribe", json!({"uri": "fixture://watched"})),
        ];
        for (method, params) in empty {
            let answer = client
                .request(1, method, params)
                .send()
                .await
                .answer()
                .await;
            assert_eq!(
                answer,
                json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
                "{method}"
            );
        }
        let both = [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("prompts/list", json!({})),
            ("tools/call", call("echo", json!({"text": "hi"}))),
            ("resources/read", json!({"uri": "fixture://text"})),
        ];
        for (method, params) in both {
            let old = client.request(1, method, params.clone()).send().await;
            let old = old.answer().await["result"].take();
            assert!(old.is_object(), "{era} {method}");
            for key in ["resultType", "ttlMs", "cacheScope"] {
                assert!(old.get(key).is_none(), "{era} {method} {old}");
            }
            let new = modern(&app, X, method, params).send().await;
            let new = new.answer().await["result"].take();
            assert_eq!(new["resultType"], "complete", "{era} {method}");
        }
    }
}

#[tokio::test]
async fn trap10_layout_does_not_break_lines_or_events() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    let app = portway(&["--era", "legacy", "--record", record.to_str().unwrap()]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let arguments = "{\n  \"z\": 1,\r\n  \"text\": \"two\\nlines\",\n \"a\" : [ 1.0,\n 2 ]\n }";
    let body = format!(
        "{{\n \"jsonrpc\": \"2.0\",\n \"id\" : \n 5,\n \"method\": \"tools/call\",\n \"params\": {{\n \"name\": \"echo\",\n \"arguments\": {arguments} }}\n}}\n"
    );
    let talk = client.post(json!(null)).body(body).send().await;
    assert_eq!(said(&talk.answer().await), "two\nlines");
    // On a stream each message is one line of data.
    let body = client.tool(6, "echo", json!({"text": "two\nlines"}));
    let text = body
        .header("accept", "text/event-stream")
        .send()
        .await
        .text()
        .await;
    let data: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("data: {"))
        .collect();
    assert_eq!(data.len(), 1, "{text}");
    let seen = std::fs::read_to_string(&record).unwrap();
    assert!(
        seen.contains(r#""arguments":{"z":1,"text":"two\nlines","a":[1.0,2]}"#),
        "{seen}"
    );
}

#[tokio::test]
async fn trap16_a_call_that_asks_back_has_a_stream_to_ask_on() {
    for era in ["legacy", "modern"] {
        for version in ["2025-06-18", "2025-11-25"] {
            let app = portway(&["--era", era]).await;
            let client = legacy(&app, X, version, json!({"elicitation": {}})).await;
            let mut talk = client.tool(3, "elicit", json!({})).send().await;
            assert!(talk.is_stream(), "{era} {version}");
            let (_, question) = talk.message().await.unwrap();
            assert_eq!(question["method"], ELICITS);
            let answer = json!({"action": "accept", "content": {"name": "Ada"}});
            client.reply(&question["id"], answer).await;
            let (_, answer) = talk.message().await.unwrap();
            assert_eq!(answer["id"], 3);
            assert!(said(&answer).contains("Ada"), "{answer}");
            assert!(talk.event().await.is_none(), "the answer is the end");
            // Whatever needs no stream gets none.
            let quick = client.tool(4, "echo", json!({"text": "hi"})).send().await;
            let quick_form = quick.header("content-type").to_owned();
            assert_eq!(said(&quick.answer().await), "hi");
            if version == "2025-06-18" {
                assert_eq!(quick_form, "application/json");
            }
        }
    }
}

#[tokio::test]
async fn trap23_old_clients_get_no_empty_events() {
    let app = portway(&[]).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let client = legacy(&app, X, version, json!({})).await;
        let mut listening = client.listen().send().await;
        assert_eq!(listening.status, 200);
        let steps = json!({"name": "progress", "arguments": {"steps": 2, "ms": 100},
            "_meta": {"progressToken": "t"}});
        let mut talk = client.request(1, "tools/call", steps).send().await;
        assert!(talk.is_stream());
        let mut count = 0;
        while let Some(event) = talk.event().await {
            let message: Value = serde_json::from_slice(&event.data).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            assert!(event.id.is_some() && event.retry.is_none());
            count += 1;
        }
        assert_eq!(count, 3, "{version}");
        drop(
            client
                .tool(2, "toggle_tool", json!({}))
                .send()
                .await
                .answer()
                .await,
        );
        let event = listening.event().await.unwrap();
        assert!(!event.data.is_empty());
    }
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let mut talk = client.tool(1, "sleep", json!({"ms": 4000})).send().await;
    let first = talk.event().await.unwrap();
    assert!(first.data.is_empty() && first.id.is_some() && first.retry.is_some());
    let second = talk.event().await.unwrap();
    assert!(second.is_message() && second.id.is_some());
    assert!(talk.event().await.is_none());
    let mut listening = client.listen().send().await;
    let first = listening.event().await.unwrap();
    assert!(first.data.is_empty() && first.id.is_some());
}

#[tokio::test]
async fn trap26_requests_are_served_before_the_client_says_it_is_ready() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let answer = client
        .tool(1, "echo", json!({"text": "hi"}))
        .send()
        .await
        .answer()
        .await;
    assert_eq!(said(&answer), "hi");
    client.notify("notifications/initialized", json!({})).await;
}

#[tokio::test]
async fn trap27_nothing_waits_for_a_get_stream() {
    let app = portway(&["--no-get"]).await;
    assert_eq!(ask(&app, "GET", X).send().await.status, 405);
    let client = legacy(&app, X, "2025-11-25", json!({"elicitation": {}})).await;
    let mut talk = client.tool(1, "elicit", json!({})).send().await;
    let (_, question) = talk.message().await.unwrap();
    client
        .reply(&question["id"], json!({"action": "decline"}))
        .await;
    assert!(said(&talk.answer().await).contains("decline"));
}

#[tokio::test]
async fn trap31_batches_are_for_one_revision_alone() {
    let app = portway(&[]).await;
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = legacy(&app, X, version, json!({})).await;
        let talk = client.post(json!([ping(1)])).send().await;
        assert_eq!(talk.verdict().await, (400, Some(-32600)), "{version}");
    }
    let alone = post(&app, X, json!([ping(1)])).send().await;
    assert_eq!(alone.verdict().await, (400, Some(-32600)));

    let client = legacy(&app, X, "2025-03-26", json!({})).await;
    let modern = modern_body(1, "tools/list", json!({}));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let many: Vec<_> = (0..33).map(ping).collect();
    for bad in [
        json!([]),
        json!([modern]),
        json!([ping(1), hello]),
        json!([{}]),
        json!(many),
    ] {
        let talk = client.post(bad.clone()).send().await;
        assert_eq!(talk.verdict().await, (400, Some(-32600)), "{bad}");
    }
    let talk = client.post(json!([told, told])).send().await;
    assert_eq!((talk.status, talk.text().await.as_str()), (202, ""));

    let echo = json!({"jsonrpc": "2.0", "id": "e", "method": "tools/call",
        "params": call("echo", json!({"text": "hi"}))});
    let talk = client
        .post(json!([told, ping(1), echo, ping(2)]))
        .send()
        .await;
    let answers = talk.json().await;
    let mut ids: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, [r#""e""#, "1", "2"]);

    // What comes before the last answer makes a stream of it.
    let steps = json!({"jsonrpc": "2.0", "id": "p", "method": "tools/call", "params":
        {"name": "progress", "arguments": {"steps": 2, "ms": 20}, "_meta": {"progressToken": 1}}});
    let mut talk = client.post(json!([ping(1), steps])).send().await;
    assert!(talk.is_stream());
    let mut answers = Vec::new();
    while let Some((_, message)) = talk.message().await {
        answers.extend(message.get("id").cloned());
    }
    assert_eq!(answers, [json!(1), json!("p")]);
}

#[tokio::test]
async fn trap32_credentials_of_the_client_stay_with_us() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    let record_to = record.to_str().unwrap();
    let upstream = crate::remote::fixture(&["--http", "0", "--record", record_to]).await;
    let app = crate::app::setup()
        .mcp(json!({"mcpServers": {"x": {"url": upstream.url, "headers": {"X-Own": "ours"}}}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let secrets = [
        ("cookie", "canary=1"),
        ("x-api-key", crate::app::TOKEN),
        ("x-canary", "canary"),
    ];
    let mut old = client.tool(1, "echo", json!({"text": "hi"}));
    let mut new = modern(&app, X, "tools/call", call("echo", json!({"text": "hi"})));
    for (name, value) in secrets {
        old = old.header(name, value);
        new = new.header(name, value);
    }
    assert_eq!(said(&old.send().await.answer().await), "hi");
    assert_eq!(said(&new.send().await.answer().await), "hi");
    let seen = std::fs::read_to_string(&record).unwrap();
    assert!(seen.contains("tools/call") && seen.contains("ours"));
    for secret in [
        "canary",
        crate::app::TOKEN,
        &client.session,
        "authorization",
    ] {
        assert!(!seen.contains(secret), "{secret} reached the server");
    }
}
