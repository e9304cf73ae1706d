//! SPEC A12: what a server says beside the protocol can be read, safely.

use serde_json::{Value, json};

use crate::app::{App, fixture, fixtures, setup};

async fn logs(app: &App, query: &str) -> Vec<Value> {
    let path = format!("/api/mcp/servers/one/logs{query}");
    let lines = app.get(&path).await.expect(200);
    lines.as_array().unwrap().clone()
}

fn of<'l>(lines: &'l [Value], stream: &str) -> Vec<&'l str> {
    lines
        .iter()
        .filter(|line| line["stream"] == stream)
        .map(|line| line["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a12_stderr_lines_are_numbered_dated_and_read_in_parts() {
    let args = &[
        "--stderr", "first", "--stderr", "second", "--stderr", "third",
    ];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    app.until_status("one", "connected").await;
    let all = logs(&app, "").await;
    assert_eq!(of(&all, "stderr"), ["first", "second", "third"]);
    for (number, line) in all.iter().enumerate() {
        assert_eq!(line["seq"], number);
        assert!(line["at"].as_u64().unwrap() > 1_600_000_000_000, "{line}");
    }
    let texts = |lines: Vec<Value>| -> Vec<String> {
        of(&lines, "stderr")
            .into_iter()
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(texts(logs(&app, "?limit=1").await), ["third"]);
    assert_eq!(texts(logs(&app, "?from=1").await), ["second", "third"]);
    assert_eq!(texts(logs(&app, "?from=1&limit=1").await), ["third"]);
    assert!(logs(&app, "?from=99").await.is_empty());
    assert!(logs(&app, "?limit=0").await.is_empty());
    for query in ["?limit=x", "?from=-1", "?limit=1.5"] {
        let answer = app.get(&format!("/api/mcp/servers/one/logs{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {}", answer.text);
        let field = &query[1..query.find('=').unwrap()];
        assert_eq!(
            answer.body["error"]["details"][0]["field"], field,
            "{}",
            answer.text
        );
    }
    // Lines outlive the process that wrote them.
    app.act("one", "stop").await;
    assert_eq!(of(&logs(&app, "").await, "stderr").len(), 3);
}

#[tokio::test]
async fn a12_what_is_no_message_on_stdout_is_kept_and_harmless() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--noise"])]))
        .start()
        .await;
    app.until_status("one", "connected").await;
    let lines = logs(&app, "").await;
    let noise = of(&lines, "protocol").join("\n");
    assert!(noise.contains("Server listening on stdio"), "{noise}");
    assert!(!noise.contains('\u{1b}'), "{noise:?}");
}

#[tokio::test]
async fn a12_control_characters_reach_neither_log_nor_error() {
    // OSC 52 writes to the clipboard of a terminal that shows it.
    let script = r"printf 'a\033]52;c;aGk=\007b\r\nbell\007 \342\200\256gnp.exe\n' >&2; exit 1";
    let server = json!({"command": "sh", "args": ["-c", script]});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .start()
        .await;
    let record = app.until_status("one", "error").await;
    let error = record["error"].as_str().unwrap();
    let said = of(&logs(&app, "").await, "stderr").join("\n");
    for (place, text) in [("error", error), ("log", &said), ("stderr", &app.log())] {
        assert!(text.contains("\\u001b]52"), "{place}: {text:?}");
        for bad in ['\u{1b}', '\u{7}', '\u{202e}', '\r'] {
            assert!(!text.contains(bad), "{place}: {text:?}");
        }
    }
}

#[tokio::test]
async fn a12_secrets_that_a_server_prints_are_covered() {
    // On stderr, on stdout between messages, as an error, in its last words.
    let script = format!(
        "echo \"token is $TOKEN, key is $KEY\" >&2; echo \"stdout: $TOKEN\"; \
         exec '{}' --stderr \"again $TOKEN\" --crash-after 300",
        fixture()
    );
    let server = json!({
        "command": "sh", "args": ["-c", script, "sh", "--password", "arg-s3cret-value"],
        "env": {"TOKEN": "env-s3cret-value", "KEY": "${A_KEY}"},
    });
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .env("A_KEY", "var-s3cret-value")
        .env("RUST_LOG", "debug")
        .start()
        .await;
    app.until("one", |record| record["error"].is_string()).await;
    let lines = app.lines("one").await;
    assert!(
        lines.contains(&"token is ***, key is ***".to_owned()),
        "{lines:?}"
    );
    let record = app.server("one").await.to_string();
    for (place, text) in [
        ("logs", lines.join("\n")),
        ("record", record),
        ("log", app.log()),
    ] {
        assert!(text.contains("***"), "{place}: {text}");
        assert!(!text.contains("s3cret-value"), "{place}: {text}");
    }
}

#[tokio::test]
async fn a12_the_server_s_own_log_messages_are_kept() {
    let args = &["--era", "legacy", "--flood-notifications"];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    app.until_status("one", "connected").await;
    let start = std::time::Instant::now();
    loop {
        let lines = logs(&app, "").await;
        if of(&lines, "protocol")
            .iter()
            .any(|line| line.contains("[info] \"line "))
        {
            return;
        }
        assert!(start.elapsed() < crate::app::PATIENCE, "{lines:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a12_trap28_a_flood_of_stderr_is_bounded_and_stops_nobody() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--flood-stderr"]), ("two", &[])]))
        .start()
        .await;
    app.until_status("one", "connected").await;
    app.until_status("two", "connected").await;
    let newest = |lines: &[Value]| lines.last().unwrap()["seq"].as_u64().unwrap();
    let mut lines = logs(&app, "?limit=100000").await;
    let start = std::time::Instant::now();
    while newest(&lines) < 20_000 {
        assert!(
            start.elapsed() < crate::app::PATIENCE,
            "it flows: {}",
            newest(&lines)
        );
        lines = logs(&app, "?limit=100000").await;
    }
    assert!(lines.len() <= 1000, "{}", lines.len());
    let bytes: usize = lines
        .iter()
        .map(|line| line["text"].as_str().unwrap().len())
        .sum();
    assert!(bytes <= 256 << 10, "{bytes}");
    // Still answers, and still can be ended.
    assert_eq!(app.act("one", "stop").await["state"], "stopped");
    assert_eq!(app.server("two").await["status"], "connected");
}
