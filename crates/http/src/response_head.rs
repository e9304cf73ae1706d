//! The head of a response, and the framing of its body.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, StatusCode, Version, header};

use super::framing::ResponseContext;
use super::outgoing::Outgoing;

/// The way a client finds the end of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFraming {
    /// The status, or the method, has no body.
    Empty,
    /// The bytes that are left.
    Sized(u64),
    Chunked,
    /// The body ends with the connection. Only for HTTP/1.0, which cannot
    /// distinguish that end from a lost connection.
    Close,
}

impl ResponseFraming {
    /// The framing of a response; `length` is the body's, if known.
    pub(super) fn of(
        context: ResponseContext,
        parts: &Parts,
        length: Option<u64>,
    ) -> ResponseFraming {
        let status = parts.status;
        if status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED
        {
            return ResponseFraming::Empty;
        }
        match stated_length(&parts.headers).or(length) {
            Some(length) => ResponseFraming::Sized(length),
            None if context.head_only => ResponseFraming::Empty,
            None if context.version == Version::HTTP_11 => ResponseFraming::Chunked,
            None => ResponseFraming::Close,
        }
    }

    /// Whether the body may take any time.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, ResponseFraming::Chunked | ResponseFraming::Close)
    }

    pub(super) fn push(&mut self, out: &mut Outgoing, data: Bytes) -> io::Result<()> {
        match self {
            // An empty chunk would mean the end.
            _ if data.is_empty() => {}
            ResponseFraming::Empty => {}
            ResponseFraming::Sized(left) => {
                *left = left
                    .checked_sub(data.len() as u64)
                    .ok_or_else(|| io::Error::other("the body is longer than its head says"))?;
                out.push(data);
            }
            ResponseFraming::Chunked => {
                write!(out, "{:x}\r\n", data.len())?;
                out.push(data);
                out.push_text(b"\r\n");
            }
            ResponseFraming::Close => out.push(data),
        }
        Ok(())
    }

    /// All of the body has been pushed.
    pub(super) fn end(self, out: &mut Outgoing) -> io::Result<()> {
        match self {
            ResponseFraming::Sized(1..) => {
                Err(io::Error::other("the body is shorter than its head says"))
            }
            ResponseFraming::Chunked => {
                out.push_text(b"0\r\n\r\n");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn stated_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Writes a head; returns whether the connection ends with the response.
pub(super) fn write_head(
    out: &mut Outgoing,
    version: Version,
    parts: &Parts,
    framing: ResponseFraming,
    keeps: bool,
) -> bool {
    let status = parts.status;
    let reason = status.canonical_reason().unwrap_or_default();
    for text in [spelled(version), " ", status.as_str(), " ", reason, "\r\n"] {
        out.push_text(text.as_bytes());
    }
    for (name, value) in &parts.headers {
        write_header(out, name.as_str(), value.as_bytes());
    }
    match framing {
        ResponseFraming::Sized(length) if !parts.headers.contains_key(header::CONTENT_LENGTH) => {
            let mut digits = itoa::Buffer::new();
            write_header(out, "content-length", digits.format(length).as_bytes());
        }
        ResponseFraming::Chunked => write_header(out, "transfer-encoding", b"chunked"),
        _ => {}
    }
    let stated = parts.headers.get(header::CONNECTION);
    let closes = !keeps
        || framing == ResponseFraming::Close
        || stated.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
    match (stated, closes, version) {
        (None, true, _) => write_header(out, "connection", b"close"),
        (None, false, Version::HTTP_10) => write_header(out, "connection", b"keep-alive"),
        _ => {}
    }
    if !parts.headers.contains_key(header::DATE) {
        with_date(|date| write_header(out, "date", date.as_bytes()));
    }
    out.push_text(b"\r\n");
    closes
}

fn spelled(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

fn write_header(out: &mut Outgoing, name: &str, value: &[u8]) {
    for text in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.push_text(text);
    }
}

/// The date of a response. It is spelled once a second.
fn with_date(write: impl FnOnce(&str)) {
    thread_local! {
        static DATE: RefCell<(Duration, String)> = const { RefCell::new((Duration::MAX, String::new())) };
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = Duration::from_secs(since.unwrap_or_default().as_secs());
    DATE.with_borrow_mut(|(at, text)| {
        if *at != now {
            let second = i64::try_from(now.as_secs()).unwrap_or(0);
            let stamp = jiff::Timestamp::from_second(second).unwrap_or_default();
            *text = stamp.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            *at = now;
        }
        write(text);
    });
}

impl io::Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push_text(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(context: ResponseContext, status: u16, length: Option<u64>, keeps: bool) -> String {
        let (mut parts, ()) = http::Response::new(()).into_parts();
        parts.status = StatusCode::from_u16(status).unwrap();
        parts
            .headers
            .insert(header::DATE, header::HeaderValue::from_static("now"));
        let framing = ResponseFraming::of(context, &parts, length);
        let mut out = Outgoing::default();
        write_head(&mut out, context.version, &parts, framing, keeps);
        out.written()
    }

    #[test]
    fn t_e2_a_head_says_where_its_body_ends() {
        let new = ResponseContext {
            keeps: true,
            ..ResponseContext::UNREADABLE
        };
        let old = ResponseContext {
            version: Version::HTTP_10,
            ..new
        };
        let only_head = ResponseContext {
            head_only: true,
            ..new
        };
        let table = [
            (
                head(new, 200, Some(5), true),
                "HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 5\r\n\r\n",
            ),
            (
                head(new, 200, Some(0), false),
                "HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            ),
            (
                head(new, 200, None, true),
                "HTTP/1.1 200 OK\r\ndate: now\r\ntransfer-encoding: chunked\r\n\r\n",
            ),
            (
                head(old, 200, Some(5), true),
                "HTTP/1.0 200 OK\r\ndate: now\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\n",
            ),
            (
                head(old, 200, None, true),
                "HTTP/1.0 200 OK\r\ndate: now\r\nconnection: close\r\n\r\n",
            ),
            (
                head(new, 204, Some(0), true),
                "HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n",
            ),
            (
                head(new, 304, Some(0), true),
                "HTTP/1.1 304 Not Modified\r\ndate: now\r\n\r\n",
            ),
            (
                head(only_head, 200, None, true),
                "HTTP/1.1 200 OK\r\ndate: now\r\n\r\n",
            ),
        ];
        for (written, expected) in table {
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn t_e2_a_body_is_as_long_as_its_head_says() {
        let mut out = Outgoing::default();
        let mut framing = ResponseFraming::Sized(3);
        framing.push(&mut out, Bytes::from_static(b"ab")).unwrap();
        assert!(framing.end(&mut out).is_err());
        assert!(framing.push(&mut out, Bytes::from_static(b"cd")).is_err());
        let mut chunked = ResponseFraming::Chunked;
        let mut out = Outgoing::default();
        for piece in ["", "hello, world!", "x"] {
            chunked.push(&mut out, Bytes::from(piece)).unwrap();
        }
        chunked.end(&mut out).unwrap();
        assert_eq!(out.written(), "d\r\nhello, world!\r\n1\r\nx\r\n0\r\n\r\n");
    }
}
