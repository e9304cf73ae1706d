//! The desired state of one server: its definition, and whether it should run.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Edits, Runs};
use config::layers::{MergedServer, Source, SourceKind};
use config::{DEFAULT_TIMEOUT, Problem, ServerSpec};

/// The desired state of one server.
#[derive(Clone, Debug)]
pub struct DesiredServer {
    pub id: Uuid,
    /// The name as written in the file, even if it is invalid.
    pub name: Arc<str>,
    pub spec: Result<Arc<ServerSpec>, Arc<Vec<Problem>>>,
    pub run: bool,
    /// Higher than the generation of every earlier desired server.
    pub generation: u64,
    /// A server of this definition has asked its client during a call.
    pub asks: bool,
    /// How often a person requested a restart.
    pub restarts: u64,
    pub source: Source,
    /// Definitions of the same name that this one shadows.
    pub shadows: Vec<Source>,
    pub cause: RunCause,
}

/// The reason for the current desired state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunCause {
    #[default]
    Startup,
    Added(Via),
    Changed(Via),
    Start,
    Stop,
    Restart,
}

/// The way an edit came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Api,
    /// A person edited the file, or another replica the database.
    Source,
}

/// The event that leads to a new desired state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion<'a> {
    Startup,
    /// A file was edited, or another replica wrote to the database.
    Reload,
    /// An edit of one server through the API. Any other change found at the
    /// same time comes from a file.
    Edit(&'a str),
}

impl Occasion<'_> {
    /// The reason why `next` differs from the desired state before.
    pub(super) fn cause(self, before: Option<&DesiredServer>, next: &DesiredServer) -> RunCause {
        let via = match self {
            Occasion::Edit(name) if name == &*next.name => Via::Api,
            _ => Via::Source,
        };
        match (self, before) {
            (Occasion::Startup, _) => RunCause::Startup,
            (_, None) => RunCause::Added(via),
            (_, Some(before)) if before.restarts != next.restarts => RunCause::Restart,
            (_, Some(before)) if before.spec != next.spec || before.source != next.source => {
                RunCause::Changed(via)
            }
            (_, Some(before)) if !before.run && next.run => RunCause::Start,
            (_, Some(before)) if before.run && !next.run => RunCause::Stop,
            (_, Some(before)) => before.cause,
        }
    }
}

impl DesiredServer {
    pub fn timeout(&self) -> Duration {
        self.spec
            .as_ref()
            .map_or(DEFAULT_TIMEOUT, |spec| spec.timeout)
    }

    /// The reason for the desired state, for the server's history.
    pub fn why(&self) -> String {
        let place = |via| match (via, self.source.kind) {
            (Via::Api, _) => "through the API".to_owned(),
            (Via::Source, SourceKind::Database) => "in the database".to_owned(),
            (Via::Source, _) => format!("in {}", self.source.describe()),
        };
        match self.cause {
            RunCause::Startup => "Portway starts".to_owned(),
            RunCause::Added(via) => format!("added {}", place(via)),
            RunCause::Changed(via) => format!("definition changed {}", place(via)),
            RunCause::Start => "start asked for".to_owned(),
            RunCause::Stop => "stop asked for".to_owned(),
            RunCause::Restart => "restart asked for".to_owned(),
        }
    }

    /// The reason why the server does not run, for its history.
    pub(crate) fn why_stopped(&self) -> String {
        match (&self.spec, self.cause) {
            // The definition became invalid.
            (Err(_), _) => self.why(),
            (Ok(_), RunCause::Stop) => "stopped by hand".to_owned(),
            (Ok(spec), RunCause::Startup) if !spec.enabled => "not enabled".to_owned(),
            (Ok(spec), _) if !spec.enabled => format!("not enabled: {}", self.why()),
            (Ok(_), RunCause::Added(_)) => format!("not started: {}", self.why()),
            // An earlier stop is still in force.
            (Ok(_), _) => "stopped by hand".to_owned(),
        }
    }

    pub(super) fn same(&self, other: &DesiredServer) -> bool {
        self.id == other.id
            && self.run == other.run
            && self.asks == other.asks
            && self.restarts == other.restarts
            && self.spec == other.spec
            && self.source == other.source
            && self.shadows == other.shadows
    }
}

impl Edits {
    /// The desired state for one definition, before its generation is set.
    pub(super) fn wanted(
        &self,
        runs: &Runs,
        name: &Arc<str>,
        effective: &MergedServer,
        before: Option<&Arc<DesiredServer>>,
    ) -> DesiredServer {
        let record = self.records.get(&**name);
        let spec = match &effective.definition {
            // The same value, so that no receiver takes it for a change.
            Ok((_, spec)) => Ok(before
                .and_then(|before| before.spec.as_ref().ok())
                .filter(|old| ***old == *spec)
                .map_or_else(|| Arc::new(spec.clone()), Arc::clone)),
            Err(problems) => Err(Arc::new(problems.clone())),
        };
        let asks = record.and_then(|record| record.asks.as_deref());
        let asks = spec
            .as_ref()
            .is_ok_and(|spec| asks.is_some_and(|asks| asks == spec.fingerprint()));
        let enabled = spec.as_ref().is_ok_and(|spec| spec.enabled);
        DesiredServer {
            id: record.map_or_else(|| id_of_unnamable(name), |record| record.id),
            name: name.clone(),
            run: runs.run_of(name, record).unwrap_or(enabled) && spec.is_ok(),
            spec,
            generation: 0,
            asks,
            restarts: runs.restarts.get(name).copied().unwrap_or_default(),
            source: effective.source.clone(),
            shadows: effective.shadows.clone(),
            cause: RunCause::default(),
        }
    }
}

/// A definition with an invalid name cannot be recorded, but must be shown: its
/// id is derived from the written name.
fn id_of_unnamable(name: &str) -> Uuid {
    let digest = Sha256::digest(name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
