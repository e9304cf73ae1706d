//! Who is asking: keys of entries in headers and in addresses, the service
//! behind a relay, and the tokens of users.

pub(crate) mod entries;
mod keys;
mod relay;
pub(crate) mod users;

use std::path::Path;

use config::Secret;
use serde_json::Value;
use store::{
    ADMIN, ApiKey, Creation, EntryChange, EntryId, NewBinding, NewEntry, NewTool, OwnerScope,
    Store, Timestamp,
};

use crate::app::{App, Setup, fixtures};
use crate::e_records::Storage;
use crate::mcp_front::FrontRequest;

/// An entry made before Portway starts.
pub(crate) struct StoredEntry {
    pub id: EntryId,
    pub key: String,
}

impl StoredEntry {
    pub(crate) fn path(&self) -> String {
        at(&self.key)
    }
}

/// The address of the entry with a key.
pub(crate) fn at(key: &str) -> String {
    format!("/api/v1/mcp_v2/server/{key}")
}

/// What the store of a Portway that is yet to start has in it.
pub(crate) struct StoreBeforeStart(Box<Store>);

impl StoreBeforeStart {
    pub(crate) async fn of(setup: &Setup) -> StoreBeforeStart {
        let command = setup.command();
        let mut given = command.as_std().get_envs();
        let url = given.find_map(|(name, value)| value.filter(|_| name == "SUPABASE_DB_URL"));
        match url.and_then(|url| url.to_str()) {
            None => StoreBeforeStart(Box::new(
                Store::open_files(&data(setup.path())).unwrap().store,
            )),
            Some(url) => {
                let store = Store::open_database(&Secret::new(url), &Default::default()).await;
                StoreBeforeStart(Box::new(store.unwrap()))
            }
        }
    }

    /// An entry with these tools of server `x`, under their own names.
    pub(crate) async fn entry(&self, name: &str, tools: &[&str]) -> StoredEntry {
        self.entry_until(name, tools, None).await
    }

    pub(crate) async fn entry_until(
        &self,
        name: &str,
        tools: &[&str],
        expires_at: Option<Timestamp>,
    ) -> StoredEntry {
        let owner = ADMIN;
        let mut bindings = Vec::new();
        for tool in tools {
            let new = NewTool {
                owner: owner.into(),
                name: (*tool).to_owned(),
                description: None,
                server: "x".to_owned(),
                tool: (*tool).to_owned(),
            };
            let Creation::New(tool) = self.0.create_tool(new, None).await.unwrap() else {
                panic!("made before");
            };
            bindings.push(NewBinding {
                tool: tool.id,
                enabled: true,
            });
        }
        let key = ApiKey::random().unwrap();
        let new = NewEntry {
            owner: owner.into(),
            name: name.to_owned(),
            enabled: true,
            key: key.record(expires_at),
            exposes: Default::default(),
            filter: None,
            bindings,
        };
        let Creation::New(entry) = self.0.create_entry(new, None).await.unwrap() else {
            panic!("made before");
        };
        StoredEntry {
            id: entry.id,
            key: key.expose().to_owned(),
        }
    }

    pub(crate) async fn disable(&self, made: &StoredEntry) {
        let change = EntryChange {
            enabled: Some(false),
            ..EntryChange::default()
        };
        let changed = self.0.update_entry(&OwnerScope::Everyone, made.id, change);
        assert!(changed.await.unwrap().is_some());
    }
}

fn data(dir: &Path) -> std::path::PathBuf {
    dir.join("data")
}

/// Puts the store of one Portway into the place of another's.
pub(crate) fn copy(from: &Setup, to: &Setup) {
    std::fs::create_dir_all(data(to.path())).unwrap();
    let name = "mcp_instances.json";
    for entry in std::fs::read_dir(data(from.path())).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(name) {
            std::fs::copy(entry.path(), data(to.path()).join(entry.file_name())).unwrap();
        }
    }
}

/// A directory with the fixture `x`.
pub(crate) fn with_x(storage: Storage) -> Setup {
    storage.setup().mcp(fixtures(&[("x", &[])]))
}

pub(crate) async fn up(setup: Setup) -> App {
    let app = setup.start().await;
    app.until_status("x", "connected").await;
    app
}

/// The names of the tools that a client sees.
pub(crate) async fn tools(ask: FrontRequest<'_>) -> Vec<String> {
    let answer = ask.send().await.answer().await;
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{answer:#}"));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// With a key in place of the token, in a session.
pub(crate) fn keyed<'a>(ask: FrontRequest<'a>, key: &str, session: &str) -> FrontRequest<'a> {
    ask.without("authorization")
        .header("x-api-key", key)
        .header("mcp-session-id", session)
}
