//! The lifetime of a client's stream: while Portway runs and, if it was opened
//! with an entry's key, while that key is valid.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Caller, Gateway};
use store::{EntryId, Grant, Store, StoreChange, Timestamp};

/// How often expired keys are looked for.
const EXPIRY: Duration = Duration::from_millis(500);

/// Held as long as the stream is open.
pub struct StreamLifetime {
    token: CancellationToken,
    /// Ends the task that watches an entry's key.
    _watch: Option<DropGuard>,
}

impl StreamLifetime {
    /// Cancelled when the stream has to end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Gateway {
    /// The lifetime of a stream that the caller opens.
    pub fn stream_lifetime(&self, caller: &Caller) -> StreamLifetime {
        let Some(grant) = caller.scope.grant() else {
            return StreamLifetime {
                token: self.closing.clone(),
                _watch: None,
            };
        };
        let token = self.closing.child_token();
        // Before the first look at the grant, so that no change is missed.
        let changes = self.store.changes();
        let (store, grant) = (self.store.clone(), grant.clone());
        tokio::spawn(watch(store, grant, changes, token.clone()));
        StreamLifetime {
            _watch: Some(token.clone().drop_guard()),
            token,
        }
    }

    /// Ends the sessions and parked calls of clients whose key was revoked or
    /// has expired. Runs forever: a task of its own.
    pub async fn end_revoked(&self) {
        let mut changes = self.store.changes();
        loop {
            let revoked = |grant: &Grant| opens(&self.store, grant).is_none();
            self.sessions.end_revoked(revoked);
            self.parked.cancel_revoked(|entry| {
                let grant = self.store.grant_of(entry);
                grant.is_none_or(|grant| grant.expired(Timestamp::now()))
            });
            let changed = async {
                if !changed(&mut changes, |_| true).await {
                    std::future::pending().await
                }
            };
            let _ = tokio::time::timeout(EXPIRY, changed).await;
        }
    }
}

/// Waits for a change of an entry for which `concerns` is true; false if none
/// can come any more. Other changes are frequent and revoke nothing.
async fn changed(changes: &mut Receiver<StoreChange>, concerns: impl Fn(EntryId) -> bool) -> bool {
    loop {
        match changes.recv().await {
            Ok(StoreChange::Entry(entry)) if concerns(entry) => return true,
            Ok(StoreChange::Everything) | Err(RecvError::Lagged(_)) => return true,
            Ok(_) => {}
            Err(RecvError::Closed) => return false,
        }
    }
}

async fn watch(
    store: Arc<Store>,
    grant: Arc<Grant>,
    mut changes: Receiver<StoreChange>,
    token: CancellationToken,
) {
    // The grant is read again each time: its expiry may have changed.
    while let Some(now) = opens(&store, &grant) {
        tokio::select! {
            () = token.cancelled() => return,
            () = expiry(&now) => {}
            goes_on = changed(&mut changes, |entry| entry == grant.entry) => if !goes_on { return },
        }
    }
    token.cancel();
}

/// The grant of the entry, if the key still opens it.
fn opens(store: &Store, grant: &Grant) -> Option<Arc<Grant>> {
    let now = store.grant_of(grant.entry)?;
    let open = now.digest.matches(&grant.digest) && !now.expired(Timestamp::now());
    open.then_some(now)
}

async fn expiry(grant: &Grant) {
    let Some(at) = grant.expires_at else {
        return std::future::pending().await;
    };
    let left = at.as_millis().saturating_sub(Timestamp::now().as_millis());
    // A moment more: clocks are read in whole milliseconds.
    tokio::time::sleep(Duration::from_millis(left + 1)).await;
}
