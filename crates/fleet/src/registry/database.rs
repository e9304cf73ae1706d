//! Definitions that are in the database instead of a file, so that every
//! replica has them. They are read and edited as one document of the same
//! format, and saved row by row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::sources::{FileState, LoadedSources, SourceFiles};
use config::Problem;
use config::layers::{Source, SourceKind};
use store::{DefinitionChange, Store, StoreError};

/// The database's name among the file paths; no file has it.
const PATH: &str = "database";

pub(super) fn source() -> Source {
    Source {
        kind: SourceKind::Database,
        path: PathBuf::from(PATH),
    }
}

/// All definitions as one document; `None` if only files define servers.
pub(super) async fn document(store: &Store) -> Result<Option<String>, StoreError> {
    let definitions = store.definitions().await?;
    Ok(definitions.map(|definitions| {
        let servers: Vec<String> = definitions
            .iter()
            .map(|(name, definition)| {
                let name = serde_json::Value::from(name.as_str());
                format!("{name}: {definition}")
            })
            .collect();
        format!("{{\"mcpServers\": {{{}}}}}", servers.join(", "))
    }))
}

/// Adds the definitions of the database to those of the files. If the database
/// is unreachable, its last known definitions stay in force.
pub(super) async fn add(
    files: &SourceFiles,
    store: &Store,
    loaded: &LoadedSources,
    before: &LoadedSources,
) -> Option<LoadedSources> {
    let path = Path::new(PATH);
    let old = before.files.get(path);
    match document(store).await {
        Ok(document) => {
            let document = document?;
            let kept = old.map(|old| files.with_state(loaded, &source(), old.clone()));
            let base = kept.as_ref().unwrap_or(loaded);
            Some(files.with_file(base, &source(), document.as_bytes()))
        }
        Err(error) => {
            let state = FileState {
                problem: Some(Problem::new("", error.to_string())),
                ..old?.clone()
            };
            Some(files.with_state(loaded, &source(), state))
        }
    }
}

/// Saves an edited document; false if a concurrent edit was saved first.
pub(super) async fn save(store: &Store, found: &str, new: &str) -> Result<bool, SaveError> {
    let (mut old, new) = (servers(found)?, servers(new)?);
    let mut changes = Vec::new();
    for (name, new) in new {
        let found = old.remove(&name);
        if found.as_ref() != Some(&new) {
            let new = Some(new);
            changes.push(DefinitionChange { name, found, new });
        }
    }
    let gone = old.into_iter().map(|(name, found)| DefinitionChange {
        name,
        found: Some(found),
        new: None,
    });
    changes.extend(gone);
    Ok(store.define(&changes).await?)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SaveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the edited definitions cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

#[derive(serde::Deserialize)]
struct Document {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Box<RawValue>>,
}

fn servers(text: &str) -> Result<BTreeMap<String, String>, serde_json::Error> {
    let document: Document = serde_json::from_str(text)?;
    let servers = document.servers.into_iter();
    Ok(servers
        .map(|(name, definition)| (name, definition.get().to_owned()))
        .collect())
}
