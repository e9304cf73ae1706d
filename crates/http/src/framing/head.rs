//! One request head: checks every line of it, and reads the body's framing.

use std::io::BufRead;

use super::chunk::ChunkPosition;
use super::{FramingError, FramingState, FramingStep, HeadLimits};

/// A head as far as it has arrived; offsets count from its first byte.
#[derive(Debug, Default)]
pub(super) struct RequestHead {
    line: usize,
    seen: usize,
    lines: usize,
    old: bool,
    length: Option<u64>,
    chunked: bool,
}

impl RequestHead {
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<FramingStep>, FramingError> {
        if !is_token(bytes[0]) {
            return Err(FramingError::NotHttp);
        }
        while let Some(found) = newline(&bytes[self.seen..]) {
            let end = self.seen + found;
            if end >= limits.head_bytes {
                return Err(FramingError::HeadTooLarge);
            }
            let line = bytes[self.line..end]
                .strip_suffix(b"\r")
                .ok_or(FramingError::BareLineEnd)?;
            self.line = end + 1;
            self.seen = end + 1;
            if line.is_empty() {
                return self.finish().map(|body| Some((self.seen, Some(body))));
            }
            self.take_line(line, limits)?;
        }
        self.seen = bytes.len();
        if self.lines == 0 && bytes.len() > limits.uri_bytes + 64 {
            return Err(FramingError::UriTooLong);
        }
        if bytes.len() >= limits.head_bytes {
            return Err(FramingError::HeadTooLarge);
        }
        Ok(None)
    }

    fn take_line(&mut self, line: &[u8], limits: &HeadLimits) -> Result<(), FramingError> {
        self.lines += 1;
        if self.lines == 1 {
            return self.request_line(line, limits);
        }
        if self.lines > limits.header_lines + 1 {
            return Err(FramingError::HeadTooLarge);
        }
        self.header(line)
    }

    fn request_line(&mut self, line: &[u8], limits: &HeadLimits) -> Result<(), FramingError> {
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
        Ok(())
    }

    fn header(&mut self, line: &[u8]) -> Result<(), FramingError> {
        if matches!(line[0], b' ' | b'\t') {
            return Err(FramingError::Folded);
        }
        let colon = line.iter().position(|&b| !is_token(b)).unwrap_or(0);
        let name = &line[..colon];
        if name.is_empty() || line[colon] != b':' {
            return Err(FramingError::HeaderName);
        }
        let value = &line[colon + 1..];
        if has_control(value) {
            return Err(FramingError::ControlByte);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = plain_number(trim(value)).ok_or(FramingError::ContentLength)?;
            if self.length.replace(length).is_some() {
                return Err(FramingError::ContentLength);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || self.old || trim(value) != b"chunked" {
                return Err(FramingError::TransferEncoding);
            }
            self.chunked = true;
        }
        Ok(())
    }

    fn finish(&self) -> Result<FramingState, FramingError> {
        match (self.lines, self.length, self.chunked) {
            (0, ..) => Err(FramingError::RequestLine),
            (_, Some(_), true) => Err(FramingError::TwoLengths),
            (_, None, true) => Ok(FramingState::Chunked(ChunkPosition::Size {
                digits: 0,
                size: 0,
            })),
            (_, Some(left @ 1..), false) => Ok(FramingState::Sized { left }),
            (_, Some(0) | None, false) => Ok(FramingState::Head(RequestHead::default())),
        }
    }
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

fn trim(value: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let Some(start) = value.iter().position(|b| !blank(b)) else {
        return b"";
    };
    let end = value.iter().rposition(|b| !blank(b)).unwrap_or(start);
    &value[start..=end]
}

fn plain_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0')))
}
