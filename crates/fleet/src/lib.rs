//! The running servers. The fleet makes the actual state follow the desired
//! state: it alone retries, backs off, checks health, lists tools and publishes
//! the snapshot. Other crates read the snapshot or edit the registry.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::registry::{Desired, DesiredServer};
use upstream::{Connection, ConnectionLimits, Notification, ServerRequest, UpstreamError};
use wire::Era;

mod asking;
mod attempt;
mod backoff;
mod call;
pub mod catalog;
mod followed;
mod handover;
pub mod history;
mod listen;
pub mod log;
pub mod offer;
pub mod processes;
pub mod registry;
mod serving;
mod slots;
pub mod state;
mod subscription;
mod supervisor;

pub use asking::AskingServer;
pub use call::{CallItem, CallOutcome, CallRequest, CallStream, Permission};
pub use offer::Offer;
pub use slots::Slot;
pub use state::{RunState, ServerConnection, ServerState, ServerView, Snapshot, Status};
pub use subscription::{ResourceSubscription, Subscriptions};

use supervisor::{SharedParts, Supervisor};

/// How many servers may be in the first phase of connecting at once.
const STARTS_AT_ONCE: usize = 16;

/// The settings shared by all connections of this process.
pub struct FleetConfig {
    /// The base of relative paths in definitions.
    pub project: PathBuf,
    /// Portway's own environment, in which `${VAR}` is looked up.
    pub variables: HashMap<String, String>,
    /// The part of the environment that child processes inherit.
    pub base_env: Arc<Vec<(String, String)>>,
    /// Directories that are hidden from every server.
    pub hidden: Vec<PathBuf>,
    pub instance: String,
    pub shim: PathBuf,
    pub limits: ConnectionLimits,
    pub health_interval: Duration,
    /// The client capabilities that Portway can serve.
    pub capabilities: Arc<RawValue>,
    /// Receives the servers that ask their client; a full queue drops them.
    pub asked: mpsc::Sender<AskingServer>,
}

