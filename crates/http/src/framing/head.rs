//! One request head: checks every line of it, and reads the body's framing.

use std::io::BufRead;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};

use super::chunk::ChunkPosition;
use super::{BodyFraming, FramingError, HeadLimits};

/// The size of a head that is kept to recognize the next one.
pub(super) const KEPT: usize = 2 * 1024;

/// A head without the headers that only frame the body.
#[derive(Clone, Debug)]
pub struct RequestHead {
    pub method: Method,
    pub uri: Uri,
    pub version: Version,
    pub headers: HeaderMap,
    /// The connection may be used for another request.
    pub keeps: bool,
    /// The client waits for a `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Set once the guard has accepted what only the head decides: the same
    /// head on the same connection needs no second look.
    pub accepted: OnceLock<()>,
}

/// The traits of a request that its response depends on.
#[derive(Clone, Copy, Debug)]
pub struct ResponseContext {
    pub version: Version,
    /// The response has no body, whatever its head says.
    pub head_only: bool,
    /// The connection may be used for another request.
    pub keeps: bool,
}

impl ResponseContext {
    /// For a request that could not be read: its response is the last.
    pub(crate) const UNREADABLE: ResponseContext = ResponseContext {
        version: Version::HTTP_11,
        head_only: false,
        keeps: false,
    };
}

impl RequestHead {
    pub(crate) fn response_context(&self) -> ResponseContext {
        ResponseContext {
            version: self.version,
            head_only: self.method == Method::HEAD,
            keeps: self.keeps,
        }
    }
}

/// The last head of a connection. A client sends nearly the same head with each
/// request: only the length of the body differs, and comparing costs much less
/// than reading it again.
#[derive(Debug)]
pub(super) struct KnownHead {
    pub head: Arc<RequestHead>,
    text: Bytes,
    /// The place of the body's length in `text`; empty if there is none.
    length: Range<usize>,
    chunked: bool,
}

impl KnownHead {
    /// The size of the same head at the start of `bytes`, and its body.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<(usize, Option<BodyFraming>)> {
        let rest = bytes.strip_prefix(&self.text[..self.length.start])?;
        let digits = match self.length.is_empty() {
            true => 0,
            false => rest.iter().position(|byte| !byte.is_ascii_digit())?,
        };
        let (number, rest) = rest.split_at(digits);
        rest.strip_prefix(&self.text[self.length.end..])?;
        let size = self.text.len() - self.length.len() + digits;
        let body = match plain_number(number) {
            _ if self.chunked => Some(BodyFraming::Chunked(ChunkPosition::START)),
            Some(length @ 1..) => Some(BodyFraming::Sized(length)),
            Some(0) => None,
            None if self.length.is_empty() => None,
            None => return None,
        };
        Some((size, body))
    }
}

/// A head as far as it has arrived; offsets count from its first byte.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    line: usize,
    seen: usize,
    request_line: Option<RequestLine>,
    headers: Vec<HeaderLine>,
    old: bool,
    /// The length of the body, and where it is stated.
    length: Option<(u64, Range<usize>)>,
    chunked: bool,
}

#[derive(Debug)]
struct RequestLine {
    method: usize,
    target: Range<usize>,
}

#[derive(Debug)]
struct HeaderLine {
    name: Range<usize>,
    value: Range<usize>,
}

impl HeadScan {
    /// Whether a part of the head has been read.
    pub(super) fn has_begun(&self) -> bool {
        self.seen > 0
    }

    /// The size of the head, and its body, once all of it is in `bytes`.
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<(usize, Option<BodyFraming>)>, FramingError> {
        match bytes.first() {
            Some(&first) if is_token(first) => {}
            Some(_) => return Err(FramingError::NotHttp),
            None => return Ok(None),
        }
        while let Some(found) = newline(&bytes[self.seen..]) {
            let end = self.seen + found;
            if end >= limits.head_bytes {
                return Err(FramingError::HeadTooLarge);
            }
            let line = bytes[self.line..end]
                .strip_suffix(b"\r")
                .ok_or(FramingError::BareLineEnd)?;
            let start = std::mem::replace(&mut self.line, end + 1);
            self.seen = end + 1;
            if line.is_empty() {
                return self.framing().map(|body| Some((self.seen, body)));
            }
            self.take_line(start, line, limits)?;
        }
        self.seen = bytes.len();
        if self.request_line.is_none() && bytes.len() > limits.uri_bytes + 64 {
            return Err(FramingError::UriTooLong);
        }
        if bytes.len() >= limits.head_bytes {
            return Err(FramingError::HeadTooLarge);
        }
        Ok(None)
    }

    fn take_line(
        &mut self,
        start: usize,
        line: &[u8],
        limits: &HeadLimits,
    ) -> Result<(), FramingError> {
        if self.request_line.is_none() {
            self.request_line = Some(self.request_line(line, limits)?);
            return Ok(());
        }
        if self.headers.len() == limits.header_lines {
            return Err(FramingError::HeadTooLarge);
        }
        self.header(start, line)
    }

