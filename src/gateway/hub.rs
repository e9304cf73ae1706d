//! Who wants to hear of which change, and keeping the servers telling.
//!
//! Changes of lists are seen in the snapshots. Changes of a resource are told
//! by its server only while somebody has subscribed to it: one subscription
//! for all who care, made again when the server comes back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Scope;
use super::changes::{self, Audience, Change};
use super::control::Control;
use super::resolve::no_resource;
use super::right::{Need, Right};
use crate::config::filters::Filters;
use crate::fleet::{CallError, Fleet, Snapshot, Update};
use crate::store::Store;
use crate::upstream::{Call, CallEvent, Connection, Permit, UpstreamError, event_queue};
use crate::wire::{Era, RpcError, code};

const LIMIT: Duration = Duration::from_secs(10);
/// Before a subscription that ended, or failed, is made again.
const AGAIN: Duration = Duration::from_secs(2);
const CHANGES: usize = 1024;
/// Resources followed at once, by everybody together.
const FOLLOWED: usize = 10_000;

/// What is followed, by server and URI.
type Followed = HashMap<(Arc<str>, String), Arc<Place>>;

/// Who follows one resource. Locked while a subscription is made or ended, so
/// that the server hears of them one after the other.
type Place = tokio::sync::Mutex<Weak<Following>>;

#[derive(Clone)]
pub(super) struct Hub(Arc<Inner>);

struct Inner {
    fleet: Fleet,
    store: Arc<dyn Store>,
    changes: broadcast::Sender<Arc<Change>>,
    followed: Mutex<Followed>,
}

/// One resource being followed; ends with its last holder.
pub(super) struct Following {
    _stop: DropGuard,
}

impl Hub {
    /// Must be called inside the runtime: it starts to watch at once.
    pub fn new(
        fleet: &Fleet,
        store: &Arc<dyn Store>,
        filters: &watch::Receiver<Arc<Filters>>,
        control: Option<Arc<Control>>,
    ) -> Hub {
        let (changes, _) = broadcast::channel(CHANGES);
        changes::watch(fleet, &**store, filters.clone(), control, &changes);
        Hub(Arc::new(Inner {
            fleet: fleet.clone(),
            store: store.clone(),
            changes,
            followed: Mutex::default(),
        }))
    }

    /// What changes from now on, and which of it concerns a scope.
    pub fn changes(&self, scope: &Scope) -> (broadcast::Receiver<Arc<Change>>, Audience) {
        let changes = self.0.changes.subscribe();
        let since = self.0.fleet.snapshot().offers;
        let audience = Audience::new(scope.clone(), self.0.store.clone(), since);
        (changes, audience)
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.0
            .followed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a resource of a server on behalf of a scope: returns once the
    /// server has agreed.
    pub async fn follow(
        &self,
        scope: &Scope,
        server: &Arc<str>,
        uri: &str,
    ) -> Result<Arc<Following>, RpcError> {
        let mut right = scope.grant().map(|grant| Right {
            store: self.0.store.clone(),
            grant: grant.clone(),
            need: Need::Resources,
        });
        loop {
            let permit = right.as_ref().map(Right::permit);
            let outcome = self.follow_with(permit, server, uri).await;
            match outcome {
                // The entry has changed since: nothing was sent.
                Err(UpstreamError::Revoked) => match right.and_then(|old| old.renewed(server)) {
                    Some(renewed) => right = Some(renewed),
                    None => return Err(no_resource(uri)),
                },
                outcome => return outcome.map_err(refusal),
            }
        }
    }

    async fn follow_with(
        &self,
        permit: Option<Arc<dyn Permit>>,
        server: &Arc<str>,
        uri: &str,
    ) -> Result<Arc<Following>, UpstreamError> {
        let place = self.place(server, uri).map_err(UpstreamError::Rpc)?;
        let mut followed = place.lock().await;
        if let Some(known) = followed.upgrade() {
            return Ok(known);
        }
        let stop = CancellationToken::new();
        let (agreed, answer) = oneshot::channel();
        let keeper = Keeper {
            fleet: self.0.fleet.clone(),
            server: server.clone(),
            uri: uri.to_owned(),
            stop: stop.clone(),
            place: place.clone(),
        };
        tokio::spawn(keeper.run(agreed, permit));
        let following = Arc::new(Following {
            _stop: stop.drop_guard(),
        });
        let gone = |_| Err(UpstreamError::Lost("the server is gone".into()));
        answer.await.unwrap_or_else(gone)?;
        *followed = Arc::downgrade(&following);
        Ok(following)
    }

    fn place(&self, server: &Arc<str>, uri: &str) -> Result<Arc<Place>, RpcError> {
        let key = (server.clone(), uri.to_owned());
        let mut followed = self.followed();
        if let Some(place) = followed.get(&key) {
            return Ok(place.clone());
        }
        // Held by whoever keeps or waits for a subscription.
        followed.retain(|_, place| Arc::strong_count(place) > 1);
        if followed.len() >= FOLLOWED {
            let text = "too many resources are followed";
            return Err(RpcError::new(code::INTERNAL, text));
        }
        Ok(followed.entry(key).or_default().clone())
    }
}

/// Keeps one subscription at a server, over its restarts.
struct Keeper {
    fleet: Fleet,
    server: Arc<str>,
    uri: String,
    stop: CancellationToken,
    place: Arc<Place>,
}

impl Keeper {
    /// `permit` is that of whoever asked for it first.
    async fn run(
        self,
        agreed: oneshot::Sender<Result<(), UpstreamError>>,
        permit: Option<Arc<dyn Permit>>,
    ) {
        let mut agreed = Some(agreed);
        let mut snapshots = self.fleet.watch();
        let mut served: Option<Subscribed> = None;
        loop {
            let current = connection(&snapshots.borrow_and_update(), &self.server);
            match (&current, &served) {
                (Some(current), Some(served)) if current.same(&served.connection) => {}
                (Some(current), _) => {
                    let permit = permit.as_ref().filter(|_| agreed.is_some());
                    let outcome = self.subscribe(current, permit).await;
                    match (outcome, agreed.take()) {
                        (Err(error), Some(agreed)) => return drop(agreed.send(Err(error))),
                        (Err(_), None) => served = None,
                        (Ok(subscribed), first) => {
                            served = Some(subscribed);
                            first.map(|agreed| agreed.send(Ok(())));
                        }
                    }
                }
                (None, _) => {
                    if let Some(agreed) = agreed.take() {
                        let text = format!("server {:?} is not connected", self.server);
                        let error = RpcError::new(code::INTERNAL, text);
                        let _ = agreed.send(Err(UpstreamError::Rpc(error)));
                        return;
                    }
                    served = None;
                }
            }
            tokio::select! {
                changed = snapshots.changed() => if changed.is_err() { return },
                () = over(served.as_ref()), if current.is_some() => served = None,
                () = self.stop.cancelled() => break,
            }
        }
        let followed = self.place.lock().await;
        // Somebody else may have subscribed since; that one subscription is theirs now.
        let connection = served.map(|served| served.connection);
        let legacy = |connection: &Connection| connection.peer().era == Era::Legacy;
        if followed.strong_count() == 0
            && let Some(connection) = connection.filter(legacy)
        {
            let params = self.params();
            let call = Call::new("resources/unsubscribe", LIMIT).params(params.as_deref());
            let _ = connection.background(call).await;
        }
    }

