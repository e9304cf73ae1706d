//! Subscriptions to resources of servers. A server sends updates only to a
//! subscriber: one subscription serves all clients that follow the same
//! resource, and is made again when the server reconnects.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{CallError, Fleet, Permission, Slot, Snapshot};
use upstream::{
    CallEvent, Connection, ConnectionHold, Permit, UpstreamCall, UpstreamError, event_queue,
};
use wire::{Era, RpcError, code};

const LIMIT: Duration = Duration::from_secs(10);
/// The pause before an ended or failed subscription is made again.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest pause between two connections made for one subscription.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The limit for a connection that is made for a subscription.
const CONNECT: Duration = Duration::from_secs(30);
/// The limit of subscriptions, of all clients together.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// A resource, at the process or connection that serves its subscribers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ResourceKey {
    server: Arc<str>,
    /// `None`: the connection that all clients share.
    slot_owner: Option<Arc<str>>,
    uri: String,
}

/// The subscription to one resource. Locked while it is made or ended, so that
/// the server gets these requests one after the other.
type SubscriptionCell = tokio::sync::Mutex<Weak<ResourceSubscription>>;

/// One followed resource; the subscription ends with its last holder.
pub struct ResourceSubscription {
    /// The owner of the process or connection; `None` if all clients share it.
    pub slot_owner: Option<Arc<str>>,
    _stop: DropGuard,
}

pub struct Subscriptions {
    fleet: Fleet,
    cells: Mutex<HashMap<ResourceKey, Arc<SubscriptionCell>>>,
}

impl Subscriptions {
    pub fn new(fleet: Fleet) -> Subscriptions {
        Subscriptions {
            fleet,
            cells: Mutex::default(),
        }
    }

    /// Subscribes to a resource; returns once the server has accepted.
    pub async fn follow(
        &self,
        server: &Arc<str>,
        uri: &str,
        slot: &Slot,
        mut permission: Option<Arc<dyn Permission>>,
    ) -> Result<Arc<ResourceSubscription>, UpstreamError> {
        let key = ResourceKey {
            server: server.clone(),
            slot_owner: self.fleet.whose(server, slot),
            uri: uri.to_owned(),
        };
        loop {
            let permit = permission.clone().map(|held| -> Arc<dyn Permit> { held });
            match self.follow_with(permit, &key, slot).await {
                // The permission has changed since: nothing was sent.
                Err(UpstreamError::Revoked) => {
                    let renewed = permission.and_then(|old| old.renewed());
                    permission = Some(renewed.ok_or(UpstreamError::Revoked)?);
                }
                outcome => return outcome,
            }
        }
    }

    async fn follow_with(
        &self,
        permit: Option<Arc<dyn Permit>>,
        key: &ResourceKey,
        slot: &Slot,
    ) -> Result<Arc<ResourceSubscription>, UpstreamError> {
        let cell = self.cell(key)?;
        let mut current = cell.lock().await;
        if let Some(subscription) = current.upgrade() {
            return Ok(subscription);
        }
        let stop = CancellationToken::new();
        let (agreed, answer) = oneshot::channel();
        let task = SubscriptionTask {
            fleet: self.fleet.clone(),
            key: key.clone(),
            slot: key.slot_owner.is_some().then(|| slot.clone()),
            stop: stop.clone(),
            cell: cell.clone(),
        };
        tokio::spawn(task.run(agreed, permit));
        let subscription = Arc::new(ResourceSubscription {
            slot_owner: key.slot_owner.clone(),
            _stop: stop.drop_guard(),
        });
        let gone = |_| Err(UpstreamError::Lost("the server has disconnected".into()));
        answer.await.unwrap_or_else(gone)?;
        *current = Arc::downgrade(&subscription);
        Ok(subscription)
    }

    fn cell(&self, key: &ResourceKey) -> Result<Arc<SubscriptionCell>, UpstreamError> {
        let mut cells = self.cells.lock();
        if let Some(cell) = cells.get(key) {
            return Ok(cell.clone());
        }
        // A cell in use is also held by its task or by a waiting request.
        cells.retain(|_, cell| Arc::strong_count(cell) > 1);
        if cells.len() >= MAX_SUBSCRIPTIONS {
            let text = format!("too many resources are followed (limit {MAX_SUBSCRIPTIONS})");
            return Err(UpstreamError::Rpc(RpcError::new(code::INTERNAL, text)));
        }
        Ok(cells.entry(key.clone()).or_default().clone())
    }
}

/// Keeps one subscription at a server, across its restarts.
struct SubscriptionTask {
    fleet: Fleet,
    key: ResourceKey,
    /// Set if the client has a connection of its own.
    slot: Option<Slot>,
    stop: CancellationToken,
    cell: Arc<SubscriptionCell>,
}

impl SubscriptionTask {
    /// `permit` is that of the first client.
    async fn run(
        self,
        agreed: oneshot::Sender<Result<(), UpstreamError>>,
        permit: Option<Arc<dyn Permit>>,
    ) {
        let mut agreed = Some(agreed);
        let mut snapshots = self.fleet.watch();
        let mut served: Option<ActiveSubscription> = None;
        let mut pause = PAUSE;
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
                    // Each attempt may start a process.
                    if self.slot.is_some() {
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                }
                () = self.stop.cancelled() => break,
            }
        }
        let current = self.cell.lock().await;
        // Another client may have subscribed since; that client owns it now.
        let connection = served.map(|served| served.connection);
        let legacy = |connection: &Connection| connection.peer().era == Era::Legacy;
        if current.strong_count() == 0
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
            // The end of the shared connection is seen in the snapshots.
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

    /// The connection for the subscription, while `main` is the one that all
    /// clients share.
    async fn connection(&self, main: &Connection) -> Result<Connection, UpstreamError> {
        let Some(slot) = &self.slot else {
            return Ok(main.clone());
        };
        let (server, now) = (&self.key.server, Instant::now());
        match self.fleet.lease(server, slot, now, Some(CONNECT)).await {
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

    /// Listens in a task that ends with the subscription or the connection.
    /// Returns once the server has acknowledged it; the task drops `end`.
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
                            fleet.unasked.tell(&key.server, key.slot_owner.clone(), note);
                        }
                    }
                }
            }
        });
        match tokio::time::timeout(LIMIT, answer).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(UpstreamError::Protocol(
                "the server did not acknowledge the subscription".into(),
            )),
        }
    }
}

struct ActiveSubscription {
    main: Connection,
    connection: Connection,
    _hold: ConnectionHold,
    /// Cancelled when a listen ends although its connection goes on.
    ended: CancellationToken,
}

fn connection(snapshot: &Snapshot, server: &str) -> Option<Connection> {
    snapshot.servers.get(server)?.state.connection().cloned()
}
