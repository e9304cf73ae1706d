//! The state of one connection, shared by its task and the code that ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::Context;

use futures_util::task::AtomicWaker;

use super::{ClientConnections, UNKNOWN_OWNER, tag};
use crate::error::ApiError;
use crate::principal::Principal;

/// Milliseconds after which an idle connection counts as unused: on a busy
/// machine a request may be on its way for a while.
const UNUSED: u64 = 1_000;
/// Milliseconds within which a stream must end by itself.
const STREAM_ENDS: u64 = 300;

/// How a connection's task must end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum CloseOrder {
    /// Respond to the current request, then close.
    Finish = 1,
    /// Close now.
    Cut = 2,
}

pub(crate) struct ClientConnection {
    pub(super) id: u64,
    home: Arc<ClientConnections>,
    /// A request is being handled.
    busy: AtomicBool,
    /// When the connection became idle, or was opened.
    since: AtomicU64,
    /// Its owner, as in [`super::tag`].
    pub(super) tag: AtomicU64,
    /// The response is a stream.
    streaming: AtomicBool,
    /// When it was marked to end with its next response; zero if it was not.
    retiring: AtomicU64,
    /// The strongest [`CloseOrder`] so far.
    order: AtomicU8,
    /// Wakes its task for a new order.
    task: AtomicWaker,
}

impl ClientConnection {
    pub(super) fn new(id: u64, now: u64, home: Arc<ClientConnections>) -> ClientConnection {
        ClientConnection {
            id,
            home,
            busy: AtomicBool::new(false),
            since: AtomicU64::new(now),
            tag: AtomicU64::new(UNKNOWN_OWNER),
            streaming: AtomicBool::new(false),
            retiring: AtomicU64::new(0),
            order: AtomicU8::new(0),
            task: AtomicWaker::new(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn connections(&self) -> &Arc<ClientConnections> {
        &self.home
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.order.load(Ordering::Acquire) != 0
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    pub(super) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn set_since(&self, since: u64) {
        self.since.store(since, Ordering::Relaxed);
    }

    /// A request has arrived.
    pub(crate) fn begin(&self) {
        if !self.busy.swap(true, Ordering::Relaxed) {
            self.home.handled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The response has been sent or, if its length is known, only the client
    /// delays it.
    pub(crate) fn end(&self) {
        self.since.store(self.home.now(), Ordering::Relaxed);
        let streaming = self.streaming.swap(false, Ordering::Relaxed);
        if self.busy.swap(false, Ordering::Relaxed) && !streaming {
            self.home.handled.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The response is a stream, and the connection busy until it ends.
    pub(crate) fn begin_stream(&self) {
        self.streaming.store(true, Ordering::Relaxed);
        self.home.handled.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether no other request is being handled.
    pub(crate) fn is_alone(&self) -> bool {
        self.home.handled.load(Ordering::Relaxed) <= 1
    }

    /// Whether the current response is the last. The response announces it:
    /// otherwise the client may send its next request into a connection that is
    /// being closed.
    pub(crate) fn is_last_response(&self) -> bool {
        self.retiring.load(Ordering::Relaxed) != 0 || self.is_finishing()
    }

    /// Marks it to end with its next response. Returns the order that is safe
    /// now: a client that is just sending a request must not be cut off.
    pub(super) fn retire(&self) -> Option<CloseOrder> {
        let now = self.home.now().max(1);
        let first = self
            .retiring
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let since = first.err().unwrap_or(now);
        if self.streaming.load(Ordering::Relaxed) {
            let late = now.saturating_sub(since) >= STREAM_ENDS;
            return Some(if late {
                CloseOrder::Cut
            } else {
                CloseOrder::Finish
            });
        }
        let unused = now.saturating_sub(self.since()) >= UNUSED;
        (!self.is_busy() && unused).then_some(CloseOrder::Finish)
    }

    /// Assigns the connection to the principal of its request. Refused where
    /// only the reserve has room and the principal is not the admin, or where
    /// the principal has more than its share.
    pub(crate) fn admit(
        &self,
        principal: Option<&Principal>,
        session: Option<&str>,
    ) -> Result<(), ApiError> {
        match principal {
            Some(principal) if self.tag.load(Ordering::Relaxed) != tag(principal, session) => {
                self.home.claim(self.id, principal, session)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn order(&self, order: CloseOrder) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.task.wake();
    }

    /// The strongest order so far; a stronger one wakes the task of `cx`.
    pub(crate) fn poll_order(&self, cx: &Context<'_>) -> Option<CloseOrder> {
        self.task.register(cx.waker());
        match self.order.load(Ordering::Acquire) {
            2.. => Some(CloseOrder::Cut),
            1 => Some(CloseOrder::Finish),
            0 => None,
        }
    }
}
