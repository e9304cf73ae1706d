//! The running requests of a legacy client. A client that disconnects has not
//! cancelled: its requests continue, and their messages go to a stream that the
//! client can resume.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::StatusCode;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::accept::Accept;
use super::follow::{Follow, StreamKind, takes_priming};
use super::post::McpRefusal;
use super::reply::{KEEP_ALIVE, accepted, events, json};
use crate::error::ApiError;
use gateway::{
    Caller, Client, ClientRequest, Gateway, MessageStream, Reply, ReplyItem, ReplyStream,
    RunningRequest, Session, StreamEvent,
};
use wire::{Era, RpcError, code, object};

/// The delay before a client gets the event id by which it can resume its
/// response: until then a lost connection loses the response.
const RESUMABLE_AFTER: Duration = Duration::from_millis(50);

/// The responses to the messages of one POST.
pub(super) struct PostAnswers {
    session: Arc<Session>,
    stream: Arc<MessageStream>,
    ending: Arc<StreamCloser>,
    expected: usize,
    attended: AttendedCall,
}

impl PostAnswers {
    pub(super) fn new(session: &Arc<Session>) -> PostAnswers {
        let stream = session.stream();
        let ending = StreamCloser {
            session: session.clone(),
            stream: stream.clone(),
        };
        PostAnswers {
            session: session.clone(),
            stream,
            ending: Arc::new(ending),
            expected: 0,
            attended: AttendedCall(None),
        }
    }

    pub(super) fn run(
        &mut self,
        gateway: &Arc<Gateway>,
        caller: &Caller,
        incoming: ClientRequest<'_>,
    ) -> Result<(), McpRefusal> {
        let (session, stream) = (&self.session, &self.stream);
        let ending = self.ending.clone();
        let work = work(gateway, caller, session, incoming, stream, ending)?;
        // The earlier requests of a batch continue by themselves.
        self.attended = AttendedCall(Some(work));
        self.expected += 1;
        Ok(())
    }

    /// JSON if the responses come first, and soon; otherwise a stream.
    pub(super) async fn response(self, accept: Accept, batch: bool) -> Response {
        let PostAnswers {
            session,
            stream,
            ending,
            expected,
            mut attended,
        } = self;
        // From here on only the running requests hold the stream open.
        drop(ending);
        let Some(mut reader) = stream.read() else {
            return accepted();
        };
        let primed = takes_priming(session.version);
        let patience = if primed { RESUMABLE_AFTER } else { KEEP_ALIVE };
        let deadline = Instant::now() + patience;
        let mut got = Vec::new();
        loop {
            let next = async {
                loop {
                    tokio::select! {
                        biased;
                        event = reader.next() => return event,
                        () = attended.end() => {}
                    }
                }
            };
            let next = if accept.events {
                timeout_at(deadline, next).await
            } else {
                Ok(next.await)
            };
            match next {
                Ok(Some(event)) if event.answer => {
                    if !batch && accept.json {
                        return json(StatusCode::OK, event.message);
                    }
                    got.push(event);
                    if got.len() == expected && accept.json {
                        return whole(&got);
                    }
                }
                // The client could get this message nowhere else.
                Ok(Some(event)) if !accept.events => session.send(event.message.into_bytes()),
                Ok(Some(event)) => {
                    got.push(event);
                    break;
                }
                // The client ended the session, or its key was revoked.
                Ok(None) if got.is_empty() && session.ended().is_cancelled() => {
                    return ApiError::not_found("the session has ended").into_response();
                }
                // Cancelled: there is nothing to send.
                Ok(None) if got.is_empty() && accept.events => {
                    return events(futures_util::stream::empty());
                }
                Ok(None) if got.is_empty() => return accepted(),
                Ok(None) if accept.json => return whole(&got),
                Ok(None) | Err(_) => break,
            }
        }
        session.announce(&stream);
        let mut follow = Follow::new(reader, StreamKind::Answer);
        if got.is_empty() || primed {
            // A client that reads only this event has seen no message.
            follow = follow.greet(session.version, 0);
        }
        for event in &got {
            follow = follow.again(event);
        }
        follow.response(())
    }
}

/// The responses to a batch.
fn whole(answers: &[StreamEvent]) -> Response {
    let mut body = vec![b'['];
    for (at, answer) in answers.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&answer.message.whole());
    }
    body.push(b']');
    // Each of them counts until all are dropped.
    let body = answers
        .iter()
        .fold(body.into(), |body, answer| answer.message.bind(body));
    json(StatusCode::OK, body)
}

/// The running work of a request, which nothing else ends.
type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call that the task of its HTTP request drives, so that a fast response
/// needs no task. If it is dropped before its end, it continues in a new task.
struct AttendedCall(Option<CallFuture>);

