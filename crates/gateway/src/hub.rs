//! Who wants to hear of which change, and keeping the servers telling.
//!
//! Changes of lists are seen in the snapshots. Changes of a resource are told
//! by its server only while somebody has subscribed to it: one subscription
//! for all who care, made again when the server comes back.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Scope;
use super::changes::{self, ChangeEvent, Subscriber};
use super::control::Control;
use super::listening::ResourceFollower;
use super::permission::{GrantPermission, Requirement};
use super::renames::Renames;
use super::resolve::no_resource;
use super::users::UserServers;
use fleet::{CallError, Fleet, ServerUpdate, Slot, Snapshot};
use store::Store;
use upstream::{
    CallEvent, Connection, ConnectionHold, Permit, UpstreamCall, UpstreamError, event_queue,
};
use wire::{Era, RpcError, code};

const LIMIT: Duration = Duration::from_secs(10);
/// Before a subscription that ended, or failed, is made again.
const AGAIN: Duration = Duration::from_secs(2);
/// The longest pause between two connections made for one subscription.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a connection may take that has to be made for it.
const START: Duration = Duration::from_secs(30);
const CHANGES: usize = 1024;
/// Resources followed at once, by everybody together.
const FOLLOWED: usize = 10_000;

/// What is followed.
type SubscriptionMap = HashMap<ResourceKey, Arc<SubscriptionSlot>>;

/// A resource, at whoever serves those that follow it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ResourceKey {
    server: Arc<str>,
    /// `None`: everybody's connection.
    whose: Option<Arc<str>>,
    uri: String,
}

/// Who follows one resource. The lock is held across the request that subscribes
/// or unsubscribes, so that the server gets these one after the other.
type SubscriptionSlot = tokio::sync::Mutex<Weak<ResourceSubscription>>;

#[derive(Clone)]
pub(super) struct Hub(Arc<HubShared>);

struct HubShared {
    fleet: Fleet,
    store: Arc<dyn Store>,
    users: UserServers,
    changes: broadcast::Sender<Arc<ChangeEvent>>,
    followed: Mutex<SubscriptionMap>,
}

/// One resource being followed; ends with its last holder.
pub(super) struct ResourceSubscription {
    pub whose: Option<Arc<str>>,
    _stop: DropGuard,
}

impl Hub {
    /// Must be called inside the runtime: it starts to watch at once.
    pub(crate) fn new(
        fleet: &Fleet,
        store: &Arc<dyn Store>,
        users: &UserServers,
        control: Option<Arc<Control>>,
        renames: &broadcast::Sender<Arc<Renames>>,
    ) -> Hub {
        let (changes, _) = broadcast::channel(CHANGES);
        changes::watch(fleet, &**store, users.filters(), control, &changes, renames);
        Hub(Arc::new(HubShared {
            fleet: fleet.clone(),
            store: store.clone(),
            users: users.clone(),
            changes,
            followed: Mutex::default(),
        }))
    }

    /// What changes from now on, and which of it concerns a scope.
    pub(crate) fn changes(
        &self,
        scope: &Scope,
    ) -> (broadcast::Receiver<Arc<ChangeEvent>>, Subscriber) {
        let changes = self.0.changes.subscribe();
        let since = self.0.fleet.snapshot().offers;
        let (store, users) = (self.0.store.clone(), self.0.users.clone());
        let audience = Subscriber::new(scope.clone(), store, users, since);
        (changes, audience)
    }

    /// Follows a resource of a server: returns once the server has agreed.
    pub(crate) async fn follow(
        &self,
        who: ResourceFollower<'_>,
        server: &Arc<str>,
        uri: &str,
    ) -> Result<Arc<ResourceSubscription>, RpcError> {
        let key = ResourceKey {
            server: server.clone(),
            whose: self.0.fleet.whose(server, who.slot),
            uri: uri.to_owned(),
        };
        let mut permission =
            GrantPermission::of(who.scope, &self.0.store, Requirement::Resources, server);
        loop {
            let permit = permission.clone().map(|held| -> Arc<dyn Permit> { held });
            let outcome = self.follow_with(permit, &key, who.slot).await;
            match outcome {
                // The entry has changed since: nothing was sent.
                Err(UpstreamError::Revoked) => match permission.and_then(|old| old.renewed()) {
                    Some(renewed) => permission = Some(renewed),
                    None => return Err(no_resource(uri)),
                },
                outcome => return outcome.map_err(refusal),
            }
        }
    }

    async fn follow_with(
        &self,
        permit: Option<Arc<dyn Permit>>,
        key: &ResourceKey,
        slot: &Slot,
    ) -> Result<Arc<ResourceSubscription>, UpstreamError> {
        let place = self.place(key).map_err(UpstreamError::Rpc)?;
        let mut followed = place.lock().await;
        if let Some(known) = followed.upgrade() {
            return Ok(known);
        }
        let stop = CancellationToken::new();
        let (agreed, answer) = oneshot::channel();
        let keeper = SubscriptionTask {
            fleet: self.0.fleet.clone(),
            key: key.clone(),
            slot: key.whose.is_some().then(|| slot.clone()),
            stop: stop.clone(),
            place: place.clone(),
        };
        tokio::spawn(keeper.run(agreed, permit));
        let following = Arc::new(ResourceSubscription {
            whose: key.whose.clone(),
            _stop: stop.drop_guard(),
        });
        let gone = |_| Err(UpstreamError::Lost("the server is gone".into()));
        answer.await.unwrap_or_else(gone)?;
        *followed = Arc::downgrade(&following);
        Ok(following)
    }

