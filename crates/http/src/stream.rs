//! A client's socket as the HTTP parser sees it: heads arrive whole and
//! checked, and a client that is too slow is cut off.
//!
//! [`REFUSED_HEAD`] replaces a refused head, so that the refusal is sent in its
//! turn, after the responses to earlier requests.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::drain::{Drain, LazyTimer};
use super::edge::EdgeLimits;
use super::framing::{FramingError, RequestFraming, ScanStop};

/// The path of the request that replaces a refused one. A client that requests
/// it itself does no harm: it works only after a refusal.
pub(super) const REFUSED_PATH: &str = "/.refused";
const REFUSED_HEAD: &[u8] =
    b"GET /.refused HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// How long, and how much, we read from a client that is still sending after
/// our last response; closing at once would reset the connection and could
/// destroy the response in flight.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// The state of the stream while hyper owns it.
#[derive(Default)]
pub(super) struct ConnectionState {
    refusal: OnceLock<FramingError>,
    at_rest: AtomicBool,
}

impl ConnectionState {
    /// Why the connection's last request was refused, if it was.
    pub(super) fn refusal(&self) -> Option<FramingError> {
        self.refusal.get().copied()
    }

    /// Between two requests, with all of hyper's output written.
    pub(super) fn is_at_rest(&self) -> bool {
        self.at_rest.load(Ordering::Relaxed)
    }
}

pub(super) struct ClientStream {
    socket: TcpStream,
    limits: Arc<EdgeLimits>,
    framing: RequestFraming,
    /// An incomplete head, or bytes that are cleared but not yet consumed.
    held: BytesMut,
    cleared: usize,
    shared: Arc<ConnectionState>,
    end: Option<StreamEnd>,
    read_wait: Wait,
    drain: Drain,
    linger: Option<usize>,
}

/// Why nothing more is read from the client.
#[derive(Clone, Copy)]
enum StreamEnd {
    Refused,
    Broken(io::ErrorKind),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    FirstByte,
    Head,
    Body,
    /// Between requests, or while a response is being made: only the task of
    /// the connection knows which, and watches it.
    Idle,
}

impl ClientStream {
    pub(super) fn new(socket: TcpStream, limits: Arc<EdgeLimits>) -> ClientStream {
        ClientStream {
            socket,
            framing: RequestFraming::new(limits.head),
            limits,
            held: BytesMut::new(),
            cleared: 0,
            shared: Arc::default(),
            end: None,
            read_wait: Wait::default(),
            drain: Drain::default(),
            linger: None,
        }
    }

    pub(super) fn shared(&self) -> &Arc<ConnectionState> {
        &self.shared
    }

