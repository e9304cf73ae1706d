//! Tests of PostgreSQL itself: tables, faults, several processes on one database.

use std::time::{Duration, Instant};

use super::cluster::{self, Cluster};
use super::rounds;
use crate::*;
use config::{DatabaseSchema, Secret};

mod faults;
mod foreign;
mod replicas;
mod rules;
mod scale;
mod tables;

const ALL: OwnerScope = OwnerScope::Everyone;

async fn open(cluster: &Cluster, database: &str) -> Store {
    open_in(cluster, database, "public").await
}

async fn open_in(cluster: &Cluster, database: &str, schema: &str) -> Store {
    let url = Secret::new(cluster.url(database));
    let schema = DatabaseSchema::parse(schema).unwrap();
    Store::open_database(&url, &schema).await.unwrap()
}

async fn refused(url: &str) -> StoreError {
    match Store::open_database(&Secret::new(url), &DatabaseSchema::default()).await {
        Ok(_) => panic!("{url} was opened"),
        Err(error) => error,
    }
}

async fn tool(store: &Store, name: &str) -> ToolId {
    let new = NewTool {
        owner: "me".into(),
        name: name.into(),
        description: None,
        server: "files".into(),
        tool: name.into(),
    };
    match store.create_tool(new, None).await.unwrap() {
        Creation::New(tool) => tool.id,
        earlier => panic!("{earlier:?}"),
    }
}

fn new_entry(tools: &[ToolId]) -> (KeyDigest, NewEntry) {
    let key = ApiKey::random().unwrap();
    let bindings = tools.iter().map(|tool| NewBinding {
        tool: *tool,
        enabled: true,
    });
    let new = NewEntry {
        owner: "me".into(),
        name: "desk".into(),
        enabled: true,
        key: key.record(None),
        exposes: ExposedServers::default(),
        filter: None,
        bindings: bindings.collect(),
    };
    (key.digest(), new)
}

async fn entry(store: &Store, tools: &[ToolId]) -> (KeyDigest, EntryId) {
    let (key, new) = new_entry(tools);
    match store.create_entry(new, None).await.unwrap() {
        Creation::New(entry) => (key, entry.id),
        earlier => panic!("{earlier:?}"),
    }
}

/// Waits until the notifications of all changes so far have been read: an entry
/// known to have changed is not served from memory. They arrive in order.
async fn has_heard(store: &Store, cluster: &Cluster, database: &str) {
    let (key, id) = entry(store, &[]).await;
    let close = format!("update public.mcp_v2 set status = false where id = {id}");
    cluster.sql(database, &close);
    let closed = async || granted(store, &key).await.unwrap().is_none();
    eventually("a change is heard of", closed).await;
}

/// Looks a key up as the edge does.
async fn granted(
    store: &Store,
    key: &KeyDigest,
) -> Result<Option<std::sync::Arc<Grant>>, StoreError> {
    match store.grant(key) {
        GrantLookup::Yes(grant) => Ok(Some(grant)),
        GrantLookup::No => Ok(None),
        GrantLookup::Ask => store.ask(key).await,
    }
}

/// Waits until the condition is true.
async fn eventually(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !so().await {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn switch(enabled: bool) -> EntryChange {
    EntryChange {
        enabled: Some(enabled),
        ..EntryChange::default()
    }
}
