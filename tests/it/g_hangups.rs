//! SPEC G1: edits finish although the client hangs up, wherever they are.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use config::ServerName;
use config::body::merge_patch;
use fleet::registry::EditBasis;
use gateway::servers::ServerManager;
use serde_json::{Value, json};
use store::{ApiKey, Creation, EntryId, NewBinding, NewEntry, NewTool};
use tokio::time::Instant;

use crate::app::PATIENCE;
use crate::rooms::Rooms;

/// An entry with a tool of server `a`.
async fn bound(rooms: &Rooms) -> EntryId {
    let tool = NewTool {
        owner: "admin".into(),
        name: "echo".to_owned(),
        description: None,
        server: "a".to_owned(),
        tool: "echo".to_owned(),
    };
    let Creation::New(tool) = rooms.store.create_tool(tool, None).await.unwrap() else {
        panic!("made before");
    };
    let entry = NewEntry {
        owner: "admin".into(),
        name: "e".to_owned(),
        enabled: true,
        key: ApiKey::random().unwrap().record(None),
        exposes: Default::default(),
        filter: None,
        bindings: vec![NewBinding {
            tool: tool.id,
            enabled: true,
        }],
    };
    let Creation::New(entry) = rooms.store.create_entry(entry, None).await.unwrap() else {
        panic!("made before");
    };
    entry.id
}

/// The servers in the file, in the store, and behind the entry's tools.
async fn places(rooms: &Rooms, entry: EntryId) -> [Vec<String>; 3] {
    let file = std::fs::read(rooms.path(".mcp.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let file = file["mcpServers"].as_object().unwrap().keys().cloned();
    let records = rooms.store.servers().await.unwrap();
    let records = records.iter().map(|record| record.name.to_string());
    let grant = rooms.store.grant_of(entry).unwrap();
    let granted = grant.tools.iter().map(|tool| tool.server.to_string());
    [file.collect(), records.collect(), granted.collect()]
}

async fn all_say(rooms: &Rooms, entry: EntryId, names: &[&str]) {
    let start = Instant::now();
    loop {
        let places = places(rooms, entry).await;
        if places.iter().all(|place| place == names) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{names:?}: {places:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Polls an edit so often, then hangs up.
async fn hang_up_after<F: Future>(polls: usize, edit: F) {
    let mut edit = pin!(edit);
    for _ in 0..polls {
        let ended = poll_fn(|cx| Poll::Ready(edit.as_mut().poll(cx).is_ready())).await;
        if ended {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn g1_an_edit_that_has_begun_is_finished_wherever_the_client_hangs_up() {
    let rooms = Rooms::open(&[("a", &[])]).await;
    let entry = bound(&rooms).await;
    let id = rooms.store.servers().await.unwrap()[0].id;
    let servers = ServerManager {
        registry: rooms.registry.clone(),
        fleet: rooms.fleet.clone(),
    };
    let (mut name, mut other) = ("a", "b");
    for polls in 0..30 {
        let body = json!({"name": other}).to_string();
        let read = move |current: &_| merge_patch(current, body.as_bytes());
        hang_up_after(polls, servers.update(name, EditBasis::Newest, read)).await;
        if polls > 0 {
            std::mem::swap(&mut name, &mut other);
        }
        all_say(&rooms, entry, &[name]).await;
        assert_eq!(rooms.store.servers().await.unwrap()[0].id, id);
        // The next edit finds this one in force.
        let start = Instant::now();
        while rooms.registry.find(name).is_none() {
            assert!(start.elapsed() < PATIENCE, "{name} is not in force");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    hang_up_after(1, servers.remove(name)).await;
    all_say(&rooms, entry, &[]).await;
    let body = json!({"name": "c", "command": "true", "autoStart": false}).to_string();
    hang_up_after(1, servers.create(body.as_bytes())).await;
    let start = Instant::now();
    while rooms.registry.find("c").is_none() {
        assert!(start.elapsed() < PATIENCE, "c is not in force");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let records = rooms.store.servers().await.unwrap();
    assert_eq!(records[0].name, ServerName::parse("c").unwrap());
}