    /// Takes back bytes that were not used; the next read returns them first.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        debug_assert!(self.held.is_empty(), "only at rest");
        self.held.extend_from_slice(bytes);
        self.cleared = bytes.len();
    }

    /// Whether the client sends anything; false if it has disconnected.
    pub(super) async fn more(&mut self) -> bool {
        self.cleared > 0 || matches!(self.socket.peek(&mut [0]).await, Ok(1..))
    }

    /// Returns when the client has disconnected, or never if it has sent
    /// something: then only a failing write can detect it.
    pub(super) async fn gone(&mut self) {
        if self.more().await {
            std::future::pending().await
        }
    }

    fn set_at_rest(&self) {
        let rests = self.phase() == Phase::Idle && self.end.is_none() && self.linger.is_none();
        self.shared.at_rest.store(rests, Ordering::Relaxed);
    }

    fn set_active(&self) {
        self.shared.at_rest.store(false, Ordering::Relaxed);
    }

    fn phase(&self) -> Phase {
        if self.framing.in_body() {
            Phase::Body
        } else if !self.held.is_empty() {
            Phase::Head
        } else if self.framing.heads() == 0 {
            Phase::FirstByte
        } else {
            Phase::Idle
        }
    }

    /// Ready when the wait for the client has reached its limit.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Phase> {
        let phase = self.phase();
        let limit = match phase {
            Phase::FirstByte => self.limits.first_byte,
            Phase::Head => self.limits.header,
            Phase::Body => {
                let earned = self.framing.body_bytes() * 1000 / self.limits.body_rate.max(1);
                let earned = self.limits.body_grace + Duration::from_millis(earned);
                self.limits.body.min(earned)
            }
            Phase::Idle => return Poll::Pending,
        };
        let what = (phase as u8, self.framing.heads());
        self.read_wait.poll(cx, what, limit).map(|()| phase)
    }

    /// Clears the new bytes in `buf` from `start` on, or holds them back.
    fn inspect(&mut self, buf: &mut ReadBuf<'_>, start: usize) {
        let stop = if self.held.is_empty() {
            let scan = self.framing.scan(&buf.filled()[start..]);
            let cut = start + scan.pass;
            if scan.stop == Some(ScanStop::Head) {
                self.held.extend_from_slice(&buf.filled()[cut..]);
            }
            buf.set_filled(cut);
            scan.stop
        } else {
            self.held.extend_from_slice(&buf.filled()[start..]);
            buf.set_filled(start);
            let scan = self.framing.scan(&self.held);
            self.cleared = scan.pass;
            scan.stop
        };
        match stop {
            Some(ScanStop::Fault(_)) if self.framing.in_body() => {
                self.held.truncate(self.cleared);
                self.end = Some(StreamEnd::Broken(io::ErrorKind::InvalidData));
            }
            Some(ScanStop::Fault(fault)) => self.refuse(fault),
            Some(ScanStop::Head) | None => {}
        }
    }

    fn refuse(&mut self, fault: FramingError) {
        // Set once: the first refusal ends the reading.
        let _ = self.shared.refusal.set(fault);
        self.held.truncate(self.cleared);
        self.held.extend_from_slice(REFUSED_HEAD);
        self.cleared = self.held.len();
        self.end = Some(StreamEnd::Refused);
    }

    fn poll_read_socket(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(done) = Pin::new(&mut self.socket).poll_read(cx, buf) {
            return Poll::Ready(done);
        }
        match ready!(self.poll_patience(cx)) {
            Phase::Head => self.refuse(FramingError::HeadTimeout),
            Phase::Body => self.end = Some(StreamEnd::Broken(io::ErrorKind::TimedOut)),
            Phase::FirstByte | Phase::Idle => {}
        }
        Poll::Ready(Ok(()))
    }

    /// Fails a write to a client that reads its response too slowly.
    fn watch_write(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(done) = outcome {
            self.drain.took(done.as_ref().map_or(0, |bytes| *bytes));
            return Poll::Ready(done);
        }
        let (stall, rate) = (self.limits.write_stall, self.limits.write_rate);
        ready!(self.drain.poll(cx, stall, rate));
        // Otherwise the kernel would continue to offer the queued data to a
        // client that does not read it.
        let _ = self.socket.set_zero_linger();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 8 * 1024];
        while let Some(left) = self.linger.filter(|left| *left > 0) {
            let mut buf = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.socket).poll_read(cx, &mut buf) {
                Poll::Pending => return self.read_wait.poll(cx, (u8::MAX, 0), LINGER),
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    self.linger = Some(left.saturating_sub(buf.filled().len()));
                }
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        loop {
            if me.cleared > 0 {
                let taken = me.cleared.min(buf.remaining());
                buf.put_slice(&me.held[..taken]);
                me.held.advance(taken);
                me.cleared -= taken;
                return Poll::Ready(Ok(()));
            }
            match me.end {
                // The refusal closes the connection; an end of file here would
                // cancel it.
                Some(StreamEnd::Refused) => return Poll::Pending,
                Some(StreamEnd::Broken(kind)) => return Poll::Ready(Err(kind.into())),
                None => {}
            }
            let start = buf.filled().len();
            ready!(me.poll_read_socket(cx, buf))?;
            if me.end.is_some() {
                continue;
            }
            if buf.filled().len() == start {
                return Poll::Ready(Ok(()));
            }
            me.set_active();
            me.inspect(buf, start);
            if buf.filled().len() > start {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        me.set_active();
        let outcome = Pin::new(&mut me.socket).poll_write(cx, bytes);
        me.watch_write(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        me.set_active();
        let outcome = Pin::new(&mut me.socket).poll_write_vectored(cx, parts);
        me.watch_write(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        // hyper flushes when it has nothing left to write.
        me.drain.over();
        me.set_at_rest();
        Pin::new(&mut me.socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        me.set_active();
        if me.linger.is_none() {
            ready!(Pin::new(&mut me.socket).poll_shutdown(cx))?;
            let unread = me.end.is_some() || me.framing.in_body();
            me.linger = Some(if unread { LINGER_BYTES } else { 0 });
        }
        me.poll_linger(cx).map(Ok)
    }
}

/// One wait with a limit. The clock starts at the first poll that finds
/// nothing, so a client that keeps up costs no timer at all.
#[derive(Default)]
struct Wait {
    since: Option<((u8, u64), Instant)>,
    timer: LazyTimer,
}

impl Wait {
    /// Ready once the wait for `what` is longer than `limit`.
    fn poll(&mut self, cx: &mut Context<'_>, what: (u8, u64), limit: Duration) -> Poll<()> {
        let same = self.since.filter(|(known, _)| *known == what);
        let (_, since) = *self
            .since
            .insert(same.unwrap_or_else(|| (what, Instant::now())));
        self.timer.poll(cx, since + limit)
    }
}
