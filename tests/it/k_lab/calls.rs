//! The lab calls tools: only those it was told to, and it tells what it saw
//! without the secrets that were in it.

use serde_json::{Value, json};

use super::{Lab, hold};

#[tokio::test]
async fn k7_lab_tries_calls_only_when_told_and_finds_out_who_is_honest() {
    let sleep: &[&str] = &["--call", "sleep", "{\"ms\": 900}"];
    let steps: &[&str] = &["--call", "progress", "{\"steps\": 4, \"ms\": 100}"];
    let toggle: &[&str] = &["--call", "toggle_tool", "{}"];
    hold(&[
        (
            sleep,
            &[],
            &[
                ("call", "ok", "sleep"),
                ("cancel", "ok", "stops"),
                ("during a call", "ok", "after"),
            ],
        ),
        (
            sleep,
            &["--ignore-cancel"],
            &[("cancel", "warn", "ignored")],
        ),
        (
            sleep,
            &["--serial"],
            &[("during a call", "warn", "nobody else")],
        ),
        (
            steps,
            &["--era", "legacy"],
            &[("progress", "ok", "4 reports")],
        ),
        (
            steps,
            &["--odd-progress", "falling"],
            &[("progress", "warn", "does not rise")],
        ),
        (
            steps,
            &["--odd-progress", "foreign"],
            &[("progress", "warn", "nobody gave")],
        ),
        (
            steps,
            &["--odd-progress", "late"],
            &[("progress", "warn", "after the answer")],
        ),
        (
            toggle,
            &["--era", "legacy"],
            &[("list_changed", "ok", "said so")],
        ),
        (
            toggle,
            &["--mute-changes"],
            &[("list_changed", "warn", "did not say so")],
        ),
        (
            &["--call", "crash", "{}"],
            &[],
            &[("call", "bad", "ended during the call")],
        ),
        (
            &["--call", "nothing", "{}"],
            &[],
            &[("call", "bad", "no tool \"nothing\"")],
        ),
        (
            &["--call", "hang", "{}", "--timeout", "15"],
            &[],
            &[("call", "bad", "no answer within 5 s")],
        ),
    ])
    .await;
    for era in ["legacy", "modern"] {
        let told = Lab::of_fixture(&["--call", "elicit", "{}"], &["--era", era])
            .run()
            .await;
        assert_eq!(
            (told.code, told.setting("isolation")),
            (0, &json!("principal")),
            "{}",
            told.text
        );
    }
}

#[tokio::test]
async fn k7_lab_calls_no_tool_by_itself() {
    for (allowed, expected) in [(None, vec![]), (Some("--safe-calls"), vec!["cwd", "cwd"])] {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("record");
        let flags = [
            "--record",
            record.to_str().unwrap(),
            "--read-only",
            "cwd",
            "--read-only",
            "add",
        ];
        let allowed: Vec<&str> = allowed.into_iter().collect();
        let told = Lab::of_fixture(&allowed, &flags).run().await;
        assert_eq!(told.code, 0, "{}", told.text);
        let text = std::fs::read_to_string(&record).unwrap();
        let messages = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut called: Vec<String> = messages
            .filter(|line| line["message"]["method"] == "tools/call")
            .map(|line| {
                line["message"]["params"]["name"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        called.retain(|name| name != "portway-lab-no-such-thing");
        // `add` only reads too, but nobody knows what to add.
        called.dedup();
        assert_eq!(
            called,
            expected.into_iter().take(1).collect::<Vec<_>>(),
            "{}",
            told.text
        );
    }
}

#[tokio::test]
async fn k7_lab_shows_no_secret() {
    let secret = "open-sesame-0123456789";
    let lab = Lab::of_fixture(
        &[
            "--env",
            &format!("API_TOKEN={secret}"),
            "--call",
            "env",
            "{\"name\": \"API_TOKEN\"}",
        ],
        &["--stderr", secret, "--name", secret],
    );
    let told = lab.run().await;
    assert_eq!(told.code, 0, "{}", told.text);
    assert!(
        !told.text.contains(secret) && !told.stderr.contains(secret),
        "{}",
        told.text
    );
    assert_eq!(told.setting("env")["API_TOKEN"], "${API_TOKEN}");
    let lab = Lab::of_fixture(
        &["--env", &format!("API_TOKEN={secret}")],
        &["--stderr", secret, "--exit", "1"],
    );
    let told = lab.run().await;
    assert!(
        told.code == 1 && !told.text.contains(secret),
        "{}",
        told.text
    );
}

#[tokio::test]
async fn k7_lab_tries_a_server_of_others() {
    let server = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let server = crate::tools::installed(server);
    let node = crate::tools::installed("node/node-22");
    let call = [
        "--call",
        "trigger-long-running-operation",
        "{\"duration\": 2, \"steps\": 4}",
    ];
    let mut args = vec!["--json", "--timeout", "120"];
    args.extend(call);
    args.extend(["--", node.to_str().unwrap(), server.to_str().unwrap()]);
    let told = Lab::new(&args).run().await;
    assert_eq!(told.code, 0, "{}", told.text);
    told.expect("era.legacy", "ok");
    told.expect("tools", "ok");
    told.expect("call", "ok");
    assert!(told.expect("progress", "ok").contains("4 reports"));
    told.expect("end.eof", "ok");
    assert_eq!(told.json["facts"]["legacy"], "2025-11-25");
    assert!(told.json["facts"]["rssBytes"].as_u64() > Some(20 << 20));
    let servers = told.json["settings"]["mcpServers"].as_object().unwrap();
    assert!(servers.contains_key("server-everything"), "{servers:?}");
}