    fn request_line(
        &mut self,
        line: &[u8],
        limits: &HeadLimits,
    ) -> Result<RequestLine, FramingError> {
        let mut parts = line.split(|&b| b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(FramingError::RequestLine);
        };
        match version {
            b"HTTP/1.1" => {}
            b"HTTP/1.0" => self.old = true,
            _ if version.starts_with(b"HTTP/") => return Err(FramingError::NotHttp),
            _ => return Err(FramingError::RequestLine),
        }
        // CONNECT would turn the rest of the stream into something unframed.
        let method_fits = !method.is_empty()
            && method.iter().all(|&b| is_token(b))
            && !method.eq_ignore_ascii_case(b"CONNECT");
        if !method_fits || target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
            return Err(FramingError::RequestLine);
        }
        if target.len() > limits.uri_bytes {
            return Err(FramingError::UriTooLong);
        }
        Ok(RequestLine {
            method: method.len(),
            target: method.len() + 1..method.len() + 1 + target.len(),
        })
    }

    fn header(&mut self, start: usize, line: &[u8]) -> Result<(), FramingError> {
        if matches!(line[0], b' ' | b'\t') {
            return Err(FramingError::Folded);
        }
        let colon = line.iter().position(|&b| !is_token(b)).unwrap_or(0);
        let name = &line[..colon];
        if name.is_empty() || line[colon] != b':' {
            return Err(FramingError::HeaderName);
        }
        if has_control(&line[colon + 1..]) {
            return Err(FramingError::ControlByte);
        }
        let trimmed = trim(&line[colon + 1..]);
        let value = start + colon + 1 + trimmed.start..start + colon + 1 + trimmed.end;
        let text = &line[colon + 1..][trimmed];
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = plain_number(text).ok_or(FramingError::ContentLength)?;
            if self.length.replace((length, value.clone())).is_some() {
                return Err(FramingError::ContentLength);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || self.old || text != b"chunked" {
                return Err(FramingError::TransferEncoding);
            }
            self.chunked = true;
        }
        let name = start..start + colon;
        self.headers.push(HeaderLine { name, value });
        Ok(())
    }

    fn framing(&self) -> Result<Option<BodyFraming>, FramingError> {
        match (&self.request_line, &self.length, self.chunked) {
            (None, ..) => Err(FramingError::RequestLine),
            (_, Some(_), true) => Err(FramingError::TwoLengths),
            (_, None, true) => Ok(Some(BodyFraming::Chunked(ChunkPosition::START))),
            (_, Some((left @ 1.., _)), false) => Ok(Some(BodyFraming::Sized(*left))),
            (_, Some((0, _)) | None, false) => Ok(None),
        }
    }

    /// Reads the whole head in `text`, and starts over.
    pub(super) fn finish(&mut self, text: &[u8]) -> Result<KnownHead, FramingError> {
        let scan = std::mem::take(self);
        let line = scan.request_line.ok_or(FramingError::RequestLine)?;
        // A copy: parts of it live longer than the buffer should.
        let text = Bytes::copy_from_slice(text);
        let method = Method::from_bytes(&text[..line.method]);
        let uri = Uri::from_maybe_shared(text.slice(line.target));
        let mut headers = HeaderMap::with_capacity(scan.headers.len());
        for HeaderLine { name, value } in scan.headers {
            let name = HeaderName::from_bytes(&text[name]);
            let name = name.map_err(|_| FramingError::HeaderName)?;
            if matches!(name, header::CONTENT_LENGTH | header::TRANSFER_ENCODING) {
                continue;
            }
            let value = HeaderValue::from_maybe_shared(text.slice(value));
            headers.append(name, value.map_err(|_| FramingError::ControlByte)?);
        }
        let version = if scan.old {
            Version::HTTP_10
        } else {
            Version::HTTP_11
        };
        let head = RequestHead {
            method: method.map_err(|_| FramingError::RequestLine)?,
            uri: uri.map_err(|_| FramingError::RequestLine)?,
            keeps: match scan.old {
                true => names(&headers, header::CONNECTION, b"keep-alive"),
                false => !names(&headers, header::CONNECTION, b"close"),
            },
            expects_continue: !scan.old && names(&headers, header::EXPECT, b"100-continue"),
            accepted: OnceLock::new(),
            version,
            headers,
        };
        Ok(KnownHead {
            head: Arc::new(head),
            length: scan.length.map_or(text.len()..text.len(), |(_, at)| at),
            text,
            chunked: scan.chunked,
        })
    }
}

/// Whether a header's comma-separated values include `word`.
fn names(headers: &HeaderMap, name: HeaderName, word: &[u8]) -> bool {
    let mut values = headers.get_all(name).iter();
    values.any(|value| {
        let mut words = value.as_bytes().split(|byte| *byte == b',');
        words.any(|one| one.trim_ascii().eq_ignore_ascii_case(word))
    })
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Without an early exit, so that the compiler can vectorize it.
fn has_control(value: &[u8]) -> bool {
    let control = |b: u8| (b < b' ' && b != b'\t') || b == 0x7f;
    value.iter().fold(false, |found, &b| found | control(b))
}

/// The position of the first line end. Uses `BufRead`, where the standard
/// library has its fast search.
fn newline(mut bytes: &[u8]) -> Option<usize> {
    let whole = bytes;
    let taken = bytes.skip_until(b'\n').ok()?;
    (whole[..taken].last() == Some(&b'\n')).then(|| taken - 1)
}

/// The place of a value without the blanks around it.
fn trim(value: &[u8]) -> Range<usize> {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let Some(start) = value.iter().position(|b| !blank(b)) else {
        return 0..0;
    };
    let end = value.iter().rposition(|b| !blank(b)).unwrap_or(start);
    start..end + 1
}

fn plain_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0')))
}
