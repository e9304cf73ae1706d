use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use gateway::Scope;
use store::{EntryChange, ExposedServers, NewBinding};

use super::*;
use crate::app::fixture;
use crate::remote;

const WORKERS: usize = 8;
/// Calls of each worker after the change was answered.
const AFTER: usize = 10;

#[derive(Clone, Copy, Debug)]
enum EntryRevocation {
    Disabled,
    Unbound,
    BindingDisabled,
    Rotated,
    Deleted,
}

const ALL_WAYS: [EntryRevocation; 5] = [
    EntryRevocation::Disabled,
    EntryRevocation::Unbound,
    EntryRevocation::BindingDisabled,
    EntryRevocation::Rotated,
    EntryRevocation::Deleted,
];

async fn take(house: &EntryGateway, made: &CreatedEntry, how: EntryRevocation) {
    let store = &house.rooms.store;
    let done = match how {
        EntryRevocation::Disabled => {
            let change = EntryChange {
                enabled: Some(false),
                ..EntryChange::default()
            };
            let changed = store.update_entry(&ALL, made.id, change).await;
            changed.unwrap().is_some()
        }
        EntryRevocation::Unbound => store.unbind(&ALL, made.id, made.tools[0]).await.unwrap(),
        EntryRevocation::BindingDisabled => {
            let binding = NewBinding {
                tool: made.tools[0],
                enabled: false,
            };
            let changed = store.update_binding(&ALL, made.id, binding).await;
            changed.unwrap().is_some()
        }
        EntryRevocation::Rotated => {
            let key = ApiKey::random().unwrap().record(None);
            let changed = store.replace_key(&ALL, made.id, key).await;
            changed.unwrap().is_some()
        }
        EntryRevocation::Deleted => store.delete_entry(&ALL, made.id).await.unwrap(),
    };
    assert!(done);
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

/// Takes a tool away while it is being called by many who keep on calling
/// with what they were given before. Where the server reads one pipe, nothing
/// of theirs comes behind what is sent after the answer.
async fn taken_under_load(house: &EntryGateway, record: &Path, in_order: bool) {
    for how in ALL_WAYS {
        let made = house
            .entry(&[("say", "x", "echo")], ExposedServers::default())
            .await;
        let caller = house.caller(&made);
        let (word, marker) = (format!("load {how:?}"), format!("marker {how:?}"));
        let (good, answered) = (AtomicUsize::new(0), AtomicBool::new(false));
        let worker = async || {
            let mut after = 0;
            while after < AFTER {
                // A refused call waits for nothing, and would keep the others of
                // this task from running.
                tokio::task::yield_now().await;
                let late = answered.load(Ordering::Acquire);
                let answer = house.call(&caller, "say", json!({ "text": word })).await;
                if answer["result"].is_object() {
                    assert!(!late, "{how:?}: {answer}");
                    good.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_eq!(text(&answer), "Unknown tool: say", "{how:?}");
                    after += usize::from(late);
                }
            }
        };
        let taker = async {
            while good.load(Ordering::Relaxed) < 50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            take(house, &made, how).await;
            answered.store(true, Ordering::Release);
            let admin = Caller {
                principal: "admin".into(),
                scope: Scope::server("x".into()),
            };
            let marked = house.call(&admin, "echo", json!({ "text": marker })).await;
            assert_eq!(text(&marked), marker);
        };
        let work = async { tokio::join!(taker, join_all((0..WORKERS).map(|_| worker()))) };
        tokio::time::timeout(PATIENCE, work).await.expect("in time");
        let seen = seen(record);
        let calls = seen.iter().filter(|text| **text == word).count();
        assert_eq!(calls, good.load(Ordering::Relaxed), "{how:?}");
        if in_order {
            let behind = seen.iter().skip_while(|text| **text != marker);
            let behind = behind.filter(|text| **text == word).count();
            assert_eq!(behind, 0, "{how:?}");
        }
        println!("{how:?}: {calls} calls before the answer, 0 after");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e7_what_was_taken_away_reaches_no_stdio_server() {
    for era in ["legacy", "modern"] {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("record");
        let args = ["--era", era, "--record", record.to_str().unwrap()];
        let house = EntryGateway::of(json!({"x": {"command": fixture(), "args": args}})).await;
        taken_under_load(&house, &record, true).await;
        house.rooms.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e7_what_was_taken_away_reaches_no_remote_server() {
    for (kind, args) in [
        ("http", ["--http", "0", "--era", "legacy"]),
        ("http", ["--http", "0", "--era", "modern"]),
        ("sse", ["--sse", "0", "--era", "legacy"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("record");
        let args = [&args[..], &["--record", record.to_str().unwrap()]].concat();
        let remote = remote::fixture(&args).await;
        let house = EntryGateway::of(json!({"x": {"type": kind, "url": remote.url}})).await;
        taken_under_load(&house, &record, false).await;
        house.rooms.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e7_a_call_that_waits_is_not_sent_once_it_may_not() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    // Each entry's first call waits for a process of its own, which is slower
    // than the change.
    let server = json!({"command": fixture(), "isolation": "principal",
        "args": ["--record", record.to_str().unwrap(), "--late", "1000"]});
    let house = EntryGateway::of(json!({ "x": server })).await;
    for how in ALL_WAYS {
        let made = house
            .entry(&[("say", "x", "echo")], ExposedServers::default())
            .await;
        let caller = house.caller(&made);
        let word = format!("waits {how:?}");
        let call = house.call(&caller, "say", json!({ "text": word }));
        let taken = take(&house, &made, how);
        // Polled first, so that it has begun.
        let (answer, ()) = tokio::join!(biased; call, taken);
        assert_eq!(text(&answer), "Unknown tool: say", "{how:?}");
        assert!(!seen(&record).contains(&word), "{how:?}");
    }
    house.rooms.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e7_a_change_that_leaves_a_tool_disturbs_no_call_of_it() {
    let house = EntryGateway::of(json!({"x": {"command": fixture()}})).await;
    let tools = [("say", "x", "echo"), ("sum", "x", "add")];
    let made = house.entry(&tools, ExposedServers::default()).await;
    let caller = house.caller(&made);
    let done = AtomicBool::new(false);
    let worker = async || {
        let mut calls = 0;
        while !done.load(Ordering::Relaxed) {
            let answer = house.call(&caller, "say", json!({"text": "hello"})).await;
            assert_eq!(text(&answer), "hello");
            calls += 1;
        }
        calls
    };
    let changer = async {
        for round in 0..20 {
            let binding = NewBinding {
                tool: made.tools[1],
                enabled: round % 2 == 1,
            };
            let store = &house.rooms.store;
            store.update_binding(&ALL, made.id, binding).await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    };
    let work = async { tokio::join!(changer, join_all((0..WORKERS).map(|_| worker()))) };
    let ((), calls) = tokio::time::timeout(PATIENCE, work).await.expect("in time");
    println!("{} calls over 20 changes", calls.iter().sum::<usize>());
    house.rooms.close().await;
}

#[tokio::test]
async fn e7_open_streams_end_with_the_key_and_hear_of_other_changes() {
    let house = EntryGateway::of(json!({"x": {"command": fixture()}})).await;
    for how in ALL_WAYS {
        let tools = [("say", "x", "echo"), ("sum", "x", "add")];
        let made = house.entry(&tools, ExposedServers::default()).await;
        let caller = house.caller(&made);
        let lifetime = house.gateway.stream_lifetime(&caller);
        let params = json!({"notifications": {"toolsListChanged": true}});
        let mut listening = house.listen(&caller, params).await;
        let said = listening.next().await;
        assert!(said.contains("subscriptions/acknowledged"), "{said}");
        take(&house, &made, how).await;
        let said = listening.next().await;
        let over = matches!(
            how,
            EntryRevocation::Disabled | EntryRevocation::Rotated | EntryRevocation::Deleted
        );
        if over {
            tokio::time::timeout(PATIENCE, lifetime.token().cancelled())
                .await
                .unwrap();
            listening.ended(said).await;
        } else {
            assert!(said.contains("tools/list_changed"), "{how:?}: {said}");
            assert!(!lifetime.token().is_cancelled());
        }
    }
    house.rooms.close().await;
}

/// Whoever asked just before it was taken away may come after it here.
#[tokio::test]
async fn e7_what_was_taken_away_is_not_followed_and_sets_no_log_level() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    for era in ["legacy", "modern"] {
        let args = ["--era", era, "--record", record.to_str().unwrap()];
        let house = EntryGateway::of(json!({"x": {"command": fixture(), "args": args}})).await;
        let tools = [("say", "x", "echo")];
        let made = house.entry(&tools, exposes(&["x"], &[])).await;
        let caller = house.caller(&made);
        take(&house, &made, EntryRevocation::Disabled).await;
        let wanted = json!({"resourceSubscriptions": ["portway://x/fixture://watched"]});
        let wanted = json!({ "notifications": wanted });
        let told = house.listen(&caller, wanted).await.next().await;
        assert!(!told.contains("fixture://watched"), "{era}: {told}");
        let params = to_raw_value(&json!({"name": "say", "arguments": {"text": "t"}})).unwrap();
        let id = to_raw_value(&1).unwrap();
        let incoming = ClientRequest::new(&id, "tools/call", Some(&params));
        let client = Client {
            log_level: Some(wire::meta::LogLevel::Debug),
            ..client()
        };
        let mut replies = house.gateway.request(&caller, &client, incoming);
        drop(replies.next().await);
        let seen = std::fs::read_to_string(&record).unwrap();
        for method in [
            "resources/subscribe",
            "fixture://watched",
            "logging/setLevel",
        ] {
            assert!(!seen.contains(method), "{era}: {method} reached the server");
        }
        house.rooms.close().await;
    }
}
