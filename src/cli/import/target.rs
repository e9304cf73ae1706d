//! The target of an import: the project's `.mcp.json`, which a running gateway
//! watches, or, if definitions are in a database, the gateway that runs on it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::Value;

use super::preview::{ImportVerdict, Preview};
use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::Remote;
use crate::cli::servers::{items, path_of, text};
use config::edit::{self, has_server};
use config::settings::{Settings, StorageType};
use config::view::definition_fields;
use config::{Dialect, ServerDefinitions, ServerName, ServerSpec, masked_config, parse_file};
use lab::counted;
use store::ReplaceError;

/// The file may hold secrets.
const NEW_FILE_MODE: u32 = 0o600;

/// How often the edit is repeated after another program changed the file.
const TRIES: usize = 5;

pub(super) enum ImportTarget {
    File {
        path: PathBuf,
        servers: ServerDefinitions,
    },
    /// Names and definitions as the API shows them, with masked secrets.
    Gateway {
        url: String,
        servers: BTreeMap<String, Value>,
    },
}

impl ImportTarget {
    pub(super) async fn find(
        settings: &Settings,
        project: &Path,
        remote: &Remote,
    ) -> CliResult<ImportTarget> {
        if settings.storage == StorageType::Supabase {
            let list = remote.get("/api/mcp/servers").await?;
            let named =
                |record: &Value| (text(record, "name").to_owned(), record["config"].clone());
            return Ok(ImportTarget::Gateway {
                url: remote.url().to_owned(),
                servers: items(&list).iter().map(named).collect(),
            });
        }
        let path = project.join(".mcp.json");
        let (_, content) = read(&path)?;
        let servers = if content.trim().is_empty() {
            ServerDefinitions::new()
        } else {
            let parsed = parse_file(&content, Dialect::Mcp);
            let parsed = parsed.map_err(|problem| Failure::of_path(&path, problem))?;
            parsed.servers
        };
        Ok(ImportTarget::File { path, servers })
    }

    /// Whether the target has a server of that name, and if so, the same one.
    pub(super) fn holds(&self, name: &ServerName, spec: &ServerSpec) -> Option<bool> {
        match self {
            ImportTarget::File { servers, .. } => {
                let known = servers.get(name.as_str())?;
                Some(matches!(known, Ok((_, known)) if known == spec))
            }
            ImportTarget::Gateway { servers, .. } => {
                Some(*servers.get(name.as_str())? == masked_config(spec))
            }
        }
    }

    pub(super) async fn write(&self, preview: &Preview, remote: &Remote) -> CliResult<()> {
        match self {
            ImportTarget::File { path, .. } => write_file(path, preview),
            ImportTarget::Gateway { .. } => send(preview, remote).await,
        }
    }

    pub(super) fn said(&self, preview: &Preview) -> String {
        let servers = counted(preview.wanted().count(), "server");
        format!("{servers} written into {self}.")
    }
}

impl fmt::Display for ImportTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportTarget::File { path, .. } => path.display().fmt(f),
            ImportTarget::Gateway { url, .. } => write!(f, "the Portway at {url}"),
        }
    }
}

fn write_file(path: &Path, preview: &Preview) -> CliResult<()> {
    for _ in 0..TRIES {
        let (found, mut text) = read(path)?;
        for (row, name, spec) in preview.wanted() {
            let place = ["mcpServers", name.as_str()];
            let fail = |error: edit::EditError| Failure::of_path(path, error);
            if row.verdict == ImportVerdict::New && has_server(&text, &place).map_err(fail)? {
                let message = format!("a server {:?} has just been added", name.as_str());
                return Err(Failure::of_path(path, format!("{message}; look again")));
            }
            text = edit::set_server(&text, &place, spec).map_err(fail)?;
        }
        match store::replace(path, found.as_deref(), text.as_bytes(), NEW_FILE_MODE) {
            Ok(()) => return Ok(()),
            Err(ReplaceError::Changed) => {}
            Err(ReplaceError::Io(error)) => return Err(Failure::of_path(path, error)),
        }
    }
    Err(Failure::of_path(
        path,
        "keeps changing while it is edited; try again",
    ))
}

fn read(path: &Path) -> CliResult<(Option<Vec<u8>>, String)> {
    let found = store::read_trusted(path).map_err(|error| Failure::of_path(path, error))?;
    let text = String::from_utf8(found.clone().unwrap_or_default());
    let text = text.map_err(|_| Failure::of_path(path, "is not UTF-8 text"))?;
    Ok((found, text))
}

async fn send(preview: &Preview, remote: &Remote) -> CliResult<()> {
    for (row, name, spec) in preview.wanted() {
        let mut body = definition_fields(spec);
        if row.verdict == ImportVerdict::Replaced {
            let path = path_of(name.as_str());
            remote.ask(Method::PUT, &path, Some(&body.into())).await?;
        } else {
            body.insert("name".into(), name.as_str().into());
            remote.post("/api/mcp/servers", &body.into()).await?;
        }
    }
    Ok(())
}
