//! The tools' work: each reads its arguments strictly, calls the function that
//! REST calls, and returns the outcome twice, as structure and as text.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::arguments::ToolArguments;
use super::tools::ControlTool;
use super::{Control, ControlResult};
use crate::failure::failed_tool;
use crate::members::ObjectWriter;
use crate::resolve::unknown;
use config::Problem;
use config::body::merge_patch;
use fleet::CallRequest;
use fleet::registry::{EditBasis, RegistryError, SourceError, UpdateError};
use store::{StoreError, StoreErrorKind};
use upstream::UpstreamError;
use wire::Era;
use wire::meta::SERVER_INFO;
use wire::object::{self, is_null, member};

/// Why a tool failed, for a model to read.
fn refusal(error: &UpdateError) -> String {
    match error {
        UpdateError::Problems(problems) => listed(problems),
        UpdateError::Registry(error) => discreet(error),
    }
}

fn listed(problems: &[Problem]) -> String {
    let line = |problem: &Problem| match problem.field.as_str() {
        "" => problem.message.clone(),
        field => format!("{field}: {}", problem.message),
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The internals of a store's error go to the log only.
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

impl Control {
    pub(super) async fn call(&self, request: &CallRequest) -> ControlResult {
        let params = request.params.as_deref();
        let asked = |name: &str| params.and_then(|params| member(params, name));
        let Some(tool) = request.name.as_deref().and_then(ControlTool::named) else {
            let name = asked("name").and_then(object::text).unwrap_or_default();
            return Err(UpstreamError::Rpc(unknown("tool", &name)));
        };
        let arguments = asked("arguments").filter(|given| !is_null(given));
        let done = self.act(tool, arguments.unwrap_or(object::empty())).await;
        Ok(match done {
            Ok(outcome) => self.result(&outcome),
            Err(error) => failed_tool(&refusal(&error), Era::Modern),
        })
    }

    async fn act(
        &self,
        tool: ControlTool,
        arguments: &RawValue,
    ) -> Result<Box<RawValue>, UpdateError> {
        let servers = &self.servers;
        let server = || ToolArguments::read(arguments, &["server", "name"])?.server();
        match tool {
            ControlTool::ListServers => {
                ToolArguments::read(arguments, &[])?;
                structured(&BTreeMap::from([("servers", servers.list())]))
            }
            ControlTool::GetServer => structured(&servers.show(&server()?)?.record),
            ControlTool::AddServer => {
                structured(&servers.create(arguments.get().as_bytes()).await?.record)
            }
            ControlTool::UpdateServer => {
                let given = ToolArguments::read(arguments, &["server", "name", "changes"])?;
                let (server, changes) = (given.server()?, given.needed("changes")?.to_owned());
                let read = move |current: &_| merge_patch(current, changes.get().as_bytes());
                let updated = servers.update(&server, EditBasis::Newest, read).await?;
                structured(&updated.record)
            }
            ControlTool::RemoveServer => {
                let gone = servers.remove(&server()?).await?;
                // Whether another definition of the same name is in force now.
                let uncovered = servers.registry.find(&gone.name).is_some();
                structured(&json!({"removed": &*gone.name, "uncovered": uncovered}))
            }
            ControlTool::StartServer => structured(&servers.start(&server()?).await?),
            ControlTool::StopServer => structured(&servers.stop(&server()?).await?),
            ControlTool::RestartServer => structured(&servers.restart(&server()?).await?),
            ControlTool::ServerLogs => {
                let given = ToolArguments::read(arguments, &["server", "name", "from", "limit"])?;
                let limit = given.amount("limit")?;
                let lines = servers.logs(&given.server()?, given.count("from")?, limit)?;
                structured(&BTreeMap::from([("lines", lines)]))
            }
            ControlTool::ListTools => {
                let given = ToolArguments::read(arguments, &["search", "server", "name", "limit"])?;
                let (words, server) = (given.text("search")?, given.maybe_server()?);
                structured(&self.search(words, server, given.amount("limit")?)?)
            }
        }
    }

    /// The structure, and the same as text for clients that know no other.
    fn result(&self, outcome: &RawValue) -> Box<RawValue> {
        let content = json!([{"type": "text", "text": outcome.get()}]);
        let mut result = ObjectWriter::new();
        result.json("content", &content.to_string());
        result.json("structuredContent", outcome.get());
        result.text("resultType", "complete");
        if let Some(info) = &self.offer.peer.server_info {
            let mut meta = ObjectWriter::new();
            meta.json(SERVER_INFO, info.get());
            result.object("_meta", &meta);
        }
        result.done()
    }
}

fn structured(outcome: &impl Serialize) -> Result<Box<RawValue>, UpdateError> {
    Ok(to_raw_value(outcome).expect("plain data serialises into memory"))
}
