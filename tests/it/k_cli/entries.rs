use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::{run, running};
use crate::app::App;

/// The names of the tools that a key opens.
async fn opened(app: &App, key: &str) -> (u16, Vec<Value>) {
    let path = format!("/api/v1/mcp/{key}/tools");
    let answer = app.request("GET", &path, None, &[]).await;
    let items = answer.body["items"].as_array().cloned();
    let name = |tool: Value| tool["name"].clone();
    (
        answer.status,
        items.unwrap_or_default().into_iter().map(name).collect(),
    )
}

fn key_in(text: &str) -> String {
    let line = text.lines().find(|line| line.starts_with("key "));
    let key = line.and_then(|line| line.split_whitespace().nth(1));
    key.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[tokio::test]
async fn k5_the_command_shown_with_a_key_works_from_anywhere() {
    let app = running().await;
    let create = ["entries", "create", "me", "--tool", "one:echo"];
    let made = run(&app, &create).await.ok();
    let mut lines = made.lines();
    let line = lines.find_map(|line| line.strip_prefix("a command"));
    let elsewhere = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_portway")).parent().unwrap();
    let mut client = Command::new("/bin/sh")
        .args(["-c", line.unwrap()])
        .current_dir(&elsewhere)
        .env_clear()
        .env("PATH", programs)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }});
    let mut stdin = client.stdin.take().unwrap();
    stdin
        .write_all(format!("{hello}\n").as_bytes())
        .await
        .unwrap();
    let mut answers = BufReader::new(client.stdout.take().unwrap()).lines();
    let answer = tokio::time::timeout(Duration::from_secs(60), answers.next_line()).await;
    let answer: Value = serde_json::from_str(&answer.unwrap().unwrap().unwrap()).unwrap();
    assert_eq!(
        answer["result"]["protocolVersion"], "2025-11-25",
        "{answer}"
    );
    assert!(!elsewhere.path().join("data").exists());
}

#[tokio::test]
async fn k7_entries_from_the_first_to_the_last() {
    let app = running().await;
    let none = run(&app, &["entries", "ls"]).await;
    assert!(none.err.contains("portway entries create"), "{none:?}");

    let create = [
        "entries", "create", "code review", "--tool", "one:echo", "--tool", "one:add",
    ];
    let made = run(&app, &create).await.ok();
    let key = key_in(&made);
    for part in [
        &app.url,
        "this once",
        "claude mcp add",
        "portway connect --url",
    ] {
        assert!(made.contains(part), "{part}: {made}");
    }
    assert_eq!(
        opened(&app, &key).await,
        (200, vec![json!("echo"), json!("add")])
    );
    let shown = run(&app, &["entries", "show", "code review"]).await.ok();
    assert!(
        shown.contains("one:echo") && !shown.contains(&key),
        "{shown}"
    );
    let listed = run(&app, &["entries", "ls"]).await.ok();
    assert!(
        listed.contains("code review") && !listed.contains(&key),
        "{listed}"
    );

    // The same record of a tool is used again; another name is another.
    let bind = [
        "entries", "bind", "1", "one:echo", "two:echo", "--as", "echo", "--as", "say",
    ];
    run(&app, &bind).await.ok();
    let records = app.get("/api/v1/tools").await.expect(200);
    assert_eq!(records["total"], 3, "{records:#}");
    run(&app, &["entries", "unbind", "code review", "one:add"])
        .await
        .ok();
    let tools = vec![json!("echo"), json!("say")];
    assert_eq!(opened(&app, &key).await, (200, tools));

    run(&app, &["entries", "disable", "1", "--tool", "say"])
        .await
        .ok();
    assert_eq!(opened(&app, &key).await.1, [json!("echo")]);
    run(&app, &["entries", "enable", "1", "--tool", "two:echo"])
        .await
        .ok();
    assert_eq!(opened(&app, &key).await.1.len(), 2);
    run(&app, &["entries", "disable", "1"]).await.ok();
    assert_ne!(opened(&app, &key).await.0, 200);
    run(&app, &["entries", "enable", "1"]).await.ok();

    let rotated = run(&app, &["entries", "rotate", "code review", "--json"])
        .await
        .json();
    let new = rotated["api_key"].as_str().unwrap();
    assert_ne!(opened(&app, &key).await.0, 200);
    assert_eq!(opened(&app, new).await.0, 200);

    run(&app, &["entries", "rm", "1"]).await.fails(2, "--yes");
    run(&app, &["entries", "rm", "1", "--yes"]).await.ok();
    assert_ne!(opened(&app, new).await.0, 200);
    let listed = run(&app, &["entries", "ls", "--json"]).await.json();
    assert_eq!(listed, json!({"items": [], "total": 0}));
}

