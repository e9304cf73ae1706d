//! What one server is doing, and how that is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use super::catalog::Catalog;
use super::history::History;
use super::log::LogRing;
use super::offer::Offer;
use super::slots::SlotTable;
use crate::registry::DesiredServer;
use config::Isolation;
use upstream::{Connection, Peer, ProcessFacts};

/// Everything that does run, at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub servers: BTreeMap<Arc<str>, Arc<ServerView>>,
    /// Moves when what some server offers has changed, and only then.
    pub offers: u64,
}

impl Snapshot {
    /// By name or id.
    pub fn find(&self, server: &str) -> Option<&Arc<ServerView>> {
        self.servers.get(server).or_else(|| {
            let id = uuid::Uuid::try_parse(server).ok()?;
            self.servers.values().find(|view| view.wanted.id == id)
        })
    }
}

/// One server at one moment.
#[derive(Clone)]
pub struct ServerView {
    /// The wish this view answers to.
    pub wanted: Arc<DesiredServer>,
    pub state: ServerState,
    pub since: SystemTime,
    /// Whether the wish has come to something: connected, stopped, failed.
    pub settled: bool,
    /// Whether any wish ever has, since the start.
    pub settled_once: bool,
    /// Empty unless connected.
    pub catalog: Arc<Catalog>,
    /// What clients see of it. The same value as long as that is the same.
    pub offer: Option<Arc<Offer>>,
    pub process: Option<ProcessFacts>,
    /// Who shares a process or connection now; unknown unless connected.
    pub isolation: Option<Isolation>,
    /// Restarts in a row since it last stayed up.
    pub restarts: u32,
    pub log: Arc<LogRing>,
    pub history: Arc<History>,
}

impl ServerView {
    /// What clients are shown: its own lists, or the last ones of a server
    /// that is away for a moment.
    pub fn listed(&self) -> &Arc<Catalog> {
        self.offer
            .as_ref()
            .map_or(&self.catalog, |offer| &offer.catalog)
    }
}

/// The connection everybody shares, and where those who must not get theirs.
#[derive(Clone)]
pub struct ServerConnection {
    pub connection: Connection,
    pub desk: Arc<SlotTable>,
}

/// The state carries what makes it true; `status` and `state` of the API are
/// functions of it.
#[derive(Clone)]
pub enum ServerState {
    Stopped,
    Connecting {
        /// The connection that still takes calls while its successor is made.
        serving: Option<ServerConnection>,
        /// A replacement: calls wait for it instead of failing.
        replacing: bool,
    },
    Connected {
        line: ServerConnection,
    },
    /// Will be tried again.
    Waiting {
        error: Arc<str>,
        /// It was connected before, so this is a loss and not a failed start.
        lost: bool,
        retry_at: SystemTime,
    },
    /// Will not be tried again until somebody changes something.
    Failed {
        error: Arc<str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Disconnected,
    Connecting,
    Connected,
    Error,
}

/// The coarser word of the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Stopped,
    Running,
    Error,
}

impl ServerState {
    pub fn status(&self) -> Status {
        match self {
            ServerState::Stopped | ServerState::Waiting { lost: true, .. } => Status::Disconnected,
            ServerState::Connecting { .. } => Status::Connecting,
            ServerState::Connected { .. } => Status::Connected,
            ServerState::Waiting { lost: false, .. } | ServerState::Failed { .. } => Status::Error,
        }
    }

    pub fn run_state(&self) -> RunState {
        match self.status() {
            Status::Connected => RunState::Running,
            Status::Error => RunState::Error,
            Status::Disconnected | Status::Connecting => RunState::Stopped,
        }
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            ServerState::Waiting { error, .. } | ServerState::Failed { error } => Some(error),
            _ => None,
        }
    }

    /// When it is tried again by itself.
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self {
            ServerState::Waiting { retry_at, .. } => Some(*retry_at),
            _ => None,
        }
    }

    /// The server at the other end, while there is a connection.
    pub fn peer(&self) -> Option<&Peer> {
        self.connection().map(|connection| &**connection.peer())
    }

    /// The connection that takes calls now.
    pub fn connection(&self) -> Option<&Connection> {
        match self {
            ServerState::Connected { line } => Some(&line.connection),
            ServerState::Connecting { serving, .. } => {
                serving.as_ref().map(|line| &line.connection)
            }
            _ => None,
        }
    }

    /// The same, with the way to further connections.
    pub fn line(&self) -> Option<&ServerConnection> {
        match self {
            ServerState::Connected { line } => Some(line),
            ServerState::Connecting { serving, .. } => serving.as_ref(),
            _ => None,
        }
    }

    /// Whether a call should wait for what comes next.
    pub(crate) fn holds_calls(&self) -> bool {
        matches!(
            self,
            ServerState::Connecting {
                replacing: true,
                ..
            }
        )
    }
}
