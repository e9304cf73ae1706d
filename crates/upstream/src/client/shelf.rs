//! Connections that wait for their next request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use super::socket::Socket;

/// Node and uvicorn close what is idle for 5 s; a request sent just then is
/// lost, and may not be sent again.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
const IDLE_CONNECTIONS: usize = 32;

/// One connection, and what of it was read too early.
pub(super) struct Line {
    pub socket: Socket,
    pub buffer: BytesMut,
}

/// The idle connections to one address. The lock is held to put one down or
/// to take one up.
#[derive(Default)]
pub(super) struct Shelf(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    /// The one used last is last.
    lines: Vec<(Line, Instant)>,
    /// Somebody comes round to clear away what lies here for too long.
    cleaned: bool,
}

impl Shelf {
    /// One that can still be used.
    pub(super) fn take(&self) -> Option<Line> {
        loop {
            let (mut line, since) = self.0.lock().lines.pop()?;
            if since.elapsed() < IDLE_LIMIT && line.is_quiet() {
                return Some(line);
            }
        }
    }

    pub(super) fn put(self: &Arc<Shelf>, line: Line) {
        let mut idle = self.0.lock();
        if idle.lines.len() >= IDLE_CONNECTIONS {
            return;
        }
        idle.lines.push((line, Instant::now()));
        if !std::mem::replace(&mut idle.cleaned, true) {
            tokio::spawn(clean(Arc::downgrade(self)));
        }
    }

    /// Closes what nobody took up; false when nothing is left.
    fn clear(&self) -> bool {
        let mut idle = self.0.lock();
        idle.lines.retain(|(_, since)| since.elapsed() < IDLE_LIMIT);
        idle.cleaned = !idle.lines.is_empty();
        idle.cleaned
    }
}

async fn clean(shelf: std::sync::Weak<Shelf>) {
    loop {
        tokio::time::sleep(IDLE_LIMIT).await;
        if !shelf.upgrade().is_some_and(|shelf| shelf.clear()) {
            return;
        }
    }
}

impl Line {
    pub(super) fn new(socket: Socket) -> Line {
        let buffer = BytesMut::new();
        Line { socket, buffer }
    }

    /// Nothing has come unasked, not even the end.
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
