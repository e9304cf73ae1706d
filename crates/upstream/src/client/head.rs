//! Writes the heads of requests and reads those of responses.

use std::mem::MaybeUninit;

use bytes::BytesMut;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::body::BodyFraming;
use super::response::RawHead;

/// The limits of bytes and of lines in the head of a response.
const HEAD_LIMIT: usize = 128 << 10;
pub(super) const LINES: usize = 100;

/// Header lines as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<u8>);

impl Headers {
    pub fn new() -> Headers {
        Headers(Vec::with_capacity(256))
    }

    /// The headers that every POST of a message has.
    pub(crate) fn of_post() -> Headers {
        let mut headers = Headers::new();
        headers.0.extend_from_slice(
            b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n",
        );
        headers
    }

    pub fn add(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.line(name, value.as_bytes());
    }

    pub(crate) fn add_all(&mut self, map: &HeaderMap) {
        for (name, value) in map {
            self.add(name, value);
        }
    }

    /// False, and nothing added, if the text is not a valid header value.
    #[must_use]
    pub fn add_text(&mut self, name: &HeaderName, text: &str) -> bool {
        let fits = text.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f));
        if fits {
            self.line(name, text.as_bytes());
        }
        fits
    }

    fn line(&mut self, name: &HeaderName, value: &[u8]) {
        let out = &mut self.0;
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes a complete request, except for a body too large to be copied.
pub(super) fn write_request(
    out: &mut Vec<u8>,
    method: &Method,
    path: &str,
    lines: [&Headers; 2],
    body: &[u8],
    copied: usize,
) {
    out.clear();
    out.reserve(64 + path.len() + lines[0].0.len() + lines[1].0.len() + copied);
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    out.extend_from_slice(&lines[0].0);
    out.extend_from_slice(&lines[1].0);
    if !body.is_empty() || method == Method::POST {
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body[..copied]);
}

pub(super) struct ResponseHead {
    pub status: StatusCode,
    pub raw: RawHead,
    pub framing: BodyFraming,
    /// Another request may follow on the same connection.
    pub keeps: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("not an HTTP answer: {0}")]
pub(super) struct InvalidResponse(&'static str);

/// Removes the head from the front of `buffer`, once it is complete. Skips
/// interim responses.
pub(super) fn read(
    buffer: &mut BytesMut,
    method: &Method,
) -> Result<Option<ResponseHead>, InvalidResponse> {
    loop {
        let mut lines = [const { MaybeUninit::uninit() }; LINES];
        let mut parsed = httparse::Response::new(&mut []);
        let result = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut parsed, buffer, &mut lines);
        let size = match result {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) if buffer.len() > HEAD_LIMIT => {
                return Err(InvalidResponse("its head is too large"));
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(InvalidResponse("its head has too many lines"));
            }
            Err(_) => return Err(InvalidResponse("its head cannot be read")),
        };
        let status = StatusCode::from_u16(parsed.code.unwrap_or(0))
            .map_err(|_| InvalidResponse("its status is none"))?;
        if status.is_informational() {
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(InvalidResponse("it wants another protocol"));
            }
            let _ = buffer.split_to(size);
            continue;
        }
        let new = parsed.version == Some(1);
        let (mut framing, keeps) = framing(status, parsed.headers, new)?;
        let mut raw = RawHead::default();
        for line in parsed.headers.iter() {
            raw.note(line.name, place(buffer, line.value));
        }
        let raw = raw.with_text(buffer.split_to(size));
        if method == Method::HEAD {
            framing = BodyFraming::Length(0);
        }
        return Ok(Some(ResponseHead {
            status,
            raw,
            framing,
            keeps,
        }));
    }
}

