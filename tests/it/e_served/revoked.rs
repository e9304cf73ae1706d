use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::*;
use crate::app::{PATIENCE, TOKEN};
use crate::e_records::{ENTRIES, on_each_store};
use crate::mcp_front::{call, modern, said};
use crate::remote;

on_each_store!(
    e7_what_was_taken_away_reaches_no_stdio_server,
    e7_what_was_taken_away_reaches_no_remote_server,
);

/// Two through each door in each era.
const WORKERS: usize = 8;
/// Calls of each worker after the change was answered.
const AFTER: usize = 8;

#[derive(Clone, Copy, Debug)]
enum RevocationCase {
    Disabled,
    Unbound,
    BindingDisabled,
    Rotated,
    Deleted,
    ToolDeleted,
}

const ALL_WAYS: [RevocationCase; 6] = [
    RevocationCase::Disabled,
    RevocationCase::Unbound,
    RevocationCase::BindingDisabled,
    RevocationCase::Rotated,
    RevocationCase::Deleted,
    RevocationCase::ToolDeleted,
];

async fn take(app: &App, entry: &Value, tool: i64, how: RevocationCase) {
    let place = format!("{ENTRIES}/{entry}");
    let binding = format!("{place}/bindings/{tool}");
    let off = json!({"status": false});
    let change = async || match how {
        RevocationCase::Disabled => app.patched(&place, off.clone()).await,
        RevocationCase::Unbound => app.deleted(&binding).await,
        RevocationCase::BindingDisabled => app.patched(&binding, off.clone()).await,
        RevocationCase::Rotated => app.send("POST", &format!("{place}/rotate_key"), None).await,
        RevocationCase::Deleted => app.deleted(&place).await,
        RevocationCase::ToolDeleted => app.deleted(&format!("{TOOLS}/{tool}")).await,
    };
    // A busy machine's database may miss its time limit, before or after the
    // change itself.
    let mut answer = change().await;
    let mut again = 0;
    while answer.status == 503 && again < 10 {
        again += 1;
        answer = change().await;
    }
    let gone = again > 0 && answer.status == 404;
    assert!(
        gone || matches!(answer.status, 200 | 204),
        "{how:?}: {answer:?}"
    );
}

/// The texts of the calls that a server has seen, in order.
fn seen(record: &Path) -> Vec<String> {
    let lines = std::fs::read_to_string(record).unwrap_or_default();
    let text = |line: &str| {
        let (_, rest) = line.split_once(r#""text":""#)?;
        Some(rest.split('"').next()?.to_owned())
    };
    let calls = lines.lines().filter(|line| line.contains("tools/call"));
    calls.filter_map(text).collect()
}

/// Calls without pause and beyond the change; how many were answered well.
async fn hammer(agent: &Agent<'_>, how: RevocationCase, good: &AtomicUsize, answered: &AtomicBool) {
    let mut after = 0;
    while after < AFTER {
        let late = answered.load(Ordering::Acquire);
        let word = if late { "late" } else { "load" };
        let answer = agent
            .call("say", json!({"text": format!("{word} {how:?}")}))
            .await;
        if answer["result"].is_object() {
            assert!(!late, "{how:?}: {answer}");
            good.fetch_add(1, Ordering::Relaxed);
        }
        after += usize::from(late);
    }
}

/// Takes a tool away while it is being called by many who do not stop. What
/// they ask for after the answer reaches nobody; and where the server reads
/// one pipe, nothing of theirs comes behind what is sent after the answer.
async fn taken_under_load(app: &App, record: &Path, in_order: bool) {
    for how in ALL_WAYS {
        let tool = app.tool_of("say", "x", "echo").await;
        let made = app.new_entry("e", &[tool]).await;
        let key = text(&made["api_key"]);
        let mut agents = Vec::new();
        for at in 0..WORKERS {
            agents.push(Agent::new(app, key, WAYS[at % WAYS.len()]).await);
        }
        let (good, answered) = (AtomicUsize::new(0), AtomicBool::new(false));
        let marker = format!("marker {how:?}");
        let taker = async {
            while good.load(Ordering::Relaxed) < 50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            take(app, &made["id"], tool, how).await;
            answered.store(true, Ordering::Release);
            let echo = call("echo", json!({ "text": marker }));
            let marked = modern(app, "/servers/x/mcp", "tools/call", echo);
            let marked = marked.header("authorization", &format!("Bearer {TOKEN}"));
            assert_eq!(said(&marked.send().await.answer().await), marker);
        };
        let workers = agents
            .iter()
            .map(|agent| hammer(agent, how, &good, &answered));
        let work = async { tokio::join!(taker, join_all(workers)) };
        tokio::time::timeout(PATIENCE, work).await.expect("in time");
        let (seen, good) = (seen(record), good.into_inner());
        let count = |texts: &[String], word: &str| {
            let word = format!("{word} {how:?}");
            texts.iter().filter(|text| **text == word).count()
        };
        assert_eq!(count(&seen, "late"), 0, "{how:?}");
        let calls = count(&seen, "load");
        // A call that was under way may have lost its answer.
        assert!(
            (good..=good + WORKERS).contains(&calls),
            "{how:?} {good} {calls}"
        );
        if in_order {
            let at = seen.iter().position(|text| *text == marker).unwrap();
            assert_eq!(count(&seen[at..], "load"), 0, "{how:?}");
        }
        println!("{how:?}: {calls} calls before the answer, 0 after");
    }
}

async fn e7_what_was_taken_away_reaches_no_stdio_server(storage: Storage) {
    for era in ["legacy", "modern"] {
        let setup = storage.setup();
        let record = setup.path().join("record");
        let args = ["--era", era, "--record", record.to_str().unwrap()];
        let app = setup.mcp(fixtures(&[("x", &args)])).start().await;
        app.until_status("x", "connected").await;
        taken_under_load(&app, &record, true).await;
    }
}

async fn e7_what_was_taken_away_reaches_no_remote_server(storage: Storage) {
    for (kind, args) in [
        ("http", ["--http", "0", "--era", "legacy"]),
        ("http", ["--http", "0", "--era", "modern"]),
        ("sse", ["--sse", "0", "--era", "legacy"]),
    ] {
        let setup = storage.setup();
        let record = setup.path().join("record");
        let args = [&args[..], &["--record", record.to_str().unwrap()]].concat();
        let remote = remote::fixture(&args).await;
        let server = json!({"type": kind, "url": remote.url});
        let app = setup
            .mcp(json!({"mcpServers": {"x": server}}))
            .start()
            .await;
        app.until_status("x", "connected").await;
        taken_under_load(&app, &record, false).await;
    }
}
