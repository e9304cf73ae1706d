//! How long an open stream may stay: as long as Portway runs and, where it
//! was opened with an entry's key, as long as that key opens the entry.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Caller, Gateway};
use store::{Grant, Store, StoreChange, Timestamp};

/// To be held as long as the stream is open.
pub struct StreamLifetime {
    token: CancellationToken,
    /// Ends the watch that an entry's stream has.
    _watch: Option<DropGuard>,
}

impl StreamLifetime {
    /// Cancelled when the stream has to end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub async fn over(&self) {
        self.token.cancelled().await;
    }
}

impl Gateway {
    /// Until when a stream that this caller opens may stay.
    pub fn until(&self, caller: &Caller) -> StreamLifetime {
        let Some(grant) = caller.scope.grant() else {
            return StreamLifetime {
                token: self.closing.clone(),
                _watch: None,
            };
        };
        let token = self.closing.child_token();
        // Before the first look: what changes after it is heard of.
        let changes = self.store.changes();
        let (store, grant) = (self.store.clone(), grant.clone());
        tokio::spawn(watch(store, grant, changes, token.clone()));
        StreamLifetime {
            _watch: Some(token.clone().drop_guard()),
            token,
        }
    }
}

/// How often keys are looked at that may have expired.
const EXPIRY: Duration = Duration::from_millis(500);

impl Gateway {
    /// Ends what runs for clients whose key opens nothing any more: sessions
    /// with their calls, and calls that wait for their client's answer. To be
    /// run beside.
    pub async fn end_revoked(&self) {
        let mut changes = self.store.changes();
        loop {
            let gone = |grant: &Grant| opens(&*self.store, grant).is_none();
            self.sessions.end_of(gone);
            self.parked.end_of(|entry| {
                let grant = self.store.grant_of(entry);
                grant.is_none_or(|grant| grant.expired(Timestamp::now()))
            });
            // Other changes come often and end nothing.
            let changed = async {
                loop {
                    match changes.recv().await {
                        Ok(StoreChange::Entry(_) | StoreChange::Everything) => return,
                        Ok(StoreChange::Records | StoreChange::Servers) => {}
                        Err(RecvError::Lagged(_)) => return,
                        Err(RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            let _ = tokio::time::timeout(EXPIRY, changed).await;
        }
    }
}

async fn watch(
    store: Arc<dyn Store>,
    grant: Arc<Grant>,
    mut changes: Receiver<StoreChange>,
    token: CancellationToken,
) {
    // Looked at anew each time: the moment it expires may have been moved.
    while let Some(now) = opens(&*store, &grant) {
        let changed = async {
            loop {
                match changes.recv().await {
                    Ok(StoreChange::Entry(entry)) if entry == grant.entry => return true,
                    Ok(StoreChange::Everything) | Err(RecvError::Lagged(_)) => return true,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return false,
                }
            }
        };
        tokio::select! {
            () = token.cancelled() => return,
            () = expiry(&now) => {}
            goes_on = changed => if !goes_on { return },
        }
    }
    token.cancel();
}

/// The grant of the entry, if the key still opens it.
fn opens(store: &dyn Store, grant: &Grant) -> Option<Arc<Grant>> {
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
