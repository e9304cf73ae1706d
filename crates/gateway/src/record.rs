//! A server as the API shows it.

pub mod shape;

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use config::{Isolation, Problem, TransportKind};
use fleet::history::epoch_millis;
use fleet::registry::DesiredServer;
use fleet::{RunState, ServerView, Status};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerDetails {
    id: Uuid,
    name: Arc<str>,
    transport: Option<TransportKind>,
    status: Status,
    state: RunState,
    /// Milliseconds since the epoch.
    since: u64,
    error: Option<String>,
    enabled: bool,
    tool_count: usize,
    /// Secrets covered. Null where the definition cannot be read.
    config: Option<Value>,
    source: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shadows: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
    era: Option<&'static str>,
    protocol_version: Option<String>,
    server_info: Option<Box<RawValue>>,
    instructions: Option<String>,
    pid: Option<u32>,
    /// The containment of the process tree.
    containment: Option<&'static str>,
    /// What its containment does not prevent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containment_gaps: Vec<&'static str>,
    /// The isolation in effect; `config` has the one that was chosen.
    isolation: Option<&'static str>,
    /// Restarts in a row since it last stayed up.
    restarts: u32,
    /// The parts of a start, stop or restart that are not done yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The time of the next automatic retry, in milliseconds since the epoch.
    retry_at: Option<u64>,
}

impl ServerDetails {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

/// `wanted` is the desired state; `view`, if there is one yet, the current one.
pub fn record(wanted: &DesiredServer, view: Option<&Arc<ServerView>>) -> ServerDetails {
    let spec = wanted.spec.as_deref().ok();
    let state = view.map(|view| &view.state);
    let peer = state.and_then(|state| state.peer());
    let process = view.and_then(|view| view.process.as_ref());
    ServerDetails {
        id: wanted.id,
        name: wanted.name.clone(),
        transport: spec.map(|spec| spec.transport()),
        status: state.map_or(Status::Disconnected, |state| state.status()),
        state: state.map_or(RunState::Stopped, |state| state.run_state()),
        since: epoch_millis(view.map_or_else(SystemTime::now, |view| view.since)),
        error: state.and_then(|state| state.error()).map(str::to_owned),
        enabled: spec.is_some_and(|spec| spec.enabled),
        tool_count: view.map_or(0, |view| view.catalog.tools.len()),
        config: spec.map(config::view::masked_config),
        source: wanted.source.to_string(),
        shadows: wanted.shadows.iter().map(ToString::to_string).collect(),
        problems: wanted
            .spec
            .as_ref()
            .err()
            .map_or_else(Vec::new, |all| all.to_vec()),
        era: peer.map(|peer| peer.era.as_str()),
        protocol_version: peer.map(|peer| peer.version.clone()),
        server_info: peer.and_then(|peer| peer.server_info.clone()),
        instructions: peer.and_then(|peer| peer.instructions.clone()),
        pid: process.map(|process| process.pid),
        containment: process.map(|process| process.containment.as_str()),
        containment_gaps: process.map(|process| process.gaps()).unwrap_or_default(),
        isolation: view.and_then(|view| view.isolation).map(Isolation::as_str),
        restarts: view.map_or(0, |view| view.restarts),
        warnings: Vec::new(),
        retry_at: state.and_then(|state| state.retry_at()).map(epoch_millis),
    }
}
