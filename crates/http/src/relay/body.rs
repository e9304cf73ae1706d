//! Bodies on their way back: passed on as they come, with a limit on how long
//! nothing may come.

use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

/// A live stream says so every few seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// One that has an end, and is not longer than `most`. One that breaks off is
/// broken off, so that nobody takes half of it for the whole.
pub(super) fn whole(body: Incoming, most: usize) -> Body {
    let body = Limited::new(body, most);
    Body::from_stream(stream::unfold(Some(body), |body| async {
        let mut body = body?;
        match next(&mut body).await? {
            Ok(bytes) => Some((Ok(bytes), Some(body))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

/// Events, until the service, the client or we ourselves have had enough.
pub(super) fn endless(body: Incoming, closing: CancellationToken) -> Body {
    Body::from_stream(stream::unfold(Some(body), move |body| {
        let closing = closing.clone();
        async move {
            let mut body = body?;
            let next = tokio::select! {
                biased;
                next = next(&mut body) => next?,
                () = closing.cancelled() => return None,
            };
            match next {
                Ok(bytes) => Some((Ok(bytes), Some(body))),
                Err(error) => Some((Err(error), None)),
            }
        }
    }))
}

async fn next<B>(body: &mut B) -> Option<Result<Bytes, BoxError>>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    loop {
        let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
            Ok(frame) => frame?,
            Err(_) => return Some(Err("the MCP service has fallen silent".into())),
        };
        match frame {
            Ok(frame) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Some(Ok(bytes)),
                // Trailers: nothing of the protocol is in them.
                _ => {}
            },
            Err(error) => return Some(Err(error.into())),
        }
    }
}
