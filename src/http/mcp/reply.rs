//! Answers as HTTP: one JSON text, or a stream of events.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::value::RawValue;
use std::time::Duration;

use crate::wire::{self, RpcError, sse};

/// A quiet stream says so often that it is alive: well within what proxies
/// and clients wait for.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// What a client waits before it comes back to a stream, in milliseconds.
const RETRY: u64 = 1000;

pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

/// A notification or an answer was taken.
pub(super) fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// A refusal by this room, as a JSON-RPC error with a status of its own.
pub(super) fn refuse(status: StatusCode, id: Option<&RawValue>, error: &RpcError) -> Response {
    json(status, wire::error(id, error))
}

/// A stream of events, made of text already spelled as such.
pub(super) fn events<S>(stream: S) -> Response
where
    S: futures_util::Stream<Item = Bytes> + Send + 'static,
{
    use futures_util::StreamExt;
    let body = Body::from_stream(stream.map(Ok::<_, std::convert::Infallible>));
    let fixed = HeaderValue::from_static;
    let headers = [
        (header::CONTENT_TYPE, fixed("text/event-stream")),
        (header::CACHE_CONTROL, fixed("no-store")),
        (NO_BUFFERING, fixed("no")),
    ];
    (headers, body).into_response()
}

pub(super) fn message(id: Option<&str>, message: &[u8]) -> Bytes {
    let mut out = Vec::new();
    sse::encode(Some("message"), id, None, message, &mut out);
    out.into()
}

/// Tells a client where a stream begins, before there is anything on it.
pub(super) fn priming(id: &str) -> Bytes {
    let mut out = Vec::new();
    sse::encode(None, Some(id), Some(RETRY), b"", &mut out);
    out.into()
}

pub(super) fn comment() -> Bytes {
    let mut out = Vec::new();
    sse::comment(&mut out);
    out.into()
}
