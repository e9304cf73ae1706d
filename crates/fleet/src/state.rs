//! The state of one server, and its form in the snapshot and the API.

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

/// The actual state of all servers at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub servers: BTreeMap<Arc<str>, Arc<ServerView>>,
    /// Changes when the offer of a server changes, and only then.
    pub offers: u64,
}

impl Snapshot {
    /// Finds a server by name or id.
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
    /// The desired state that this view reflects.
    pub wanted: Arc<DesiredServer>,
    pub state: ServerState,
    pub since: SystemTime,
    /// Whether the desired state has had an outcome: connected, stopped, failed.
    pub settled: bool,
    /// Whether any desired state has had an outcome since the start.
    pub settled_once: bool,
    /// Empty unless connected.
    pub catalog: Arc<Catalog>,
    /// The lists that clients see. The same value as long as they are the same.
    pub offer: Option<Arc<Offer>>,
    pub process: Option<ProcessFacts>,
    /// The isolation in force; `None` unless connected.
    pub isolation: Option<Isolation>,
    /// Restarts in a row since the server last stayed up.
    pub restarts: u32,
    pub log: Arc<LogRing>,
    pub history: Arc<History>,
}

impl ServerView {
    /// The lists that clients see: the server's own, or the last ones of a
    /// server that is briefly disconnected.
    pub fn listed(&self) -> &Arc<Catalog> {
        self.offer
            .as_ref()
            .map_or(&self.catalog, |offer| &offer.catalog)
    }
}

/// The shared connection, and the table of connections that are not shared.
#[derive(Clone)]
pub struct ServerConnection {
    pub connection: Connection,
    pub desk: Arc<SlotTable>,
}

/// Each state carries its own data; `status` and `state` of the API are
/// functions of it.
#[derive(Clone)]
pub enum ServerState {
    Stopped,
    Connecting {
        /// The connection that still takes calls until its successor is up.
        serving: Option<ServerConnection>,
        /// A replacement: calls wait for it instead of failing.
        replacing: bool,
    },
    Connected {
        line: ServerConnection,
    },
    /// The supervisor retries.
    Waiting {
        error: Arc<str>,
        /// The server was connected before: a loss and not a failed start.
        lost: bool,
        retry_at: SystemTime,
    },
    /// The supervisor does not retry until a person changes something.
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

/// A coarser form of the status.
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

    /// The time of the next automatic retry.
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self {
            ServerState::Waiting { retry_at, .. } => Some(*retry_at),
            _ => None,
        }
    }

    /// The server at the other end of the connection, if there is one.
    pub fn peer(&self) -> Option<&Peer> {
        self.connection().map(|connection| &**connection.peer())
    }

    /// The connection that takes calls now.
    pub fn connection(&self) -> Option<&Connection> {
        self.line().map(|line| &line.connection)
    }

    /// The same, with the table of further connections.
    pub fn line(&self) -> Option<&ServerConnection> {
        match self {
            ServerState::Connected { line } => Some(line),
            ServerState::Connecting { serving, .. } => serving.as_ref(),
            _ => None,
        }
    }

    /// Whether a call should wait for the next state.
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
