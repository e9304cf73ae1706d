//! Splits the bytes of a client into HTTP/1 requests. A request that two
//! parsers could read in two ways is refused, so that nothing can be smuggled
//! past a proxy in front of us.

mod chunk;
mod head;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use chunk::ChunkPosition;
use head::{HeadScan, KnownHead};
pub use head::{RequestHead, ResponseContext};

/// The limits on a request head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    pub head_bytes: usize,
    pub uri_bytes: usize,
    pub header_lines: usize,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits {
            head_bytes: 32 * 1024,
            uri_bytes: 8 * 1024,
            header_lines: 100,
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    #[error(
        "this is not an HTTP/1.1 request; only HTTP/1.1 and HTTP/1.0 without TLS are spoken here"
    )]
    NotHttp,
    #[error("the request line is not `METHOD target HTTP/1.1`")]
    RequestLine,
    #[error("lines of a request head end in CRLF")]
    BareLineEnd,
    #[error("a header must not be folded over several lines")]
    Folded,
    #[error(
        "a header line is not `name: value`, or its name holds a character that is not allowed"
    )]
    HeaderName,
    #[error("a header value holds a control character")]
    ControlByte,
    #[error("Content-Length must be given at most once, as one plain number")]
    ContentLength,
    #[error("Transfer-Encoding must be given at most once and be exactly `chunked`")]
    TransferEncoding,
    #[error("Content-Length and Transfer-Encoding must not be given together")]
    TwoLengths,
    #[error("the request target is too long")]
    UriTooLong,
    #[error("the request head is too large")]
    HeadTooLarge,
    #[error("the request head took too long to arrive")]
    HeadTimeout,
    #[error("the chunked body is malformed")]
    Chunk,
}

/// The way the end of a request's body is found.
#[derive(Debug)]
pub enum BodyFraming {
    /// The bytes that are left of a body whose length the head states.
    Sized(u64),
    Chunked(ChunkPosition),
}

impl BodyFraming {
    /// The bytes that are left, if the head stated a length.
    pub fn length(&self) -> Option<u64> {
        match self {
            BodyFraming::Sized(left) => Some(*left),
            BodyFraming::Chunked(_) => None,
        }
    }
}

/// The next part of a body.
#[derive(Debug)]
pub enum BodyPart {
    Data(Bytes),
    /// More bytes must arrive first.
    Missing,
    End,
}

/// Reads requests, one after another: a head, then its body.
#[derive(Debug)]
pub struct RequestDecoder {
    limits: HeadLimits,
    scan: HeadScan,
    /// The body that is being read.
    body: Option<BodyFraming>,
    heads: u64,
    body_bytes: u64,
    known: Option<KnownHead>,
}

impl RequestDecoder {
    pub fn new(limits: HeadLimits) -> RequestDecoder {
        RequestDecoder {
            limits,
            scan: HeadScan::default(),
            body: None,
            heads: 0,
            body_bytes: 0,
            known: None,
        }
    }

    /// The number of heads that have been read.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// The framing of the body that is being read.
    pub fn body(&self) -> Option<&BodyFraming> {
        self.body.as_ref()
    }

    /// The bytes of the current body so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Frees what only makes the next head cheaper to read.
    pub(crate) fn forget(&mut self) {
        self.known = None;
    }

    /// Takes the next head from `buffer`; `None` if it is not complete. The
    /// body before it must have been read.
    pub fn take_head(
        &mut self,
        buffer: &mut BytesMut,
    ) -> Result<Option<Arc<RequestHead>>, FramingError> {
        debug_assert!(self.body.is_none(), "a body comes before the next head");
        let known = self.known.as_ref().filter(|_| !self.scan.has_begun());
        let found = known.and_then(|known| known.find(buffer));
        let (size, body) = match found {
            Some(found) => found,
            None => match self.scan.scan(buffer, &self.limits)? {
                Some((size, body)) => {
                    self.known = Some(self.scan.finish(&buffer[..size])?);
                    (size, body)
                }
                None => return Ok(None),
            },
        };
        let head = self.known.as_ref().map(|known| known.head.clone());
        if size > head::KEPT {
            self.known = None;
        }
        drop(buffer.split_to(size));
        self.heads += 1;
        self.body = body;
        self.body_bytes = 0;
        Ok(head)
    }

    /// Takes the next part of the body from `buffer`.
    pub fn take_body(&mut self, buffer: &mut BytesMut) -> Result<BodyPart, FramingError> {
        let before = buffer.len();
        let part = match &mut self.body {
            None => return Ok(BodyPart::End),
            Some(BodyFraming::Sized(0)) => BodyPart::End,
            Some(BodyFraming::Sized(left)) => {
                take_data(left, buffer).map_or(BodyPart::Missing, BodyPart::Data)
            }
            Some(BodyFraming::Chunked(position)) => position.take(buffer)?,
        };
        self.body_bytes += (before - buffer.len()) as u64;
        let over = matches!(self.body, Some(BodyFraming::Sized(0)));
        if over || matches!(part, BodyPart::End) {
            self.body = None;
        }
        Ok(part)
    }
}

/// Takes at most `left` bytes, and counts them down.
fn take_data(left: &mut u64, buffer: &mut BytesMut) -> Option<Bytes> {
    let size = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
    *left -= size as u64;
    (size > 0).then(|| buffer.split_to(size).freeze())
}

#[cfg(test)]
mod tests;
