//! What the bridge carries: raw, large, many at once, and only for those who
//! may.

use serde_json::json;

use super::{StdioClient, command, error, refused, text};
use crate::app::{eventually, setup};
use crate::e_door::{StoreBeforeStart, StoredEntry};
use crate::mcp_front::portway;

#[tokio::test]
async fn k5_ids_and_payloads_stay_as_they_are() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-11-25", json!({})).await;
    // Odd but valid: spaces, escapes, members that nobody knows.
    client
        .raw(r#"  {"id" : "\u0061\/1", "jsonrpc":"2.0","vendor":{"x":1}, "method":"tools/call","params":{"name":"echo","arguments":{"text":"9007199254740993 \ud83d\ude00"}}}  "#)
        .await;
    let answer = client.answer("a/1").await;
    assert_eq!(text(&answer), "9007199254740993 😀");
    for id in [json!(0), json!(-7), json!("0"), json!(9007199254740992u64)] {
        client
            .send(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
            .await;
        assert_eq!(client.answer(id).await["result"], json!({}));
    }
    for (bad, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\"}", -32600),
        ("[]", -32600),
    ] {
        let before = client.seen().len();
        client.raw(bad).await;
        eventually("a refusal", || client.seen().len() > before).await;
        assert_eq!(
            client.seen().last().unwrap()["error"]["code"],
            code,
            "{bad}"
        );
    }
    client.raw("").await;
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn k5_large_results_and_many_calls_pass() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-11-25", json!({})).await;
    let big = 2 << 20;
    let whole = client.call("big", json!({"bytes": big})).await;
    assert_eq!(whole.len(), big);
    let long = "x".repeat(1 << 20);
    assert_eq!(client.call("echo", json!({"text": long})).await, long);

    // A slow one delays nobody, in either era.
    let slow = client.begin("tools/call", json!({"name": "hang"})).await;
    let mut ids = Vec::new();
    for n in 0..64 {
        let params = json!({"name": "sleep", "arguments": {"ms": 20, "text": format!("n{n}")}});
        ids.push(match n % 2 {
            0 => client.begin("tools/call", params).await,
            _ => client.begin_modern("tools/call", params).await,
        });
    }
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(text(&client.answer(id).await), format!("n{n}"));
    }
    assert!(!client.seen().iter().any(|m| m["id"] == slow));
}

#[tokio::test]
async fn k5_a_message_too_large_for_the_gateway_is_refused_and_no_more() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-11-25", json!({})).await;
    let long = "x".repeat(5 << 20);
    let params = json!({"name": "echo", "arguments": {"text": long}});
    let refused = client.ask("tools/call", params).await;
    assert!(error(&refused).contains("large"), "{refused}");
    assert_eq!(client.call("echo", json!({"text": "a"})).await, "a");
}

async fn with_entry() -> (crate::app::App, StoredEntry) {
    let start = setup().mcp(crate::app::fixtures(&[("x", &[])]));
    let before = StoreBeforeStart::of(&start).await;
    let made = before.entry("mine", &["echo", "add"]).await;
    drop(before);
    let app = start.start().await;
    app.until_status("x", "connected").await;
    (app, made)
}

#[tokio::test]
async fn k5_an_entry_sees_its_tools_only() {
    let (app, made) = with_entry().await;
    let mut by_variable = command(&app.setup, &[]);
    by_variable.env("PORTWAY_ENTRY_KEY", &made.key);
    let by_argument = command(&app.setup, &["--entry", &made.key]);
    for command in [by_variable, by_argument] {
        let mut client = StdioClient::run(command);
        client.hello("2025-11-25", json!({})).await;
        for modern in [false, true] {
            let list = match modern {
                false => client.ask("tools/list", json!({})).await,
                true => client.ask_modern("tools/list", json!({})).await,
            };
            let tools = list["result"]["tools"].as_array().unwrap();
            let mut names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
            names.sort();
            assert_eq!(names, [Some("add"), Some("echo")]);
        }
        assert_eq!(client.call("echo", json!({"text": "a"})).await, "a");
        let other = client.ask("tools/call", json!({"name": "pid"})).await;
        assert_eq!(other["error"]["code"], -32602);
        assert_eq!(client.close().await, Some(0));
    }
}

