//! SPEC A5: a start that fails says why, and costs nobody else anything.

use serde_json::{Value, json};

use crate::app::{App, fixture, fixtures, pid, setup};

/// Waits for a person's word, not for the retries before it.
async fn failure(app: &App, name: &str) -> String {
    let record = app.until_status(name, "error").await;
    assert_eq!(record["state"], "error");
    assert_eq!(record["pid"], Value::Null);
    assert_eq!(record["toolCount"], 0);
    record["error"].as_str().unwrap().to_owned()
}

#[track_caller]
fn says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

#[tokio::test]
async fn a5_a_command_that_cannot_run_says_why_and_is_not_retried() {
    let servers = json!({"mcpServers": {
        "missing": {"command": "no-such-command", "args": ["--flag"]},
        "line": {"command": "npx -y some-server"},
        "folder": {"command": "/tmp"},
        "nowhere": {"command": fixture(), "cwd": "no/such/folder"},
        "unset": {"command": fixture(), "env": {"A": "${NOT_SET_ANYWHERE}"}},
        "good": {"command": fixture()},
    }});
    let app = setup().mcp(servers).start().await;
    let good = app.until_status("good", "connected").await;
    let error = failure(&app, "missing").await;
    says(&error, &["`no-such-command --flag`", "no program", "PATH"]);
    says(&failure(&app, "line").await, &["no program", "\"args\""]);
    says(&failure(&app, "folder").await, &["`/tmp`", "cannot be run"]);
    let error = failure(&app, "nowhere").await;
    says(&error, &["no/such/folder", "No such file or directory"]);
    let error = failure(&app, "unset").await;
    says(&error, &["env.A", "NOT_SET_ANYWHERE", "is not set"]);
    // A mistyped command is not run every now and then for ever.
    for name in ["missing", "folder", "nowhere", "unset"] {
        assert_eq!(app.server(name).await["restarts"], 0, "{name}");
        let log = app.lines(name).await;
        assert_eq!(log.len(), 1, "{name}: {log:?}");
    }
    assert_eq!(app.server("good").await["pid"], pid(&good));
    assert_eq!(app.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a5_one_that_exits_at_once_tells_its_code_and_last_words() {
    let args = &[
        "--stderr",
        "reading the config",
        "--stderr",
        "no config, giving up",
        "--exit",
        "42",
    ];
    let app = setup()
        .mcp(fixtures(&[("exits", args), ("good", &[])]))
        .start()
        .await;
    let error = failure(&app, "exits").await;
    says(&error, &[&fixture(), "--exit 42", "exit code 42"]);
    says(&error, &["reading the config\nno config, giving up"]);
    app.until_status("good", "connected").await;
}

#[tokio::test]
async fn a5_only_the_last_lines_of_stderr_are_quoted() {
    let lines: Vec<String> = (0..50).map(|n| format!("line {n}")).collect();
    let mut args = vec!["--exit", "1"];
    for line in &lines {
        args.extend(["--stderr", line]);
    }
    // The command line itself would quote them all.
    let script = format!("#!/bin/sh\nexec {} {}\n", fixture(), quoted(&args));
    let app = setup()
        .file("chatty", script)
        .mcp(json!({"mcpServers": {"chatty": {"command": "sh", "args": ["chatty"]}}}))
        .start()
        .await;
    let error = failure(&app, "chatty").await;
    says(&error, &["`sh chatty`", "line 49", "line 43"]);
    assert!(!error.contains("line 30"), "{error}");
}

fn quoted(args: &[&str]) -> String {
    args.iter().map(|arg| format!("'{arg}' ")).collect()
}

#[tokio::test]
async fn a5_one_that_dies_by_a_signal_names_it() {
    let script = "echo out of luck >&2; kill -SEGV $$";
    let server = json!({"command": "sh", "args": ["-c", script]});
    let app = setup()
        .mcp(json!({"mcpServers": {"dies": server}}))
        .start()
        .await;
    let error = failure(&app, "dies").await;
    says(&error, &["signal 11 (SIGSEGV)", "out of luck"]);
}

#[tokio::test]
async fn a5_a_refused_handshake_says_what_the_server_said() {
    let args = &["--refuse-init", "--stderr", "licence expired"];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    let error = failure(&app, "one").await;
    says(&error, &["refuses to be initialized", "-32000"]);
    says(&error, &[&fixture(), "\nlicence expired"]);
    assert_eq!(app.children(), [0; 0]);
}

#[tokio::test]
async fn a5_a_hung_handshake_is_given_up() {
    let args = &["--hang-init", "--stderr", "waiting for the database"];
    let app = setup()
        .mcp(fixtures(&[("hangs", args), ("good", &[])]))
        .env("PORTWAY_CONNECT_TIMEOUT", "700ms")
        .start()
        .await;
    let good = app.until_status("good", "connected").await;
    assert_eq!(app.server("hangs").await["status"], "connecting");
    let error = failure(&app, "hangs").await;
    says(&error, &[&fixture(), "handshake", "700 ms"]);
    says(&error, &["\nwaiting for the database"]);
    assert_eq!(app.server("good").await["pid"], good["pid"]);
}

#[tokio::test]
async fn a5_what_is_no_mcp_server_is_told_so() {
    let servers = json!({"mcpServers": {
        // Talks, but not JSON-RPC.
        "yes": {"command": "yes"},
        // Echoes our own requests.
        "cat": {"command": "cat"},
        // Never says anything and never leaves.
        "sleep": {"command": "sleep", "args": ["1000"]},
    }});
    let app = setup()
        .mcp(servers)
        .env("PORTWAY_CONNECT_TIMEOUT", "4s")
        .env("PORTWAY_STOP_GRACE", "100ms")
        .start()
        .await;
    says(&failure(&app, "yes").await, &["`yes`", "not MCP messages"]);
    says(&failure(&app, "cat").await, &["`cat`", "handshake"]);
    says(
        &failure(&app, "sleep").await,
        &["`sleep 1000`", "handshake"],
    );
}

#[tokio::test]
async fn a5_start_answers_with_the_failure_and_tries_anew_each_time() {
    let args = &[
        "--exit",
        "1",
        "--instance-file",
        "starts",
        "--only-first",
        "1",
    ];
    let server = json!({"command": fixture(), "args": args, "disabled": true});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .start()
        .await;
    let failed = app.act("one", "start").await;
    assert_eq!(failed["status"], "error", "{failed:#}");
    // Without waiting for the backoff.
    let up = app.act("one", "start").await;
    assert_eq!(up["status"], "connected", "{up:#}");
    assert_eq!(up["error"], Value::Null);
}
