//! A client's socket: reads requests and writes responses, and cuts off a
//! client that is too slow at either.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::drain::{Drain, LazyTimer};
use super::edge::EdgeLimits;
use super::framing::{BodyFraming, BodyPart, FramingError, RequestDecoder, RequestHead};
use super::outgoing::Outgoing;

/// The least and the most that one read asks for.
const READ: usize = 8 * 1024;
const MOST: u64 = 256 * 1024;

/// How long, and how much, we read from a client that is still sending after
/// our last response; closing at once would reset the connection and could
/// destroy the response in flight.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// The rest of an unread body that is dropped to use the connection again.
const SKIPPED: u64 = 64 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(super) struct ClientStream {
    socket: TcpStream,
    limits: Arc<EdgeLimits>,
    decoder: RequestDecoder,
    /// Bytes that have arrived and are not yet read as a part of a request.
    buffer: BytesMut,
    /// The client waits for a `100 Continue`.
    continue_expected: bool,
    /// No further request can be found in the client's bytes.
    broken: bool,
    wait: Wait,
    /// The response that is being written.
    pub(super) out: Outgoing,
    drain: Drain,
}

/// The beginning of a request, or the reason that there is none.
pub(super) enum NextRequest {
    Head(Arc<RequestHead>),
    Refused(FramingError),
    /// The client has disconnected, or has been idle for too long.
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    FirstByte,
    Head,
    Body,
    Idle,
}

impl ClientStream {
    pub(super) fn new(socket: TcpStream, limits: Arc<EdgeLimits>) -> ClientStream {
        ClientStream {
            socket,
            decoder: RequestDecoder::new(limits.head),
            limits,
            buffer: BytesMut::new(),
            continue_expected: false,
            broken: false,
            wait: Wait::default(),
            out: Outgoing::default(),
            drain: Drain::default(),
        }
    }

