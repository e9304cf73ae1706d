//! One connection, as its own task and those who may end it see it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderValue, header};
use hyper::body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Connections, NOBODY, tag};
use crate::error::ApiError;
use crate::principal::Principal;

/// Milliseconds after which an idle connection counts as left alone, and which
/// a stream has to end by itself.
const QUIET: u64 = 300;

/// What the task of a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Order {
    /// Answer what has been asked, then close.
    Finish = 1,
    /// Close now.
    Cut = 2,
}

/// What comes to the task of a connection from elsewhere.
pub(crate) enum Told {
    Order(Order),
    /// This answer is its own to write.
    Write(Box<Response>),
}

pub(crate) struct Connection {
    pub(super) id: u64,
    home: Arc<Connections>,
    /// A request is being answered.
    busy: AtomicBool,
    /// When it became idle, or was opened.
    since: AtomicU64,
    /// Whose it is, as in [`super::Holder::tag`].
    pub(super) tag: AtomicU64,
    /// The answer is a stream.
    streaming: AtomicBool,
    /// Since when it is to end with its next answer; zero while it is not.
    retiring: AtomicU64,
    /// The strongest [`Order`] so far.
    order: AtomicU8,
    /// An answer that hyper is not to write.
    handed: Mutex<Option<Box<Response>>>,
    wake: Notify,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.id).finish()
    }
}

impl Connection {
    pub(super) fn new(id: u64, now: u64, home: Arc<Connections>) -> Connection {
        Connection {
            id,
            home,
            busy: AtomicBool::new(false),
            since: AtomicU64::new(now),
            tag: AtomicU64::new(NOBODY),
            streaming: AtomicBool::new(false),
            retiring: AtomicU64::new(0),
            order: AtomicU8::new(0),
            handed: Mutex::default(),
            wake: Notify::new(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn connections(&self) -> &Arc<Connections> {
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

    /// A request has come.
    pub(crate) fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    fn end(&self) {
        self.since.store(self.home.now(), Ordering::Relaxed);
        self.streaming.store(false, Ordering::Relaxed);
        self.busy.store(false, Ordering::Relaxed);
    }

    /// The connection is idle again when the answer has been sent, or, where
    /// its length is known, when only the client delays it.
    pub(crate) fn answered(self: &Arc<Self>, mut response: Response) -> Response {
        // Told in the answer: a client that is not told may send its next
        // request into a connection that is being closed.
        if self.retiring.load(Ordering::Relaxed) != 0 || self.is_finishing() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        if response.body().size_hint().exact().is_some() {
            self.end();
            return response;
        }
        self.streaming.store(true, Ordering::Relaxed);
        response.map(|body| {
            Body::new(Watched {
                body,
                connection: self.clone(),
            })
        })
    }

    /// It is to end with its next answer. What it can be told now: no client
    /// that is just sending a request may be cut off.
    pub(super) fn retire(&self) -> Option<Order> {
        let now = self.home.now().max(1);
        let first = self
            .retiring
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let since = first.err().unwrap_or(now);
        if self.streaming.load(Ordering::Relaxed) {
            let late = now.saturating_sub(since) >= QUIET;
            return Some(if late { Order::Cut } else { Order::Finish });
        }
        let quiet = now.saturating_sub(self.since()) >= QUIET;
        (!self.is_busy() && quiet).then_some(Order::Finish)
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

    /// How long nothing has been asked; `None` while something is answered.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let idle = self.home.now().saturating_sub(self.since());
        (!self.is_busy()).then(|| Duration::from_millis(idle))
    }

    /// Gives the task an answer to write by itself.
    pub(crate) fn hand_over(&self, response: Response) {
        *self.handed.lock() = Some(Box::new(response));
        self.wake.notify_one();
    }

    pub(super) fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// The next order that is stronger than `obeyed`.
    pub(crate) async fn ordered(&self, obeyed: Option<Order>) -> Order {
        loop {
            if let Some(order) = self.new_order(obeyed) {
                return order;
            }
            self.wake.notified().await;
        }
    }

    /// The next thing its task is to do.
    pub(crate) async fn told(&self, obeyed: Option<Order>) -> Told {
        loop {
            if let Some(order) = self.new_order(obeyed) {
                return Told::Order(order);
            }
            let handed = self.handed.lock().take();
            if let Some(response) = handed {
                return Told::Write(response);
            }
            self.wake.notified().await;
        }
    }

    fn new_order(&self, obeyed: Option<Order>) -> Option<Order> {
        let order = match self.order.load(Ordering::Acquire) {
            2.. => Some(Order::Cut),
            1 => Some(Order::Finish),
            0 => None,
        };
        order.filter(|_| order > obeyed)
    }
}

/// A body of unknown length; the connection is busy until it has ended.
struct Watched {
    body: Body,
    connection: Arc<Connection>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.connection.end();
    }
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
