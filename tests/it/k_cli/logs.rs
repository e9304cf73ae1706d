use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;

use super::{command, run};
use crate::app::{PATIENCE, fixtures, setup};

const NOISE: &[&str] = &["--stderr", "first", "--stderr", "second \u{1b}[31m"];

#[tokio::test]
async fn k7_logs_tell_the_last_lines() {
    let app = setup().mcp(fixtures(&[("one", NOISE)])).start().await;
    app.until_status("one", "connected").await;
    let all = run(&app, &["logs", "one"]).await.ok();
    let lines: Vec<&str> = all.lines().collect();
    assert!(lines[0].ends_with("stderr   first"), "{all}");
    assert!(lines[1].ends_with("second \\u001b[31m"), "{all}");
    let last = run(&app, &["logs", "one", "-n", "1"]).await.ok();
    assert_eq!(last.lines().count(), 1, "{last}");

    let json = run(&app, &["logs", "one", "--json", "-n", "2"])
        .await
        .json();
    assert_eq!(json.as_array().unwrap().len(), 2, "{json}");
    let recent = run(&app, &["logs", "one", "--since", "1h"]).await.ok();
    assert_eq!(recent, all);
    let later = run(&app, &["logs", "one", "--since", "2999-01-01T00:00:00Z"]).await;
    assert_eq!(later.ok(), "");

    run(&app, &["logs", "nobody"]).await.fails(1, "nobody");
    run(&app, &["logs", "nobody", "-f"])
        .await
        .fails(1, "nobody");
    run(&app, &["logs", "one", "--since", "soon"])
        .await
        .fails(2, "such as 5m");
    run(&app, &["logs"]).await.fails(2, "<NAME>");
}

async fn line_with(lines: &mut Lines<BufReader<ChildStdout>>, text: &str) -> Value {
    let wait = async {
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["text"].as_str().unwrap().contains(text) {
                return line;
            }
        }
        panic!("it ended before {text}");
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("no {text}"))
}

/// What ends a command in the foreground. Shells have what they start in the
/// background ignore SIGINT, and so do its children: then it is SIGTERM.
fn interrupt() -> Signal {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    match ignored.is_some_and(|mask| mask & 1 << (Signal::SIGINT as u32 - 1) != 0) {
        true => Signal::SIGTERM,
        false => Signal::SIGINT,
    }
}

#[tokio::test]
async fn k7_following_a_log_survives_a_restart_of_portway() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let mut child = command(app.setup.path(), &["logs", "one", "-f", "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 0..3 {
        let message = format!("message=before-{n}");
        run(&app, &["call", "one:log", &message]).await.ok();
    }
    line_with(&mut lines, "before-2").await;
    // On another port, and its lines are counted from 0 again.
    let app = app.again().await;
    app.until_status("one", "connected").await;
    run(&app, &["call", "one:log", "message=after"]).await.ok();
    let after = line_with(&mut lines, "after").await;
    assert!(after["seq"].as_u64() < Some(2), "{after}");

    let pid = Pid::from_raw(child.id().unwrap() as i32);
    kill(pid, interrupt()).unwrap();
    let status = tokio::time::timeout(PATIENCE, child.wait())
        .await
        .unwrap()
        .unwrap();
    // Ended by the signal itself, which shells call 130.
    assert!(!status.success() && status.code().is_none(), "{status:?}");
}

#[tokio::test]
async fn k7_following_a_log_ends_with_its_reader() {
    let app = setup().mcp(fixtures(&[("one", NOISE)])).start().await;
    app.until_status("one", "connected").await;
    let mut child = command(app.setup.path(), &["logs", "one", "-f"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap();
    // Nothing more is said: it must notice without writing.
    drop(lines);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
