//! Responses to requests without a session: those of modern clients, and legacy
//! ones without a session. Such a client has only the connection, so a
//! disconnect cancels the request.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::accept::Accept;
use super::reply::{self, KEEP_ALIVE, comment, events, json};
use gateway::{Reply, ReplyItem, ReplyStream};

/// JSON if the response comes first; a stream as soon as another message comes
/// before it, or if the connection needs a keep-alive.
pub(super) async fn answer(
    accept: Accept,
    mut replies: ReplyStream,
    status: fn(&Reply) -> StatusCode,
) -> Response {
    let whole = |reply: Reply| {
        if !reply.shed {
            return json(status(&reply), reply.body);
        }
        let later = [(RETRY_AFTER, HeaderValue::from_static("1"))];
        (later, json(StatusCode::SERVICE_UNAVAILABLE, reply.body)).into_response()
    };
    if !accept.events {
        return whole(replies.last().await);
    }
    let first = timeout_at(Instant::now() + KEEP_ALIVE, replies.next()).await;
    match first {
        Ok(ReplyItem::Last(reply)) if accept.json => whole(reply),
        first => {
            let flow = Flowing {
                replies: Some(replies),
                quiet: first.is_err(),
                queued: first.ok(),
            };
            events(stream::unfold(flow, |mut flow| async move {
                let next = flow.next().await?;
                Some((next, flow))
            }))
        }
    }
}

/// The stream of one request. A disconnect of the client drops it, and with it
/// the request.
struct Flowing {
    replies: Option<ReplyStream>,
    /// No message has come yet, and the client needs a keep-alive.
    quiet: bool,
    queued: Option<ReplyItem>,
}

impl Flowing {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.quiet) {
            return Some(comment());
        }
        let item = match self.queued.take() {
            Some(item) => item,
            None => {
                let replies = self.replies.as_mut()?;
                tokio::select! {
                    biased;
                    item = replies.next() => item,
                    () = tokio::time::sleep(KEEP_ALIVE) => return Some(comment()),
                }
            }
        };
        Some(match item {
            ReplyItem::Message(message) => {
                let event = reply::message(None, &message.into());
                match &self.replies {
                    Some(replies) => replies.count(event),
                    None => event,
                }
            }
            ReplyItem::Last(reply) => {
                self.replies = None;
                reply::message(None, &reply.body)
            }
        })
    }
}
