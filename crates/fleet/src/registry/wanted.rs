//! One server as it should be: its definition, and whether it should run.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Edits, Runs};
use config::layers::{MergedServer, Source, SourceKind};
use config::{DEFAULT_TIMEOUT, Problem, ServerSpec};

/// One server as it should be.
#[derive(Debug)]
pub struct DesiredServer {
    pub id: Uuid,
    /// As it stands in its file, even where that is not a valid name.
    pub name: Arc<str>,
    pub spec: Result<Arc<ServerSpec>, Arc<Vec<Problem>>>,
    pub run: bool,
    /// Higher than that of every earlier wish.
    pub generation: u64,
    /// This definition was seen to ask its client something during a call.
    pub asks: bool,
    /// How often somebody asked for a restart.
    pub restarts: u64,
    pub source: Source,
    /// Definitions of the same name that this one hides.
    pub shadows: Vec<Source>,
    /// Why it is as it is.
    pub cause: RunCause,
}

/// Why a wish came to be what it is.
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

/// How an edit came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Api,
    /// Somebody edited the file, or another replica the database.
    Source,
}

/// What brings a new wish list about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion<'a> {
    Startup,
    /// A file was edited, or another replica wrote to the database.
    Reload,
    /// An edit of one server through the API. Whatever else has changed by
    /// then was changed in a file.
    Edit(&'a str),
}

impl Occasion<'_> {
    /// Why `next` is not what was wished for before.
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
            (_, Some(before)) if before.run != next.run => match next.run {
                true => RunCause::Start,
                false => RunCause::Stop,
            },
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

    /// Why it is as it is, for the server's history.
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

    /// Why it does not run, for the server's history.
    pub(crate) fn why_stopped(&self) -> String {
        match (&self.spec, self.cause) {
            // The definition became invalid.
            (Err(_), _) => self.why(),
            (Ok(_), RunCause::Stop) => "stopped by hand".to_owned(),
            (Ok(spec), RunCause::Startup) if !spec.enabled => "not enabled".to_owned(),
            (Ok(spec), _) if !spec.enabled => format!("not enabled: {}", self.why()),
            (Ok(_), RunCause::Added(_)) => format!("not started: {}", self.why()),
            // An earlier stop still holds.
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
    /// The wish for one definition, its generation not yet counted.
    pub(super) fn wanted(
        &self,
        runs: &Runs,
        name: &Arc<str>,
        effective: &MergedServer,
        before: Option<&Arc<DesiredServer>>,
    ) -> DesiredServer {
        let record = self.records.get(&**name);
        let spec = match &effective.definition {
            // The same value, so that nobody takes it for a change.
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

/// A definition whose name is not one cannot be remembered, but must be shown:
/// its id follows from what was written.
fn id_of_unnamable(name: &str) -> Uuid {
    let digest = Sha256::digest(name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