    fn params(&self) -> Option<Box<RawValue>> {
        serde_json::value::to_raw_value(&serde_json::json!({ "uri": self.uri })).ok()
    }

    async fn subscribe(
        &self,
        connection: &Connection,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<Subscribed, UpstreamError> {
        let ended = CancellationToken::new();
        match connection.peer().era {
            Era::Legacy => {
                let params = self.params();
                let call = Call::new("resources/subscribe", LIMIT).params(params.as_deref());
                connection.background(Call { permit, ..call }).await?;
            }
            Era::Modern => {
                let end = ended.clone().drop_guard();
                self.listen(connection.clone(), permit.cloned(), end)
                    .await?;
            }
        }
        let connection = connection.clone();
        Ok(Subscribed { connection, ended })
    }

    /// A listen of its own, in a task that ends with the following or the
    /// connection. Returns once it is acknowledged; drops `end` at its end.
    async fn listen(
        &self,
        connection: Connection,
        permit: Option<Arc<dyn Permit>>,
        end: DropGuard,
    ) -> Result<(), UpstreamError> {
        let (events, mut queue) = event_queue(64);
        let filter = serde_json::json!({"notifications": {"resourceSubscriptions": [self.uri]}});
        let filter = serde_json::value::to_raw_value(&filter)
            .map_err(|error| UpstreamError::Protocol(error.to_string()))?;
        let (acknowledged, answer) = oneshot::channel();
        let (stop, fleet, server) = (self.stop.clone(), self.fleet.clone(), self.server.clone());
        tokio::spawn(async move {
            let _end = end;
            let call = Call {
                limit: None,
                events: Some(events),
                permit: permit.as_ref(),
                ..Call::new("subscriptions/listen", LIMIT).params(Some(&filter))
            };
            let request = connection.background(call);
            tokio::pin!(request);
            let mut acknowledged = Some(acknowledged);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    outcome = &mut request => {
                        if let Some(acknowledged) = acknowledged.take() {
                            let _ = acknowledged.send(outcome.map(drop));
                        }
                        return;
                    }
                    Some(CallEvent::Notification(note)) = queue.recv() => {
                        if note.method == "notifications/subscriptions/acknowledged" {
                            if let Some(acknowledged) = acknowledged.take() {
                                let _ = acknowledged.send(Ok(()));
                            }
                        } else {
                            let server = server.clone();
                            fleet.tell_update(Update { server, note });
                        }
                    }
                }
            }
        });
        match tokio::time::timeout(LIMIT, answer).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(UpstreamError::Protocol("it did not acknowledge".into())),
        }
    }
}

/// A subscription in force, and whether it still is: a listen may end although
/// its connection goes on.
struct Subscribed {
    connection: Connection,
    ended: CancellationToken,
}

/// Waits until a subscription has to be made again.
async fn over(served: Option<&Subscribed>) {
    if let Some(served) = served {
        served.ended.cancelled().await;
    }
    tokio::time::sleep(AGAIN).await;
}

fn refusal(error: UpstreamError) -> RpcError {
    match error {
        UpstreamError::Rpc(error) => error,
        other => RpcError::new(code::INTERNAL, CallError::from(other).to_string()),
    }
}

fn connection(snapshot: &Snapshot, server: &str) -> Option<Connection> {
    snapshot.servers.get(server)?.state.connection().cloned()
}
