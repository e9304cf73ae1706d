//! Idle connections, kept for the next request.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use super::socket::Socket;

/// Node and uvicorn close a connection after 5 s of idling; a request sent at
/// that moment is lost, and must not be sent again.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
/// Responses arrive in bursts: with fewer, many connections of a busy server
/// would be closed and made again at once.
const IDLE_CONNECTIONS: usize = 256;

/// One connection, and the bytes read beyond the last response.
pub(crate) struct HttpConnection {
    pub(super) socket: Socket,
    pub(super) buffer: BytesMut,
    /// The request that is being sent.
    pub(super) out: Vec<u8>,
}

/// The idle connections to one origin.
#[derive(Default)]
pub(super) struct IdleConnections {
    /// The lock is held to put or take one.
    list: Mutex<IdleList>,
    /// The requests that wait for their response.
    waiting: AtomicUsize,
}

/// A request that waits for its response.
pub(super) struct WaitingRequest<'a>(&'a AtomicUsize);

impl WaitingRequest<'_> {
    pub(super) fn is_alone(&self) -> bool {
        self.0.load(Ordering::Relaxed) <= 1
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct IdleList {
    /// The connection used last is last.
    connections: Vec<(HttpConnection, Instant)>,
    /// A task is running that closes connections idle for too long.
    swept: bool,
}

impl IdleConnections {
    /// Counts a request until it has its response.
    pub(super) fn wait(&self) -> WaitingRequest<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingRequest(&self.waiting)
    }

    /// The most recently used connection that is still open.
    pub(super) fn take(&self) -> Option<HttpConnection> {
        loop {
            let (mut connection, since) = self.list.lock().connections.pop()?;
            if since.elapsed() < IDLE_LIMIT && connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    pub(super) fn put(self: &Arc<IdleConnections>, connection: HttpConnection) {
        let mut idle = self.list.lock();
        if idle.connections.len() >= IDLE_CONNECTIONS {
            return;
        }
        idle.connections.push((connection, Instant::now()));
        if !std::mem::replace(&mut idle.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes connections idle for too long; false when none is left.
    fn close_old(&self) -> bool {
        let mut idle = self.list.lock();
        idle.connections
            .retain(|(_, since)| since.elapsed() < IDLE_LIMIT);
        idle.swept = !idle.connections.is_empty();
        idle.swept
    }
}

async fn sweep(idle: Weak<IdleConnections>) {
    loop {
        tokio::time::sleep(IDLE_LIMIT).await;
        if !idle.upgrade().is_some_and(|idle| idle.close_old()) {
            return;
        }
    }
}

impl HttpConnection {
    pub(super) fn new(socket: Socket) -> HttpConnection {
        HttpConnection {
            socket,
            buffer: BytesMut::new(),
            out: Vec::new(),
        }
    }

    /// Whether the server has neither sent data nor closed the connection.
    fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let mut buf = ReadBuf::new(&mut byte);
        let mut cx = Context::from_waker(Waker::noop());
        matches!(
            Pin::new(&mut self.socket).poll_read(&mut cx, &mut buf),
            Poll::Pending
        )
    }
}