    /// Reads the next head. The body before it must have been read.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<NextRequest>> {
        loop {
            match self.decoder.take_head(&mut self.buffer) {
                Ok(Some(head)) => {
                    self.continue_expected = head.expects_continue && self.decoder.body().is_some();
                    return Poll::Ready(Ok(NextRequest::Head(head)));
                }
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Ok(self.refuse(fault))),
            }
            match self.poll_fill(cx)? {
                Poll::Ready(0) => return Poll::Ready(Ok(NextRequest::Closed)),
                Poll::Ready(_) => {}
                Poll::Pending => {
                    let next = match ready!(self.poll_patience(cx)) {
                        Phase::Head => self.refuse(FramingError::HeadTimeout),
                        _ => NextRequest::Closed,
                    };
                    return Poll::Ready(Ok(next));
                }
            }
        }
    }

    fn refuse(&mut self, fault: FramingError) -> NextRequest {
        self.broken = true;
        NextRequest::Refused(fault)
    }

    /// The body of the current request, if all of it has arrived.
    pub(super) fn take_whole_body(&mut self) -> Option<Bytes> {
        match self.decoder.body() {
            None => Some(Bytes::new()),
            Some(BodyFraming::Sized(left)) if *left <= self.buffer.len() as u64 => {
                match self.decoder.take_body(&mut self.buffer) {
                    Ok(BodyPart::Data(whole)) => Some(whole),
                    _ => None,
                }
            }
            Some(_) => None,
        }
    }

    /// The bytes that are left of the current body, if its head states them.
    pub(super) fn body_length(&self) -> Option<u64> {
        self.decoder.body().map_or(Some(0), BodyFraming::length)
    }

    /// The number of the current request on this connection.
    pub(super) fn request_number(&self) -> u64 {
        self.decoder.heads()
    }

    /// Reads a part of the current body; `None` at its end.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.broken {
                return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
            }
            match self.decoder.take_body(&mut self.buffer) {
                Ok(BodyPart::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(BodyPart::End) => return Poll::Ready(None),
                Ok(BodyPart::Missing) => {}
                Err(_) => return Poll::Ready(Some(Err(self.fail(io::ErrorKind::InvalidData)))),
            }
            if std::mem::take(&mut self.continue_expected) {
                // Best effort: a client that gets none sends the body all the same.
                let _ = self.socket.try_write(CONTINUE);
            }
            let failure = match self.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => continue,
                Poll::Ready(Ok(0)) => io::ErrorKind::UnexpectedEof,
                Poll::Ready(Err(error)) => error.kind(),
                Poll::Pending => {
                    ready!(self.poll_patience(cx));
                    io::ErrorKind::TimedOut
                }
            };
            return Poll::Ready(Some(Err(self.fail(failure))));
        }
    }

    fn fail(&mut self, kind: io::ErrorKind) -> io::Error {
        self.broken = true;
        kind.into()
    }

    /// Whether another request can follow: drops the rest of a body that was
    /// not read, if it is short and has arrived.
    pub(super) fn skip_body(&mut self, cx: &mut Context<'_>) -> bool {
        // A client that waits for `100 Continue` may send the body or not.
        if self.continue_expected {
            return false;
        }
        let limit = self.decoder.body_bytes() + SKIPPED;
        while self.decoder.body().is_some() && self.decoder.body_bytes() < limit {
            if !matches!(self.poll_body(cx), Poll::Ready(None | Some(Ok(_)))) {
                return false;
            }
        }
        !self.broken && self.decoder.body().is_none()
    }

    /// Ready when the client has disconnected; never if it has sent more: then
    /// only a failing write can detect it.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.broken || self.decoder.body().is_some() || !self.buffer.is_empty() {
            return Poll::Pending;
        }
        match self.socket.poll_peek(cx, &mut ReadBuf::new(&mut [0])) {
            Poll::Ready(Ok(1..)) | Poll::Pending => Poll::Pending,
            Poll::Ready(_) => Poll::Ready(()),
        }
    }

    /// Frees the memory for requests and responses. Allocating it again costs a little.
    pub(super) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        self.out.release();
        self.decoder.forget();
    }

    /// Reads into the buffer; zero at the end of the client's bytes.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() == 0 {
            // An idle connection has no buffer until there are bytes for it.
            ready!(self.socket.poll_read_ready(cx))?;
        }
        let wanted = match self.decoder.body() {
            Some(BodyFraming::Sized(left)) => (*left).clamp(READ as u64, MOST) as usize,
            _ => READ,
        };
        self.buffer
            .reserve(wanted.saturating_sub(self.buffer.len()).max(READ / 2));
        pin!(self.socket.read_buf(&mut self.buffer)).poll(cx)
    }

    fn phase(&self) -> Phase {
        if self.decoder.body().is_some() {
            Phase::Body
        } else if !self.buffer.is_empty() {
            Phase::Head
        } else if self.decoder.heads() == 0 {
            Phase::FirstByte
        } else {
            Phase::Idle
        }
    }

    /// Ready when the wait for the client has reached its limit.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Phase> {
        let phase = self.phase();
        let what = (phase as u8, self.decoder.heads());
        let limit = match phase {
            Phase::FirstByte => self.limits.first_byte,
            Phase::Head => self.limits.header,
            Phase::Body => {
                let earned = self.decoder.body_bytes() * 1000 / self.limits.body_rate.max(1);
                let earned = self.limits.body_grace + Duration::from_millis(earned);
                self.limits.body.min(earned)
            }
            Phase::Idle => {
                let rest = self.limits.rest.min(self.limits.idle);
                if self.buffer.capacity() > 0 {
                    ready!(self.wait.poll(cx, what, rest));
                    self.release();
                }
                self.limits.idle
            }
        };
        self.wait.poll(cx, what, limit).map(|()| phase)
    }

    /// Writes all of `out`. Fails if the client reads too slowly.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let mut slices = [IoSlice::new(&[]); Outgoing::AT_ONCE];
            let socket = Pin::new(&mut self.socket);
            let written = match self.out.slices(&mut slices) {
                [only] => socket.poll_write(cx, only),
                several => socket.poll_write_vectored(cx, several),
            };
            match written {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    self.drain.took(written);
                    self.out.advance(written);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    let (stall, rate) = (self.limits.write_stall, self.limits.write_rate);
                    ready!(self.drain.poll(cx, stall, rate));
                    // Otherwise the kernel would continue to offer the queued
                    // data to a client that does not read it.
                    let _ = self.socket.set_zero_linger();
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        self.drain.over();
        Poll::Ready(Ok(()))
    }

    /// Ends the connection after the last response.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    /// Whether the client may still be sending.
    pub(super) fn has_unread(&self) -> bool {
        self.broken || self.decoder.body().is_some()
    }

    /// Reads what the client is still sending, within limits, so that the last
    /// response reaches it; `read` counts the bytes.
    pub(super) fn poll_linger(&mut self, cx: &mut Context<'_>, read: &mut usize) -> Poll<()> {
        while *read < LINGER_BYTES {
            self.buffer.clear();
            self.buffer.reserve(READ);
            match pin!(self.socket.read_buf(&mut self.buffer)).poll(cx) {
                Poll::Pending => return self.wait.poll(cx, (u8::MAX, 0), LINGER),
                Poll::Ready(Ok(bytes @ 1..)) => *read += bytes,
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
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