/// Makes the running servers follow `desired` until `stop`; then ends all of
/// them in parallel and returns.
pub async fn run(
    mut desired: watch::Receiver<Arc<Desired>>,
    surroundings: Arc<FleetConfig>,
    publisher: Publisher,
    stop: CancellationToken,
) {
    let shared = SharedParts {
        publisher,
        surroundings,
        starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
        going_down: stop.child_token(),
        retired: TaskTracker::new(),
    };
    let mut wishes: HashMap<Arc<str>, SupervisorHandle> = HashMap::new();
    let mut supervisors = JoinSet::new();
    loop {
        let wanted = desired.borrow_and_update().clone();
        wishes.retain(|name, wish| {
            let keep = wanted.contains_key(name);
            if !keep {
                wish.sender.send_replace(None);
            }
            // A removed name stays until its supervisor has ended, so that a
            // server added again under the name never runs beside the old one.
            keep || !wish.sender.is_closed()
        });
        // A renamed server must not run under both names at once.
        let ending: HashSet<Uuid> = wishes
            .iter()
            .filter(|(name, _)| !wanted.contains_key(*name))
            .map(|(_, wish)| wish.id)
            .collect();
        for (name, wanted) in wanted.iter() {
            match wishes.get_mut(name).filter(|wish| !wish.sender.is_closed()) {
                Some(wish) => wish.change(wanted),
                None if ending.contains(&wanted.id) => {}
                None => {
                    let (sender, receiver) = watch::channel(Some(wanted.clone()));
                    let id = wanted.id;
                    wishes.insert(name.clone(), SupervisorHandle { id, sender });
                    let supervisor = Supervisor::new(name.clone(), receiver, shared.clone());
                    supervisors.spawn(supervisor.run());
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            changed = desired.changed() => if changed.is_err() { break },
            // A supervisor has ended: its name or id may be wanted again by now.
            Some(_) = supervisors.join_next(), if !supervisors.is_empty() => {}
        }
    }
    shared.going_down.cancel();
    for wish in wishes.values() {
        wish.sender.send_replace(None);
    }
    while supervisors.join_next().await.is_some() {}
    shared.retired.close();
    shared.retired.wait().await;
}

/// The channel that sends one supervisor its desired state.
struct SupervisorHandle {
    id: Uuid,
    sender: watch::Sender<Option<Arc<DesiredServer>>>,
}

impl SupervisorHandle {
    fn change(&mut self, wanted: &Arc<DesiredServer>) {
        self.id = wanted.id;
        self.sender.send_if_modified(|old| {
            let fresh = old.as_ref().is_none_or(|old| !Arc::ptr_eq(old, wanted));
            *old = Some(wanted.clone());
            fresh
        });
    }
}

/// A notification of a server that belongs to no call: a resource or a list
/// changed.
#[derive(Debug)]
pub struct ServerUpdate {
    pub server: Arc<str>,
    /// The owner of the process or connection that sent it; `None` if shared.
    pub whose: Option<Arc<str>>,
    pub note: Notification,
}

/// Takes a server's request outside any call, on a connection that serves one
/// legacy session alone, with that session's key; must not block.
pub type QuestionHandler = Box<dyn Fn(Arc<str>, ServerRequest) + Send + Sync>;

/// How many updates a slow receiver may lag behind.
const UPDATES: usize = 1024;

/// The channels for notifications and requests that belong to no call.
struct ServerMessages {
    updates: broadcast::Sender<Arc<ServerUpdate>>,
    attendant: OnceLock<QuestionHandler>,
}

impl ServerMessages {
    fn tell(&self, server: &Arc<str>, whose: Option<Arc<str>>, note: Notification) {
        let server = server.clone();
        // An error only means that there is no receiver.
        let _ = self.updates.send(Arc::new(ServerUpdate {
            server,
            whose,
            note,
        }));
    }
}

/// The handle through which supervisors publish the state of their servers.
#[derive(Clone)]
pub struct Publisher {
    snapshots: watch::Sender<Arc<Snapshot>>,
    unasked: Arc<ServerMessages>,
}

impl Publisher {
    pub fn new() -> (Publisher, Fleet) {
        let publisher = Publisher {
            snapshots: watch::Sender::new(Arc::default()),
            unasked: Arc::new(ServerMessages {
                updates: broadcast::Sender::new(UPDATES),
                attendant: OnceLock::new(),
            }),
        };
        let fleet = Fleet {
            snapshots: publisher.snapshots.subscribe(),
            unasked: publisher.unasked.clone(),
        };
        (publisher, fleet)
    }

    fn change(&self, edit: impl FnOnce(&mut Snapshot)) {
        // The snapshot is copied only while a reader holds it: a thousand
        // servers that start at once must not cause a thousand copies each.
        self.snapshots
            .send_modify(|snapshot| edit(Arc::make_mut(snapshot)));
    }

    pub fn put(&self, name: &Arc<str>, view: ServerView) {
        self.change(|snapshot| {
            let offer = view.offer.clone();
            let old = snapshot.servers.insert(name.clone(), Arc::new(view));
            let same = match (old.as_ref().map(|old| &old.offer), &offer) {
                (Some(Some(old)), Some(new)) => Arc::ptr_eq(old, new),
                (Some(None), None) => true,
                _ => false,
            };
            snapshot.offers += u64::from(!same);
        });
    }

    fn remove(&self, name: &Arc<str>) {
        self.change(|snapshot| {
            snapshot.servers.remove(name);
            snapshot.offers += 1;
        });
    }

    /// Without a handler the request is dropped, which refuses it.
    fn asked(&self, session: &Arc<str>, request: ServerRequest) {
        if let Some(attendant) = self.unasked.attendant.get() {
            attendant(session.clone(), request);
        }
    }
}

/// A reader of the snapshot; cheap to clone.
#[derive(Clone)]
pub struct Fleet {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    unasked: Arc<ServerMessages>,
}

/// The reason why a request never reached its server, or its error.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("no server is called {0:?}")]
    Unknown(String),
    #[error("server {server:?} is not connected{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    NotConnected {
        server: String,
        reason: Option<String>,
    },
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl Fleet {
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshots.borrow().clone()
    }

    /// A separate receiver that follows every change.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Waits until the view of `name` satisfies `fits`, at most `limit`; then
    /// returns the current view. `None`: no such server.
    pub async fn wait(
        &self,
        name: &str,
        fits: impl Fn(&ServerView) -> bool,
        limit: Duration,
    ) -> Option<Arc<ServerView>> {
        let mut snapshots = self.snapshots.clone();
        let fitting = snapshots.wait_for(|snapshot| {
            let view = snapshot.servers.get(name);
            view.is_some_and(|view| fits(view))
        });
        // On a timeout or a closed channel, return the current view.
        let _ = tokio::time::timeout(limit, fitting).await;
        self.snapshot().servers.get(name).cloned()
    }

    /// Waits until `name` is removed, at most `limit`.
    pub async fn removed(&self, name: &str, limit: Duration) {
        let mut snapshots = self.snapshots.clone();
        let gone = snapshots.wait_for(|snapshot| !snapshot.servers.contains_key(name));
        let _ = tokio::time::timeout(limit, gone).await;
    }

    /// The notifications of servers that belong to no call, from now on.
    pub fn updates(&self) -> broadcast::Receiver<Arc<ServerUpdate>> {
        self.unasked.updates.subscribe()
    }

    /// Sets the handler for requests that servers send to one session alone;
    /// only the first caller sets it.
    pub fn attend(&self, attendant: QuestionHandler) {
        let _ = self.unasked.attendant.set(attendant);
    }

    fn connected(&self, server: &str) -> Option<ServerConnection> {
        self.snapshot().find(server)?.state.line().cloned()
    }

    /// The owner of the connection that serves `slot`; `None` if shared.
    pub(crate) fn whose(&self, server: &str, slot: &Slot) -> Option<Arc<str>> {
        let line = self.connected(server)?;
        line.desk.whose(slot, &line.connection)
    }

    /// Sends a notification to a legacy server on behalf of `slot`, if `slot`
    /// has a connection to it.
    pub async fn tell(&self, server: &str, slot: &Slot, method: &str) {
        if let Some(line) = self.connected(server)
            && let Some(connection) = line.desk.existing(slot, &line.connection)
            && connection.peer().era == Era::Legacy
        {
            let _ = connection.notify(method, None).await;
        }
    }

    /// The connection that serves `slot`, and the limit of a call on it. While
    /// the server is being replaced this waits, `limit` from `start`.
    pub(crate) async fn lease(
        &self,
        server: &str,
        slot: &Slot,
        start: Instant,
        limit: Option<Duration>,
    ) -> Result<(Connection, Duration), CallError> {
        let mut snapshots = self.snapshots.clone();
        let (line, limit) = self.line(&mut snapshots, server, start, limit).await?;
        let own = line.desk.connection(slot, &line.connection);
        match tokio::time::timeout_at(start + limit, own).await {
            Ok(connection) => Ok((connection?, limit)),
            Err(_) => Err(UpstreamError::Timeout { limit }.into()),
        }
    }

    async fn line(
        &self,
        snapshots: &mut watch::Receiver<Arc<Snapshot>>,
        server: &str,
        start: Instant,
        limit: Option<Duration>,
    ) -> Result<(ServerConnection, Duration), CallError> {
        let absent = |reason| {
            let server = server.to_owned();
            Err(CallError::NotConnected { server, reason })
        };
        loop {
            let snapshot = snapshots.borrow_and_update().clone();
            let Some(view) = snapshot.find(server) else {
                return Err(CallError::Unknown(server.to_owned()));
            };
            let limit = limit.unwrap_or_else(|| view.wanted.timeout());
            match view.state.line() {
                Some(line) if !line.connection.is_closed() => {
                    return Ok((line.clone(), limit));
                }
                // The connection drains, and the next state is not published yet.
                Some(_) => {}
                None if view.state.holds_calls() => {}
                None => return absent(view.state.error().map(str::to_owned)),
            }
            match tokio::time::timeout_at(start + limit, snapshots.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return absent(Some("Portway is shutting down".into())),
                Err(_) => return Err(UpstreamError::Timeout { limit }.into()),
            }
        }
    }
}
