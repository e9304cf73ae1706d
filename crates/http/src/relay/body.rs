//! Response bodies of the service: relayed as they arrive, with a limit on
//! silence.

use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio_util::sync::CancellationToken;
use upstream::{BodyError, ResponseBody};

/// A live stream sends a keep-alive every few seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// A body that has an end, and is not longer than `most`. If it is interrupted,
/// so is ours, so that no client takes half of it for the whole.
pub(super) fn whole(body: ResponseBody, most: usize) -> Body {
    Body::from_stream(stream::unfold(Some((body, most)), |body| async {
        let (mut body, left) = body?;
        Some(match next(&mut body).await? {
            Ok(bytes) if bytes.len() > left => (Err(BodyError::TooLarge.into()), None),
            Ok(bytes) => {
                let left = left - bytes.len();
                (Ok(bytes), Some((body, left)))
            }
            Err(error) => (Err(error), None),
        })
    }))
}

/// Events, until the service or the client disconnects, or we shut down.
pub(super) fn endless(body: ResponseBody, closing: CancellationToken) -> Body {
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

async fn next(body: &mut ResponseBody) -> Option<Result<Bytes, BoxError>> {
    match tokio::time::timeout(SILENCE, body.chunk()).await {
        Ok(chunk) => chunk.map_err(Into::into).transpose(),
        Err(_) => Some(Err("the MCP service has fallen silent".into())),
    }
}