fn place(whole: &[u8], part: &[u8]) -> std::ops::Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// The framing of the body, and whether the connection can be reused.
fn framing(
    status: StatusCode,
    headers: &[httparse::Header<'_>],
    new: bool,
) -> Result<(BodyFraming, bool), InvalidResponse> {
    let all = |name: HeaderName| {
        let named = move |line: &&httparse::Header<'_>| {
            line.name.len() == name.as_str().len() && line.name.eq_ignore_ascii_case(name.as_str())
        };
        headers.iter().filter(named).map(|line| line.value)
    };
    let says = |what: &str| {
        let mut words = all(header::CONNECTION).flat_map(|line| line.split(|byte| *byte == b','));
        words.any(|word| word.trim_ascii().eq_ignore_ascii_case(what.as_bytes()))
    };
    let keeps = if new {
        !says("close")
    } else {
        says("keep-alive")
    };
    if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return Ok((BodyFraming::Length(0), keeps));
    }
    let mut codings = all(header::TRANSFER_ENCODING);
    if let Some(coding) = codings.next() {
        let chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        if !chunked || codings.next().is_some() {
            return Err(InvalidResponse("its body has a coding we did not ask for"));
        }
        return Ok((BodyFraming::chunked(), keeps));
    }
    let mut length = None;
    for line in all(header::CONTENT_LENGTH) {
        let digits = std::str::from_utf8(line)
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let said = digits.and_then(|digits| digits.parse::<u64>().ok());
        let said = said.ok_or(InvalidResponse("its length is not a number"))?;
        if length.replace(said).is_some_and(|other| other != said) {
            return Err(InvalidResponse("it has two lengths"));
        }
    }
    Ok(match length {
        Some(length) => (BodyFraming::Length(length), keeps),
        None => (BodyFraming::Close, false),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn read_all(text: &str) -> Result<Option<(u16, BodyFraming, bool, Bytes)>, String> {
        let mut buffer = BytesMut::from(text.as_bytes());
        let head = read(&mut buffer, &Method::POST).map_err(|error| error.to_string())?;
        Ok(head.map(|head| {
            let status = head.status.as_u16();
            (status, head.framing, head.keeps, buffer.freeze())
        }))
    }

    #[test]
    fn c1_the_head_says_where_the_body_ends() {
        let chunked = BodyFraming::chunked;
        let table = [
            (
                "200 OK\r\nContent-Length: 3\r\n\r\nabc",
                (200, BodyFraming::Length(3), true, "abc"),
            ),
            (
                "200\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\n",
                (200, BodyFraming::Length(3), true, ""),
            ),
            (
                "202 Accepted\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n",
                (202, BodyFraming::Length(0), false, ""),
            ),
            (
                "200 OK\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n",
                (200, chunked(), true, "0\r\n\r\n"),
            ),
            (
                "204 No Content\r\n\r\n",
                (204, BodyFraming::Length(0), true, ""),
            ),
            (
                "200 OK\r\n\r\nrest",
                (200, BodyFraming::Close, false, "rest"),
            ),
            (
                "100 Continue\r\n\r\nHTTP/1.1 404 \r\ncontent-length: 1\r\n\r\nx",
                (404, BodyFraming::Length(1), true, "x"),
            ),
        ];
        for (text, (status, framing, keeps, rest)) in table {
            let found = read_all(&format!("HTTP/1.1 {text}"));
            let expected = (status, framing, keeps, Bytes::from(rest));
            assert_eq!(found, Ok(Some(expected)), "{text:?}");
        }
        let old = read_all("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n")
            .unwrap()
            .unwrap();
        assert!(!old.2);
        let mut to_head = BytesMut::from("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n");
        let to_head = read(&mut to_head, &Method::HEAD).unwrap().unwrap();
        assert_eq!(to_head.framing, BodyFraming::Length(0));
    }

    #[test]
    fn c1_what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +3\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/2 200\r\n\r\n",
            "<!doctype html>",
        ] {
            assert!(read_all(text).is_err(), "{text:?}");
        }
        assert_eq!(read_all("HTTP/1.1 200 OK\r\ncontent-le"), Ok(None));
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(HEAD_LIMIT));
        assert!(read_all(&endless).is_err());
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(LINES + 1));
        assert!(read_all(&many).is_err());
    }

    #[test]
    fn c5_a_value_cannot_bring_lines_of_its_own() {
        let mut headers = Headers::new();
        assert!(!headers.add_text(&header::ACCEPT, "a\r\nb: c"));
        assert!(headers.add_text(&header::ACCEPT, "a\tb"));
        let mut sent = Vec::new();
        let lines = [&headers, &Headers::default()];
        write_request(&mut sent, &Method::POST, "/p", lines, b"{}", 2);
        let expected = "POST /p HTTP/1.1\r\naccept: a\tb\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    }
}
