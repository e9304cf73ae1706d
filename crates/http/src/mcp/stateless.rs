//! Answers to requests that belong to no session: those of modern clients, and
//! legacy ones without a session. The connection is all that such a client
//! has, so hanging up cancels the request.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::accept::Accept;
use super::reply::{self, KEEP_ALIVE, comment, events, json};
use gateway::{Reply, ReplyItem, ReplyStream};

/// JSON if the answer comes first; a stream as soon as anything comes before
/// it, or nothing for so long that the connection should be kept alive.
pub(super) async fn answer(
    accept: Accept,
    mut replies: ReplyStream,
    status: fn(&Reply) -> StatusCode,
) -> Response {
    let whole = |reply: Reply| match reply.shed {
        false => json(status(&reply), reply.body),
        true => {
            let later = [(RETRY_AFTER, HeaderValue::from_static("1"))];
            (later, json(StatusCode::SERVICE_UNAVAILABLE, reply.body)).into_response()
        }
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

/// The stream of one request. The client's hanging up drops it, and with it
/// the request.
struct Flowing {
    replies: Option<ReplyStream>,
    /// Nothing has come yet, and the client should know that we live.
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