    fn place(&self, key: &ResourceKey) -> Result<Arc<SubscriptionSlot>, RpcError> {
        let mut followed = self.0.followed.lock();
        if let Some(place) = followed.get(key) {
            return Ok(place.clone());
        }
        // Held by whoever keeps or waits for a subscription.
        followed.retain(|_, place| Arc::strong_count(place) > 1);
        if followed.len() >= FOLLOWED {
            let text = "too many resources are followed";
            return Err(RpcError::new(code::INTERNAL, text));
        }
        Ok(followed.entry(key.clone()).or_default().clone())
    }
}

/// Keeps one subscription at a server, over its restarts.
struct SubscriptionTask {
    fleet: Fleet,
    key: ResourceKey,
    /// Who has a connection of their own.
    slot: Option<Slot>,
    stop: CancellationToken,
    place: Arc<SubscriptionSlot>,
}

impl SubscriptionTask {
    /// `permit` is that of whoever asked for it first.
    async fn run(
        self,
        agreed: oneshot::Sender<Result<(), UpstreamError>>,
        permit: Option<Arc<dyn Permit>>,
    ) {
        let mut agreed = Some(agreed);
        let mut snapshots = self.fleet.watch();
        let mut served: Option<ActiveSubscription> = None;
        let mut pause = AGAIN;
        loop {
            let current = connection(&snapshots.borrow_and_update(), &self.key.server);
            match (&current, &served) {
                (Some(current), Some(served)) if current.same(&served.main) => {}
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
                        let text = format!("server {:?} is not connected", self.key.server);
                        let error = RpcError::new(code::INTERNAL, text);
                        let _ = agreed.send(Err(UpstreamError::Rpc(error)));
                        return;
                    }
                    served = None;
                }
            }
            tokio::select! {
                changed = snapshots.changed() => if changed.is_err() { return },
                () = self.over(served.as_ref(), pause), if current.is_some() => {
                    served = None;
                    // Each time a process may have been started for it.
                    if self.slot.is_some() {
                        pause = (pause * 2).min(LONGEST);
                    }
                }
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
            let call = UpstreamCall::new("resources/unsubscribe", LIMIT).params(params.as_deref());
            let _ = connection.background(call).await;
            let (server, uri) = (&self.key.server, &self.key.uri);
            self.fleet.follow_beside(server, uri, false).await;
        }
    }

    /// Waits until a subscription has to be made again.
    async fn over(&self, served: Option<&ActiveSubscription>, pause: Duration) {
        if let Some(served) = served {
            // That of all others is seen in the snapshots.
            let closed = async {
                match &self.slot {
                    Some(_) => served.connection.closed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = served.ended.cancelled() => {}
                () = closed => {}
            }
        }
        tokio::time::sleep(pause).await;
    }

    fn params(&self) -> Option<Box<RawValue>> {
        serde_json::value::to_raw_value(&serde_json::json!({ "uri": self.key.uri })).ok()
    }

    /// The connection that serves who follows it, while `main` is the one
    /// that serves all others.
    async fn connection(&self, main: &Connection) -> Result<Connection, UpstreamError> {
        let Some(slot) = &self.slot else {
            return Ok(main.clone());
        };
        let (server, now) = (&self.key.server, Instant::now());
        match self.fleet.lease(server, slot, now, Some(START)).await {
            Ok((connection, _)) => Ok(connection),
            Err(CallError::Upstream(error)) => Err(error),
            Err(error) => Err(UpstreamError::Unreachable(error.to_string())),
        }
    }

    async fn subscribe(
        &self,
        main: &Connection,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<ActiveSubscription, UpstreamError> {
        let connection = self.connection(main).await?;
        let ended = CancellationToken::new();
        match connection.peer().era {
            Era::Legacy => {
                let params = self.params();
                let call =
                    UpstreamCall::new("resources/subscribe", LIMIT).params(params.as_deref());
                connection
                    .background(UpstreamCall { permit, ..call })
                    .await?;
                if self.slot.is_none() {
                    let (server, uri) = (&self.key.server, &self.key.uri);
                    self.fleet.follow_beside(server, uri, true).await;
                }
            }
            Era::Modern => {
                let end = ended.clone().drop_guard();
                self.listen(connection.clone(), permit.cloned(), end)
                    .await?;
            }
        }
        Ok(ActiveSubscription {
            main: main.clone(),
            _hold: connection.hold(),
            connection,
            ended,
        })
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
        let filter =
            serde_json::json!({"notifications": {"resourceSubscriptions": [self.key.uri]}});
        let filter = serde_json::value::to_raw_value(&filter)
            .map_err(|error| UpstreamError::Protocol(error.to_string()))?;
        let (acknowledged, answer) = oneshot::channel();
        let (stop, fleet, key) = (self.stop.clone(), self.fleet.clone(), self.key.clone());
        tokio::spawn(async move {
            let _end = end;
            let call = UpstreamCall {
                limit: None,
                events: Some(events),
                permit: permit.as_ref(),
                ..UpstreamCall::new("subscriptions/listen", LIMIT).params(Some(&filter))
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
                            fleet.tell_update(ServerUpdate {
                                server: key.server.clone(),
                                whose: key.whose.clone(),
                                note,
                            });
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
struct ActiveSubscription {
    main: Connection,
    connection: Connection,
    _hold: ConnectionHold,
    ended: CancellationToken,
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