#[tokio::test]
async fn k5_a_key_or_token_that_is_not_taken_is_told_to_both_sides() {
    let (app, _) = with_entry().await;
    let mut wrong_key = command(&app.setup, &[]);
    wrong_key.env("PORTWAY_ENTRY_KEY", "pwk_wrong-key-0123456789");
    let mut wrong_token = command(&app.setup, &[]);
    wrong_token.env("PORTWAY_ADMIN_TOKEN", "another-token-0123456789");
    for (command, advice) in [
        (wrong_key, "PORTWAY_ENTRY_KEY"),
        (wrong_token, "PORTWAY_ADMIN_TOKEN"),
    ] {
        let mut client = StdioClient::run(command);
        let hello = client.hello("2025-11-25", json!({})).await;
        assert!(error(&hello).contains(advice), "{hello}");
        eventually("it complains", || client.log().contains(advice)).await;
        assert!(!client.log().contains("0123456789"), "{}", client.log());
        let again = client.ask_modern("tools/list", json!({})).await;
        assert!(error(&again).contains(advice), "{again}");
        assert_eq!(client.log().matches(advice).count(), 1, "once is enough");
        assert_eq!(client.close().await, Some(4));
    }
}

#[tokio::test]
async fn k5_wrong_arguments_and_no_gateway_say_what_to_do() {
    let alone = setup();
    // The usual address may be that of a Portway beside the tests.
    let mut nobody = command(&alone, &["--no-start"]);
    nobody.env("PORTWAY_LISTEN", "127.0.0.1:1");
    let (code, text) = refused(nobody).await;
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("no Portway runs for this project"), "{text}");
    assert!(!alone.path().join("data").exists(), "nothing is made");
    let (code, text) = refused(command(&alone, &["--url", "http://127.0.0.1:1"])).await;
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("http://127.0.0.1:1"), "{text}");
    for args in [
        &["--entry", "k", "--server", "x"][..],
        &["--url", "nowhere"],
        &["--linger", "long"],
        &["--unknown"],
    ] {
        let (code, text) = refused(command(&alone, args)).await;
        assert_eq!(code, Some(2), "{args:?}: {text}");
        assert!(text.contains("--"), "{args:?}: {text}");
    }
    let mut both = command(&alone, &["--server", "x"]);
    both.env("PORTWAY_ENTRY_KEY", "k");
    let (code, text) = refused(both).await;
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("PORTWAY_ENTRY_KEY"), "{text}");
}

#[tokio::test]
async fn k5_without_a_start_it_keeps_to_its_own_project() {
    let (app, made) = with_entry().await;
    let listen = app.url.trim_start_matches("http://");
    let alone = setup();
    // At the usual address is another project's, which would take the key.
    let mut other = command(&alone, &["--no-start"]);
    other.env("PORTWAY_LISTEN", listen);
    other.env("PORTWAY_ENTRY_KEY", &made.key);
    let (code, text) = refused(other).await;
    assert_eq!(code, Some(3), "{text}");
    let url = format!("the one at {} is another one's", app.url);
    assert!(text.contains(&url), "{text}");
    assert!(text.contains("--url"), "{text}");
    // One that was there, and has ended.
    std::fs::create_dir(alone.path().join("data")).unwrap();
    let address = alone.path().join("data/address");
    std::fs::write(address, &app.url).unwrap();
    let (code, text) = refused(command(&alone, &["--no-start"])).await;
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("no Portway runs for this project"), "{text}");
}

#[tokio::test]
async fn k5_an_unknown_server_or_filter_is_named() {
    let app = portway(&[]).await;
    for args in [&["--server", "nobody"][..], &["--filter", "nobody"]] {
        let mut client = StdioClient::start(&app.setup, args);
        let hello = client.hello("2025-11-25", json!({})).await;
        assert!(error(&hello).contains("nobody"), "{hello}");
        assert_eq!(client.close().await, Some(0));
    }
}
