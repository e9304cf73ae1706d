//! HTTP responses: one JSON text, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::body::HttpBody;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body::{Frame, SizeHint};

use crate::counted::Counted;
use gateway::MessageBody;
use wire::sse;

/// The interval of keep-alives on a quiet stream: well below the timeouts of
/// proxies and clients.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The time a client waits before it resumes a stream, in milliseconds.
const RETRY: u64 = 1000;

pub(super) fn json(status: StatusCode, text: impl Into<MessageBody>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let text = text.into();
    let counted = text.is_charged().then_some(Extension(Counted));
    let headers = [(header::CONTENT_TYPE, kind)];
    (status, headers, counted, body(text)).into_response()
}

/// One write sends all pieces of it, without a copy.
fn body(text: MessageBody) -> Body {
    let left = text.size() as u64;
    let mut pieces = text.pieces();
    match (pieces.len(), pieces.next()) {
        (1, Some(only)) => Body::from(only),
        (_, first) => Body::new(Pieces {
            pieces: first.into_iter().chain(pieces),
            left,
        }),
    }
}

struct Pieces<P> {
    pieces: P,
    /// In bytes.
    left: u64,
}

impl<P: Iterator<Item = Bytes> + Unpin> HttpBody for Pieces<P> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.pieces.next();
        self.left -= next.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// The response to a notification or to a client's response.
pub(super) fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// A stream of events, from text that is already encoded.
pub(crate) fn events<S>(stream: S) -> Response
where
    S: futures_util::Stream<Item = Bytes> + Send + 'static,
{
    use futures_util::StreamExt;
    let body = Body::from_stream(stream.map(Ok::<_, Infallible>));
    let fixed = HeaderValue::from_static;
    let headers = [
        (header::CONTENT_TYPE, fixed("text/event-stream")),
        (header::CACHE_CONTROL, fixed("no-store")),
        (NO_BUFFERING, fixed("no")),
    ];
    (headers, body).into_response()
}

/// One encoded event.
pub(crate) fn event(
    name: Option<&str>,
    id: Option<&str>,
    retry: Option<u64>,
    data: &[u8],
) -> Bytes {
    let mut out = Vec::new();
    sse::encode(name, id, retry, data, &mut out);
    out.into()
}

pub(super) fn message(id: Option<&str>, message: &MessageBody) -> Bytes {
    message.bind(event(Some("message"), id, None, &message.whole()))
}

/// Gives a client the id of a stream's start, before the first message.
pub(super) fn priming(id: &str) -> Bytes {
    event(None, Some(id), Some(RETRY), b"")
}

pub(crate) fn comment() -> Bytes {
    let mut out = Vec::new();
    sse::comment(&mut out);
    out.into()
}