#[tokio::test]
async fn k7_entries_say_what_is_meant() {
    let app = running().await;
    for name in ["twin", "twin"] {
        let made = run(&app, &["entries", "create", name, "--json"])
            .await
            .json();
        assert!(
            made["api_key"].as_str().unwrap().starts_with("pwk_"),
            "{made}"
        );
    }
    for (args, code, told) in [
        (&["create"][..], 2, "<NAME>"),
        (&["create", "x", "--tool", "one"], 2, "is not server:tool"),
        (
            &[
                "create", "x", "--tool", "one:echo", "--as", "a", "--as", "b",
            ],
            2,
            "--as",
        ),
        (
            &["create", "x", "--tool", "one:echo", "--tool", "two:echo"],
            2,
            "--as",
        ),
        (
            &["create", "x", "--tool", "one:echo", "--as", "a b"],
            2,
            "name: must be",
        ),
        (&["create", "x", "--expires", "never"], 2, "30d"),
        (&["show", "nobody"], 1, "entries ls"),
        (&["show", "pwk_secret"], 2, "not by its key"),
        (&["show", "twin"], 2, "by its id: 1, 2"),
        (&["unbind", "1", "echo"], 1, "has no tool"),
        (&["rotate", "7"], 1, "7"),
        (&["frobnicate"], 2, "frobnicate"),
    ] {
        let said = run(&app, &[&["entries"], args].concat()).await;
        said.fails(code, told);
        assert!(!said.err.contains("pwk_secret"), "{said:?}");
    }
    let early = ["entries", "bind", "2", "later:tool"];
    let refused = run(&app, &early).await;
    refused.fails(2, "there is no server \"later\"; the nearest are");
    assert!(refused.err.contains("(set --allow-missing"), "{refused:?}");
    run(&app, &[&early[..], &["--allow-missing"]].concat())
        .await
        .ok();
    let expires = run(
        &app,
        &["entries", "create", "short", "--expires", "1d", "--json"],
    )
    .await;
    assert!(expires.json()["key"]["expires_at"].is_string());
}

#[tokio::test]
async fn k7_an_entry_gets_all_tools_of_a_server_or_is_told_to_have_none() {
    let app = running().await;
    let made = run(&app, &["entries", "create", "all", "--tool", "one:*"]).await;
    let key = key_in(&made.ok());
    let all = app.get("/api/mcp/servers/one/tools").await.expect(200);
    let count = all.as_array().unwrap().len();
    assert!(count > 1);
    assert_eq!(opened(&app, &key).await.1.len(), count);
    let listed = run(&app, &["entries", "ls"]).await.ok();
    let row = listed.lines().find(|line| line.contains(" all ")).unwrap();
    assert!(row.contains(&format!(" {count} ")), "{listed}");

    let bare = run(&app, &["entries", "create", "bare"]).await;
    assert!(bare.err.contains("portway entries bind"), "{bare:?}");
    let named = ["entries", "bind", "bare", "one:*", "--as", "x"];
    run(&app, &named).await.fails(2, "more than one tool");
    let none = ["entries", "bind", "bare", "nobody:*"];
    run(&app, &none).await.fails(1, "nobody");
    let off = ["entries", "bind", "bare", "broken:*"];
    let off = run(&app, &off).await;
    assert!(off.code == Some(1) && off.err.contains("broken"), "{off:?}");
}
