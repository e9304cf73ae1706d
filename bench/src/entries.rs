//! A store full of entries, so that one of them is found among many.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use store::{
    ApiKey, Creation, ExposedServers, NewBinding, NewEntry, NewTool, OwnerScope, Page, Store,
};
use tokio::task::JoinSet;

pub const ENTRIES: usize = 10_000;
pub const BINDINGS: usize = 20;
/// So many creates at a time.
const AT_ONCE: usize = 200;

/// Fills the data directory of a project; the key of one of the entries,
/// which has the tool `mcp_modern_echo`.
pub fn fill(project: &Path) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = Arc::new(Store::open_files(&project.join("data"))?.store);
        let bindings = tools(&store).await?;
        let mut key = None;
        for _ in 0..ENTRIES / AT_ONCE {
            let mut creates = JoinSet::new();
            for _ in 0..AT_ONCE {
                let made = ApiKey::random()?;
                let (store, new) = (store.clone(), entry(&made, &bindings));
                creates.spawn(async move { store.create_entry(new, None).await });
                key = Some(made);
            }
            while let Some(created) = creates.join_next().await {
                created??;
            }
        }
        let start = Instant::now();
        const ALONE: u32 = 50;
        for _ in 0..ALONE {
            let made = ApiKey::random()?;
            store.create_entry(entry(&made, &bindings), None).await?;
        }
        let total = store
            .entries(&OwnerScope::Everyone, Page { skip: 0, limit: 1 })
            .await?
            .total;
        eprintln!(
            "{total} entries with {BINDINGS} bindings each; one more takes {:?}",
            start.elapsed() / ALONE
        );
        let key = key.context("no entry was made")?;
        Ok(key.expose().to_owned())
    })
}

async fn tools(store: &Store) -> anyhow::Result<Vec<NewBinding>> {
    let mut bindings = Vec::new();
    for number in 0..BINDINGS {
        let name = match number {
            0 => "mcp_modern_echo".to_owned(),
            _ => format!("echo_{number}"),
        };
        let new = NewTool {
            owner: "admin".into(),
            name,
            description: None,
            server: "modern".into(),
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

fn entry(key: &ApiKey, bindings: &[NewBinding]) -> NewEntry {
    NewEntry {
        owner: "admin".into(),
        name: "bench".into(),
        enabled: true,
        key: key.record(None),
        exposes: ExposedServers::default(),
        filter: None,
        bindings: bindings.to_vec(),
    }
}
