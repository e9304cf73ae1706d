//! A response as it was received: its status, the few headers that matter to
//! MCP, and the body. A map of all headers is made only for other callers.

use std::ops::Range;

use bytes::BytesMut;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use super::body::ResponseBody;
use super::head::LINES;

/// A header of a response that MCP gives a meaning.
#[derive(Clone, Copy)]
pub(crate) enum KnownHeader {
    ContentType,
    ContentEncoding,
    Location,
    Session,
}

const NAMES: [&str; 4] = [
    "content-type",
    "content-encoding",
    "location",
    "mcp-session-id",
];

/// The head of a response, and where its known headers are.
#[derive(Default)]
pub(super) struct RawHead {
    text: BytesMut,
    known: [Option<Range<usize>>; NAMES.len()],
}

impl RawHead {
    /// Notes the place of a header's value, if it is a known header; the first
    /// of several lines counts.
    pub(super) fn note(&mut self, name: &str, value: Range<usize>) {
        let known = NAMES
            .iter()
            .position(|known| known.len() == name.len() && known.eq_ignore_ascii_case(name));
        if let Some(known) = known {
            self.known[known].get_or_insert(value);
        }
    }

    pub(super) fn with_text(self, text: BytesMut) -> RawHead {
        RawHead { text, ..self }
    }

    fn map(self) -> HeaderMap {
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut parsed = httparse::Response::new(&mut lines);
        // It was parsed before, so nothing fails here.
        let _ = parsed.parse(&self.text);
        let named = |line: &httparse::Header<'_>| {
            let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_bytes(line.value).ok()?))
        };
        let mut map = HeaderMap::with_capacity(parsed.headers.len());
        for (name, value) in parsed.headers.iter().filter_map(named) {
            map.append(name, value);
        }
        map
    }
}

pub(crate) struct RawResponse {
    pub(crate) status: StatusCode,
    pub(super) head: RawHead,
    pub(crate) body: ResponseBody,
}

impl RawResponse {
    /// The value of a header, or of the first of several.
    pub(crate) fn header(&self, header: KnownHeader) -> Option<&[u8]> {
        let value = self.head.known[header as usize].clone()?;
        Some(&self.head.text[value])
    }

    /// The response with all its headers.
    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.head.map();
        response
    }
}