impl AttendedCall {
    /// Cancel-safe. Completes once.
    async fn end(&mut self) {
        match &mut self.0 {
            Some(work) => work.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}

impl Drop for AttendedCall {
    fn drop(&mut self) {
        // Without a runtime all work ends.
        if let Some(work) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

/// Closes a stream when its last writer is gone.
pub(super) struct StreamCloser {
    session: Arc<Session>,
    stream: Arc<MessageStream>,
}

impl Drop for StreamCloser {
    fn drop(&mut self) {
        self.stream.close();
        self.session.retire(&self.stream);
    }
}

/// Begins a request; its messages go to `stream`. Holds `hold` until it ends.
pub(super) fn work<H: Send + 'static>(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    session: &Arc<Session>,
    incoming: ClientRequest<'_>,
    stream: &Arc<MessageStream>,
    hold: H,
) -> Result<CallFuture, McpRefusal> {
    let Some(running) = session.begin(incoming.id) else {
        let busy = RpcError::new(code::INTERNAL, "too many requests run in this session");
        return Err(McpRefusal::with(StatusCode::TOO_MANY_REQUESTS, busy));
    };
    let client = client(session);
    let unanswered = PanicAnswer {
        id: running.id(),
        stream: stream.clone(),
        armed: true,
    };
    let replies = gateway.request(caller, &client, incoming);
    let work = async move {
        let _hold = hold;
        pump(replies, running, unanswered).await;
    };
    // A panic has already got its response where it happened.
    Ok(Box::pin(AssertUnwindSafe(work).catch_unwind().map(drop)))
}

/// A legacy client without a session.
pub(super) fn sessionless(version: &'static str, capabilities: Arc<RawValue>) -> Client {
    Client {
        era: Era::Legacy,
        version,
        capabilities,
        log_level: None,
        session: None,
    }
}

/// The client of a session.
pub(super) fn client(session: &Arc<Session>) -> Client {
    Client {
        log_level: session.level(),
        session: Some(session.clone()),
        ..sessionless(session.version, session.capabilities.clone())
    }
}

/// A source of messages for a stream.
trait Replies: Send {
    fn next(&mut self) -> impl Future<Output = ReplyItem> + Send;
}

impl Replies for ReplyStream {
    async fn next(&mut self) -> ReplyItem {
        ReplyStream::next(self).await
    }
}

async fn pump(mut replies: impl Replies, running: RunningRequest, mut unanswered: PanicAnswer) {
    let stream = unanswered.stream.clone();
    let work = async {
        loop {
            match replies.next().await {
                ReplyItem::Message(message) => stream.push(message, false).await,
                ReplyItem::Last(reply) => return stream.push(reply.body, true).await,
            }
        }
    };
    tokio::select! {
        biased;
        () = running.cancelled() => {}
        () = work => {}
    }
    unanswered.armed = false;
}

/// Sends an error response if the call of the request panics.
struct PanicAnswer {
    /// As the client wrote it.
    id: Arc<str>,
    stream: Arc<MessageStream>,
    armed: bool,
}

impl Drop for PanicAnswer {
    fn drop(&mut self) {
        if self.armed {
            let error = RpcError::new(code::INTERNAL, "internal error in Portway");
            if let Some(id) = object::parse_part(&self.id) {
                self.stream.answer(Reply::error(id, &error).body);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;
    use config::Secret;
    use gateway::{Scope, Seal, Sessions};

    /// Sends one message, then panics.
    struct Panics(bool);

    impl Replies for Panics {
        async fn next(&mut self) -> ReplyItem {
            assert!(!std::mem::replace(&mut self.0, true), "as told");
            ReplyItem::Message("{}".into())
        }
    }

    #[tokio::test]
    async fn a_panic_costs_one_answer() {
        let secret = Secret::new("a secret of thirty-two characters");
        let sessions = Sessions::new(Arc::new(Seal::new(&secret)));
        let caller = Caller {
            principal: "admin".into(),
            scope: Scope::Everything { filter: None },
        };
        let nothing = RawValue::from_string("{}".to_owned()).unwrap();
        let id = sessions.open(&caller, "2025-11-25", &nothing);
        let session = sessions.find(&caller, &id).unwrap();
        let stream = session.stream();
        let mut reader = stream.read().unwrap();
        let id = RawValue::from_string("7".to_owned()).unwrap();
        let running = session.begin(&id).unwrap();
        let unanswered = PanicAnswer {
            id: running.id(),
            stream,
            armed: true,
        };
        let task = tokio::spawn(pump(Panics(false), running, unanswered));
        assert!(task.await.unwrap_err().is_panic());
        assert!(!reader.next().await.unwrap().answer);
        let answer = reader.next().await.unwrap();
        let text = String::from_utf8(answer.message.whole().into_owned()).unwrap();
        assert!(answer.answer && text.contains(r#""id":7,"error":{"code":-32603"#));
    }
}
