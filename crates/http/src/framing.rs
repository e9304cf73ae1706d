//! Finds where one HTTP/1 request ends and the next begins, more strictly than
//! the parser behind it: a request that two parsers could read in two ways is
//! refused, so that nothing can be smuggled past a proxy in front of us.
//!
//! Bodies are only counted, never copied.

mod chunk;
mod head;

use chunk::ChunkPosition;
use head::RequestHead;

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
            // hyper's own limit; beyond it hyper would respond without a body.
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

/// How many bytes may pass, and why the rest may not.
#[derive(Debug, PartialEq, Eq)]
pub struct Scan {
    pub pass: usize,
    pub stop: Option<ScanStop>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ScanStop {
    /// The rest is the beginning of a head: scan it again, with more bytes.
    Head,
    Fault(FramingError),
}

#[derive(Debug)]
pub struct RequestFraming {
    limits: HeadLimits,
    state: FramingState,
    heads: u64,
    body_bytes: u64,
}

#[derive(Debug)]
enum FramingState {
    Head(RequestHead),
    Sized { left: u64 },
    Chunked(ChunkPosition),
}

impl RequestFraming {
    pub fn new(limits: HeadLimits) -> RequestFraming {
        RequestFraming {
            limits,
            state: FramingState::Head(RequestHead::default()),
            heads: 0,
            body_bytes: 0,
        }
    }

    /// The number of heads that have passed.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    pub(crate) fn in_body(&self) -> bool {
        !matches!(self.state, FramingState::Head(_))
    }

    /// The bytes of the current body so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Scans the stream over `bytes`. After [`ScanStop::Head`] the next call
    /// must begin with the bytes that were not passed.
    pub fn scan(&mut self, bytes: &[u8]) -> Scan {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let step = match &mut self.state {
                FramingState::Head(head) => head.scan(rest, &self.limits),
                FramingState::Sized { left } => Ok(Some(sized(left, rest))),
                FramingState::Chunked(chunk) => chunk.scan(rest).map(Some),
            };
            let (taken, next) = match step {
                Ok(Some(step)) => step,
                Ok(None) => return Scan::stopped(at, ScanStop::Head),
                Err(fault) => return Scan::stopped(at, ScanStop::Fault(fault)),
            };
            at += taken;
            if self.in_body() {
                self.body_bytes += taken as u64;
            } else {
                self.heads += 1;
                self.body_bytes = 0;
            }
            if let Some(next) = next {
                self.state = next;
            }
        }
        Scan {
            pass: at,
            stop: None,
        }
    }
}

impl Scan {
    fn stopped(pass: usize, stop: ScanStop) -> Scan {
        Scan {
            pass,
            stop: Some(stop),
        }
    }
}

/// Bytes consumed, and the next state if it changes.
type FramingStep = (usize, Option<FramingState>);

fn sized(left: &mut u64, bytes: &[u8]) -> FramingStep {
    let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= taken as u64;
    (
        taken,
        (*left == 0).then(|| FramingState::Head(RequestHead::default())),
    )
}

#[cfg(test)]
mod tests;
