//! What the tools do: each reads its arguments strictly, calls the one
//! function that REST calls too, and says the outcome twice, as structure and
//! as text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::search::Search;
use super::tools::Tool;
use super::{Answer, Control};
use crate::config::Problem;
use crate::config::body::merge_patch;
use crate::fleet::log::LogLine;
use crate::gateway::exchange::Errand;
use crate::gateway::members::Members;
use crate::gateway::record::ServerRecord;
use crate::gateway::resolve::unknown;
use crate::gateway::trouble::failed_tool;
use crate::registry::{Basis, RegistryError, SourceError, UpdateError};
use crate::store::{StoreError, StoreErrorKind};
use crate::upstream::UpstreamError;
use crate::wire::Era;
use crate::wire::meta::SERVER_INFO;
use crate::wire::object::{self, is_null, member};

/// Why a tool did not do it. The text is for a model to read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("arguments: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("{}", listed(.0))]
    Problems(Vec<Problem>),
    #[error("{}", discreet(.0))]
    Registry(#[from] RegistryError),
}

impl From<UpdateError> for Refusal {
    fn from(error: UpdateError) -> Refusal {
        match error {
            UpdateError::Problems(problems) => Refusal::Problems(problems),
            UpdateError::Registry(error) => Refusal::Registry(error),
        }
    }
}

fn listed(problems: &[Problem]) -> String {
    let line = |problem: &Problem| match problem.field.as_str() {
        "" => problem.message.clone(),
        field => format!("{field}: {}", problem.message),
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What a store says of its insides is for the log.
fn discreet(error: &RegistryError) -> String {
    let (RegistryError::Store(store) | RegistryError::Source(SourceError::Store(store))) = error
    else {
        return error.to_string();
    };
    let StoreError { operation, kind } = store;
    match kind {
        StoreErrorKind::Io { .. } | StoreErrorKind::Corrupt(_) | StoreErrorKind::Setup(_) => {
            tracing::error!("{store}");
            format!("cannot {operation}; the log of Portway says why")
        }
        _ => store.to_string(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    server: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    server: String,
    changes: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogsOf {
    server: String,
    from: Option<u64>,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Listed {
    servers: Vec<ServerRecord>,
}

#[derive(Serialize)]
struct Removed {
    removed: String,
    /// Another definition of the name, which it hid, is in force now.
    uncovered: bool,
}

#[derive(Serialize)]
struct Lines {
    lines: Vec<LogLine>,
}

impl Control {
    pub(super) async fn call(&self, errand: &Errand) -> Answer {
        let params = errand.params.as_deref();
        let asked = |name: &str| params.and_then(|params| member(params, name));
        let Some(tool) = errand.name.as_deref().and_then(Tool::named) else {
            let name = asked("name").and_then(object::text).unwrap_or_default();
            return Err(UpstreamError::Rpc(unknown("tool", &name)));
        };
        let arguments = asked("arguments").filter(|given| !is_null(given));
        let done = self.act(tool, arguments.unwrap_or(object::empty())).await;
        Ok(match done {
            Ok(outcome) => self.result(&outcome),
            Err(refusal) => failed_tool(&refusal.to_string(), Era::Modern),
        })
    }

    async fn act(&self, tool: Tool, arguments: &RawValue) -> Result<Box<RawValue>, Refusal> {
        let servers = &self.servers;
        match tool {
            Tool::ListServers => {
                let Nothing {} = read(arguments)?;
                let servers = servers.list();
                said(&Listed { servers })
            }
            Tool::GetServer => {
                let Named { server } = read(arguments)?;
                said(&servers.show(&server)?.record)
            }
            Tool::AddServer => said(&servers.create(arguments.get().as_bytes()).await?.record),
            Tool::UpdateServer => {
                let Changed { server, changes } = read(arguments)?;
                let read = |current: &_| merge_patch(current, changes.get().as_bytes());
                let updated = servers.update(&server, Basis::Newest, read).await?;
                said(&updated.record)
            }
            Tool::RemoveServer => {
                let Named { server } = read(arguments)?;
                let gone = servers.remove(&server).await?;
                said(&Removed {
                    removed: gone.name.to_string(),
                    uncovered: servers.registry.find(&gone.name).is_some(),
                })
            }
            Tool::StartServer => {
                let Named { server } = read(arguments)?;
                said(&servers.start(&server).await?)
            }
            Tool::StopServer => {
                let Named { server } = read(arguments)?;
                said(&servers.stop(&server).await?)
            }
            Tool::RestartServer => {
                let Named { server } = read(arguments)?;
                said(&servers.restart(&server).await?)
            }
            Tool::ServerLogs => {
                let LogsOf {
                    server,
                    from,
                    limit,
                } = read(arguments)?;
                let lines = servers.logs(&server, from, limit)?;
                said(&Lines { lines })
            }
            Tool::ListTools => {
                let search: Search = read(arguments)?;
                said(&self.search(search)?)
            }
        }
    }

    /// The structure, and the same as text for clients that know no other.
    fn result(&self, outcome: &RawValue) -> Box<RawValue> {
        let content = serde_json::json!([{"type": "text", "text": outcome.get()}]);
        let mut result = Members::new();
        result.json("content", &content.to_string());
        result.json("structuredContent", outcome.get());
        result.text("resultType", "complete");
        if let Some(info) = &self.offer.peer.server_info {
            let mut meta = Members::new();
            meta.json(SERVER_INFO, info.get());
            result.object("_meta", &meta);
        }
        result.done()
    }
}

fn read<T: DeserializeOwned>(arguments: &RawValue) -> Result<T, Refusal> {
    Ok(serde_json::from_str(arguments.get())?)
}

fn said(outcome: &impl Serialize) -> Result<Box<RawValue>, Refusal> {
    Ok(to_raw_value(outcome)?)
}
