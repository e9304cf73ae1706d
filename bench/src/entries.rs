//! A store with many entries.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use store::{ApiKey, Creation, Entry, ExposedServers, NewBinding, NewEntry, NewTool, Store};
use tokio::task::JoinSet;

pub const BINDINGS: usize = 20;
/// Creates at a time.
const AT_ONCE: usize = 200;

/// One of the entries. It has the tools `mcp_SERVER_echo` and `echo_1`,
/// `echo_2`, ….
pub struct FilledEntry {
    pub id: String,
    pub key: String,
    /// The id of the tool record `echo_1`.
    pub tool: String,
}

/// Fills the data directory of a project.
pub fn fill(project: &Path, server: &str, count: usize) -> anyhow::Result<FilledEntry> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = Arc::new(Store::open_files(&project.join("data"))?.store);
        let bindings = tools(&store, server).await?;
        let mut last = None;
        let mut left = count;
        while left > 0 {
            let mut creates = JoinSet::new();
            for _ in 0..left.min(AT_ONCE) {
                let (store, bindings) = (store.clone(), bindings.clone());
                creates.spawn(async move { create(&store, bindings).await });
                left -= 1;
            }
            while let Some(created) = creates.join_next().await {
                last = Some(created??);
            }
        }
        let (entry, key) = last.context("no entry was created")?;
        Ok(FilledEntry {
            id: entry.id.to_string(),
            key: key.expose().to_owned(),
            tool: bindings[1].tool.to_string(),
        })
    })
}

async fn create(store: &Store, bindings: Vec<NewBinding>) -> anyhow::Result<(Entry, ApiKey)> {
    let key = ApiKey::random()?;
    let new = NewEntry {
        owner: "admin".into(),
        name: "bench".into(),
        enabled: true,
        key: key.record(None),
        exposes: ExposedServers::default(),
        filter: None,
        bindings,
    };
    match store.create_entry(new, None).await? {
        Creation::New(entry) => Ok((entry, key)),
        Creation::Earlier(_) => bail!("the entry was created before"),
    }
}

async fn tools(store: &Store, server: &str) -> anyhow::Result<Vec<NewBinding>> {
    let mut bindings = Vec::new();
    for number in 0..BINDINGS {
        let name = match number {
            0 => format!("mcp_{server}_echo"),
            _ => format!("echo_{number}"),
        };
        let new = NewTool {
            owner: "admin".into(),
            name,
            description: None,
            server: server.into(),
            tool: "echo".into(),
        };
        if let Creation::New(tool) = store.create_tool(new, None).await? {
            bindings.push(NewBinding {
                tool: tool.id,
                enabled: true,
            });
        }
    }
    Ok(bindings)
}
