//! The gate of a connection, which lets calls finish before the connection is
//! replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::UpstreamError;

/// Counts calls in flight, and refuses new ones once closed.
#[derive(Default)]
pub(crate) struct CallGate {
    /// The number of calls in flight; the top bit means closed.
    state: AtomicUsize,
    /// Notified when the last call ends, and when the gate closes.
    emptied: Notify,
    /// The number of holders that keep the connection without sending a call.
    held: AtomicUsize,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl CallGate {
    pub(crate) fn enter(self: &Arc<Self>) -> Result<InFlightGuard, UpstreamError> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let pass = InFlightGuard(self.clone());
        if before & CLOSED != 0 {
            return Err(UpstreamError::Draining);
        }
        Ok(pass)
    }

    pub(crate) fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
        self.emptied.notify_waiters();
    }

    pub(crate) fn hold(self: &Arc<Self>) -> ConnectionHold {
        self.held.fetch_add(1, Ordering::AcqRel);
        ConnectionHold(self.clone())
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Resolves when the gate is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let told = self.emptied.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.is_closed() {
                return;
            }
            told.await;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.state.load(Ordering::Acquire) & !CLOSED
    }

    /// Resolves when no call is in flight.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// Keeps open a connection that would otherwise end when idle.
pub struct ConnectionHold(Arc<CallGate>);

impl Drop for ConnectionHold {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Exists while a call is in flight.
pub(crate) struct InFlightGuard(Arc<CallGate>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(1, Ordering::AcqRel);
        if before & !CLOSED == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}
