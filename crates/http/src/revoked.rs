//! Ends the connections of revoked credentials: an entry was disabled or
//! deleted, its key was replaced or has expired, or a session of the console is
//! over. Streams that do not end by themselves are cut.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{MissedTickBehavior, interval};

use super::connections::{ClientConnections, ConnectionHolder};
use super::guard::Guard;
use store::{EntryId, KeyDigest, Store, StoreChange, Timestamp};

/// The interval at which credentials are checked for expiry, and connections
/// that were ordered to end are checked again.
const EXPIRY: Duration = Duration::from_millis(500);

pub(super) async fn end_connections(
    guard: Arc<Guard>,
    store: Arc<Store>,
    connections: Arc<ClientConnections>,
) {
    let mut changes = store.changes();
    let mut expiry = interval(EXPIRY);
    expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let changed = tokio::select! {
            change = changes.recv() => match change {
                Ok(StoreChange::Entry(entry)) => Some(entry),
                Ok(StoreChange::Everything) | Err(RecvError::Lagged(_)) => None,
                Ok(StoreChange::Records | StoreChange::Servers) => continue,
                Err(RecvError::Closed) => return,
            },
            _ = expiry.tick() => None,
        };
        connections.retire(|holder| match holder {
            ConnectionHolder::Entry { entry, key, .. } => {
                changed.is_none_or(|changed| changed == *entry) && !opens(&store, *entry, key)
            }
            ConnectionHolder::Console(session) => !guard.has_session(session),
            ConnectionHolder::Unknown | ConnectionHolder::Admin | ConnectionHolder::User(_) => {
                false
            }
        });
    }
}

fn opens(store: &Store, entry: EntryId, key: &KeyDigest) -> bool {
    let grant = store.grant_of(entry);
    grant.is_some_and(|grant| grant.digest.matches(key) && !grant.expired(Timestamp::now()))
}
