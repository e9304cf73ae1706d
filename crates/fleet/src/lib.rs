//! What does run. Actual follows desired: this room alone retries, backs off,
//! checks health, lists tools and publishes the snapshot. Nobody commands it:
//! they read the snapshot or edit the registry.

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

use supervisor::Supervisor;

/// How many servers may be in the first moments of connecting at once.
const STARTS_AT_ONCE: usize = 16;

/// What every connection of this process is made with.
pub struct FleetConfig {
    /// Where relative paths of definitions start.
    pub project: PathBuf,
    /// Our own environment: what `${VAR}` looks up.
    pub variables: HashMap<String, String>,
    /// The part of it that children inherit.
    pub base_env: Arc<Vec<(String, String)>>,
    /// Directories that no server may see.
    pub hidden: Vec<PathBuf>,
    pub instance: String,
    pub shim: PathBuf,
    pub limits: ConnectionLimits,
    pub health_interval: Duration,
    /// What we can answer for as a client.
    pub capabilities: Arc<RawValue>,
    /// Takes the servers that are seen to ask; a full queue drops.
    pub asked: mpsc::Sender<AskingServer>,
}

/// Makes what runs follow `desired` until `stop`; then ends
/// everything, side by side, and returns.
pub async fn run(
    mut desired: watch::Receiver<Arc<Desired>>,
    surroundings: Arc<FleetConfig>,
    publisher: Publisher,
    stop: CancellationToken,
) {
    let starts = Arc::new(Semaphore::new(STARTS_AT_ONCE));
    let going_down = stop.child_token();
    let retired = TaskTracker::new();
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
            // name that comes back never runs beside its past.
            keep || !wish.sender.is_closed()
        });
        // Nor does a server run beside itself under its new name.
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
                    let (wish, receiver) = SupervisorHandle::new(wanted);
                    wishes.insert(name.clone(), wish);
                    let supervisor = Supervisor::new(
                        name.clone(),
                        receiver,
                        publisher.clone(),
                        surroundings.clone(),
                        starts.clone(),
                        going_down.clone(),
                        retired.clone(),
                    );
                    supervisors.spawn(supervisor.run());
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            changed = desired.changed() => if changed.is_err() { break },
            // One ended: its name or id may be wanted again by now.
            Some(_) = supervisors.join_next(), if !supervisors.is_empty() => {}
        }
    }
    going_down.cancel();
    for wish in wishes.values() {
        wish.sender.send_replace(None);
    }
    while supervisors.join_next().await.is_some() {}
    retired.close();
    retired.wait().await;
}

/// What one supervisor is told to do.
struct SupervisorHandle {
    id: Uuid,
    sender: watch::Sender<Option<Arc<DesiredServer>>>,
}

impl SupervisorHandle {
    fn new(
        wanted: &Arc<DesiredServer>,
    ) -> (
        SupervisorHandle,
        watch::Receiver<Option<Arc<DesiredServer>>>,
    ) {
        let (sender, receiver) = watch::channel(Some(wanted.clone()));
        let id = wanted.id;
        (SupervisorHandle { id, sender }, receiver)
    }

    fn change(&mut self, wanted: &Arc<DesiredServer>) {
        self.id = wanted.id;
        self.sender.send_if_modified(|old| {
            let fresh = old.as_ref().is_none_or(|old| !Arc::ptr_eq(old, wanted));
            *old = Some(wanted.clone());
            fresh
        });
    }
}

/// A notification of a server that belongs to no call: a resource changed, a
/// list did.
#[derive(Debug)]
pub struct ServerUpdate {
    pub server: Arc<str>,
    /// Whose process or connection says it, where it is not everybody's.
    pub whose: Option<Arc<str>>,
    pub note: Notification,
}

/// Takes what a server asks outside any call on a connection that serves one
/// legacy session alone, and that session's key; must not block.
pub type QuestionHandler = Box<dyn Fn(Arc<str>, ServerRequest) + Send + Sync>;

/// How many of them a slow reader may be behind.
const UPDATES: usize = 1024;

/// What servers say and ask of their own accord, on its way.
struct ServerMessages {
    updates: broadcast::Sender<Arc<ServerUpdate>>,
    attendant: OnceLock<QuestionHandler>,
}

/// The supervisors' way to tell what became of their servers.
#[derive(Clone)]
pub struct Publisher {
    snapshots: watch::Sender<Arc<Snapshot>>,
    unasked: Arc<ServerMessages>,
}

