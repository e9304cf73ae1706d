//! The body of a request: it has arrived with its head, or is read from the
//! client's stream when the handler asks for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

use super::stream::ClientStream;

pub(super) enum RequestBody {
    Whole(Bytes),
    Arriving {
        stream: Arc<Mutex<ClientStream>>,
        /// The request it belongs to, as the stream counts them.
        request: u64,
    },
}

impl RequestBody {
    /// The body of the request whose head was read last.
    pub(super) fn of(stream: &Arc<Mutex<ClientStream>>) -> RequestBody {
        let mut locked = stream.lock();
        match locked.take_whole_body() {
            Some(whole) => RequestBody::Whole(whole),
            None => RequestBody::Arriving {
                request: locked.request_number(),
                stream: stream.clone(),
            },
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            RequestBody::Whole(whole) => {
                let whole = std::mem::take(whole);
                Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(whole))))
            }
            RequestBody::Arriving { stream, request } => {
                let mut stream = stream.lock();
                if stream.request_number() != *request {
                    // The connection has gone on without it.
                    return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
                }
                let part = stream.poll_body(cx);
                part.map(|part| part.map(|data| data.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Whole(whole) => whole.is_empty(),
            RequestBody::Arriving { stream, .. } => stream.lock().body_length() == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let length = match self {
            RequestBody::Whole(whole) => Some(whole.len() as u64),
            RequestBody::Arriving { stream, .. } => stream.lock().body_length(),
        };
        length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