impl Publisher {
    pub fn new() -> (Publisher, Fleet) {
        let (sender, receiver) = watch::channel(Arc::new(Snapshot::default()));
        let (updates, _) = broadcast::channel(UPDATES);
        let unasked = Arc::new(ServerMessages {
            updates,
            attendant: OnceLock::new(),
        });
        let fleet = Fleet {
            snapshots: receiver,
            unasked: unasked.clone(),
        };
        let publisher = Publisher {
            snapshots: sender,
            unasked,
        };
        (publisher, fleet)
    }

    fn change(&self, edit: impl FnOnce(&mut Snapshot)) {
        // Copied only while a reader holds it: a thousand servers that start
        // at once must not copy each other a thousand times.
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

    /// Refused by being dropped where nobody attends to it.
    fn asked(&self, session: &Arc<str>, request: ServerRequest) {
        if let Some(attendant) = self.unasked.attendant.get() {
            attendant(session.clone(), request);
        }
    }

    fn updated(&self, server: &Arc<str>, whose: Option<Arc<str>>, note: Notification) {
        let server = server.clone();
        // Nobody listening is fine.
        let _ = self.unasked.updates.send(Arc::new(ServerUpdate {
            server,
            whose,
            note,
        }));
    }
}

/// A reader of the snapshot; cheap to clone.
#[derive(Clone)]
pub struct Fleet {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    unasked: Arc<ServerMessages>,
}

/// Why a request never reached its server, or what came of it.
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

    /// A receiver of its own, to follow every change.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Waits until the view of `name` is as `fits` says, at most `limit`;
    /// then the view as it is. `None`: no such server.
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
        // Late or closed: answer with what is there.
        let _ = tokio::time::timeout(limit, fitting).await;
        self.snapshot().servers.get(name).cloned()
    }

    /// Waits until `name` is gone, at most `limit`.
    pub async fn removed(&self, name: &str, limit: Duration) {
        let mut snapshots = self.snapshots.clone();
        let gone = snapshots.wait_for(|snapshot| !snapshot.servers.contains_key(name));
        let _ = tokio::time::timeout(limit, gone).await;
    }

    /// What servers say of their own accord, from now on.
    pub fn updates(&self) -> broadcast::Receiver<Arc<ServerUpdate>> {
        self.unasked.updates.subscribe()
    }

    /// Has somebody take what servers ask of one session alone; the first
    /// who does is it.
    pub fn attend(&self, attendant: QuestionHandler) {
        let _ = self.unasked.attendant.set(attendant);
    }

    /// Whose process or connection serves `slot`, where it is not everybody's.
    pub(crate) fn whose(&self, server: &str, slot: &Slot) -> Option<Arc<str>> {
        let snapshot = self.snapshot();
        let line = snapshot.find(server)?.state.line()?;
        line.desk.whose(slot, &line.connection)
    }

    /// Tells of an update that reached us another way: on a listen.
    pub(crate) fn tell_update(&self, update: ServerUpdate) {
        let _ = self.unasked.updates.send(Arc::new(update));
    }

    /// Tells a legacy server something on behalf of `slot`, if it has been
    /// talking to it.
    pub async fn tell(&self, server: &str, slot: &Slot, method: &str) {
        let snapshot = self.snapshot();
        let line = snapshot.find(server).and_then(|view| view.state.line());
        let connection = line.and_then(|line| line.desk.existing(slot, &line.connection));
        if let Some(connection) = connection
            && connection.peer().era == Era::Legacy
        {
            let _ = connection.notify(method, None).await;
        }
    }

    /// The connection that serves `slot`, and the limit of a call on it.
    /// While the server is being replaced this waits, `limit` from `start`.
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
                // Draining, and the next state not yet told.
                Some(_) => {}
                None if view.state.holds_calls() => {}
                None => {
                    return Err(CallError::NotConnected {
                        server: server.to_owned(),
                        reason: view.state.error().map(str::to_owned),
                    });
                }
            }
            match tokio::time::timeout_at(start + limit, snapshots.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => {
                    return Err(CallError::NotConnected {
                        server: server.to_owned(),
                        reason: Some("Portway is shutting down".into()),
                    });
                }
                Err(_) => return Err(UpstreamError::Timeout { limit }.into()),
            }
        }
    }
}
