//! One ordered channel for all messages: stdio, and the old HTTP+SSE. Responses
//! are matched by id, progress by token (which is the id).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::asking::QuestionHistory;
use super::attribution::Attribution;
use super::peer::RequestEncoder;
use super::pending::{PendingRequest, PendingRequests, RequestResult};
use super::permit::OutgoingMessage;
use super::turn::{Turn, Turns};
use super::{
    CallEvent, ConnectOptions, InboundMessage, LogSink, LogStream, Notification, Outbox,
    ServerRequest, UpstreamCall, UpstreamError,
};
use wire::message::Malformed;
use wire::{Message, Outcome, Payload, RpcError, message, meta, object};

/// After this many invalid lines in a row, the peer does not speak MCP. In a
/// row: a server may print a log line now and then.
const NOISE_LIMIT: u64 = 100;

/// Enough to recognize the text; the log shortens it after redaction.
const NOISE_SHOWN: usize = 16 << 10;

pub(super) const CANCELLED: &str = "notifications/cancelled";

/// The sending half, and the table of pending requests.
#[derive(Clone)]
pub(crate) struct Pipe {
    outbox: Outbox,
    pending: Arc<PendingRequests>,
    asking: Arc<QuestionHistory>,
    questions: Arc<Attribution>,
    turns: Arc<Turns>,
}

/// The receiving half: handles each message as it arrives.
pub(crate) struct MessageReceiver {
    pub outbox: Outbox,
    pub pending: Arc<PendingRequests>,
    pub inbound: mpsc::Sender<InboundMessage>,
    pub log: LogSink,
    noise: AtomicU64,
    questions: Arc<Attribution>,
}

impl Pipe {
    pub(crate) fn new(
        outbox: Outbox,
        inbound: mpsc::Sender<InboundMessage>,
        options: &ConnectOptions,
    ) -> (Pipe, MessageReceiver) {
        let pending = PendingRequests::new();
        let questions = Attribution::new(&pending, &options.asking, &options.log);
        let receiver = MessageReceiver {
            outbox: outbox.clone(),
            pending: pending.clone(),
            inbound,
            log: options.log.clone(),
            noise: AtomicU64::new(0),
            questions: questions.clone(),
        };
        let pipe = Pipe {
            outbox,
            pending,
            asking: options.asking.clone(),
            questions,
            turns: Arc::default(),
        };
        (pipe, receiver)
    }

    pub(crate) fn pending(&self) -> &Arc<PendingRequests> {
        &self.pending
    }

    /// The attribution of the server's questions.
    pub(crate) fn questions(&self) -> &Attribution {
        &self.questions
    }

    pub(crate) async fn send(&self, message: OutgoingMessage) -> Result<(), UpstreamError> {
        self.outbox.send(message).await
    }

    pub(crate) async fn request(
        &self,
        spelling: &RequestEncoder,
        call: UpstreamCall<'_>,
    ) -> RequestResult {
        if call.is_somebodys() && self.asking.seen() {
            return Box::pin(self.request_in_turn(spelling, call)).await;
        }
        self.request_now(spelling, call, None).await
    }

    /// Sends a request to a server that asks its client questions.
    async fn request_in_turn(
        &self,
        spelling: &RequestEncoder,
        call: UpstreamCall<'_>,
    ) -> RequestResult {
        let start = Instant::now();
        let turn = Arc::new(self.turns.turn(&call, &self.asking));
        turn.take(&self.asking).await;
        let _ended = turn.end_with_call();
        let call = UpstreamCall {
            limit: call
                .limit
                .map(|limit| limit.saturating_sub(start.elapsed())),
            ..call
        };
        let answer = self.request_now(spelling, call, Some(&turn)).await;
        if answer.is_ok() && turn.unasked() {
            self.asking.learn(&turn.subject, false);
        }
        answer
    }

    async fn request_now(
        &self,
        spelling: &RequestEncoder,
        call: UpstreamCall<'_>,
        turn: Option<&Arc<Turn>>,
    ) -> RequestResult {
        let id = self.pending.next_id();
        let message = spelling.request(&call, id)?;
        let mut ticket = self.pending.expect_in_turn(id, &call, turn.cloned())?;
        let mut cancel = CancelOnDrop {
            outbox: &self.outbox,
            pending: &self.pending,
            id,
            // The handshake must not be cancelled; and a server that did not
            // understand the probe does not need its cancellation.
            armed: !matches!(call.method, "initialize" | "server/discover"),
        };
        let line = OutgoingMessage::new(message.into(), call.permit, &self.pending, id);
        let answer = self.exchange(line, &mut ticket, call.limit).await;
        // Only a caller that gave up cancels; a response of any kind ends the call.
        cancel.armed &= matches!(answer, Err(UpstreamError::Timeout { .. }));
        answer
    }

    async fn exchange(
        &self,
        message: OutgoingMessage,
        ticket: &mut PendingRequest,
        limit: Option<Duration>,
    ) -> RequestResult {
        // A call that is alone need not wait for others to be written with it.
        let sent = match ticket.alone {
            true => self.outbox.try_send(message),
            false => self.outbox.queue(message),
        };
        match (sent, limit) {
            (Ok(()), _) => {}
            // A server that does not read its stdin fills the queue: that wait
            // counts against the limit too.
            (Err(TrySendError::Full(message)), Some(limit)) => {
                tokio::time::timeout(limit, self.send(message))
                    .await
                    .unwrap_or(Err(UpstreamError::Timeout { limit }))?;
            }
            (Err(error), _) => self.send(error.into_inner()).await?,
        }
        ticket.wait().await
    }
}

/// Whether a queue takes a notification: its last places are reserved for those
/// that must not be lost in a flood of others.
fn has_room<T>(method: &str, queue: &mpsc::Sender<T>) -> bool {
    must_not_be_lost(method) || queue.capacity() > queue.max_capacity() / 4
}

pub(super) fn must_not_be_lost(method: &str) -> bool {
    method.ends_with("/list_changed")
}

/// The listen that a notification belongs to.
fn subscription(params: Option<&RawValue>) -> Option<u64> {
    let id = meta::meta_member(params?, meta::SUBSCRIPTION_ID)?;
    id.get().parse().ok()
}

/// The notification that request `id` is cancelled.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let params = format!(r#"{{"requestId":{id},"reason":"the caller gave up"}}"#);
    let params = RawValue::from_string(params).ok();
    wire::notification(CANCELLED, params.as_deref())
}

pub(crate) struct CancelOnDrop<'a> {
    pub outbox: &'a Outbox,
    pub pending: &'a PendingRequests,
    pub id: u64,
    pub armed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.pending.give_up(self.id);
            let _ = self.outbox.try_send(cancelled(self.id).into());
        }
    }
}

impl MessageReceiver {
    /// Handles one message. An error ends the connection.
    pub(crate) fn receive(&self, bytes: &Bytes) -> Result<(), UpstreamError> {
        // Revision 2025-03-26 lets a server send several messages as a batch.
        if message::is_batch(bytes) {
            return match message::parse_batch(bytes) {
                Ok(all) => all
                    .iter()
                    .try_for_each(|one| self.one(&bytes.slice_ref(one.get().as_bytes()))),
                Err(reason) => self.noise(bytes, &reason.to_string()),
            };
        }
        self.one(bytes)
    }

    fn one(&self, bytes: &Bytes) -> Result<(), UpstreamError> {
        let message = match wire::parse_upstream(bytes) {
            Ok(message) => message,
            Err(bad) if self.too_deep(&bad) => return Ok(()),
            Err(reason) => return self.noise(bytes, &reason.to_string()),
        };
        self.noise.store(0, Ordering::Relaxed);
        match message {
            Message::Response { id, outcome } => self.response(bytes, id, outcome),
            Message::Notification { method, params } => self.notification(&method, params),
            Message::Request { id, method, params } => self.request(id.raw(), &method, params),
        }
        Ok(())
    }

    /// A message nested too deep fails the request it belongs to, and nothing
    /// else.
    fn too_deep(&self, bad: &Malformed) -> bool {
        if let Some(id) = bad.deep_answer() {
            let error = UpstreamError::Protocol(format!("the answer is {}", bad.fault));
            if let Ok(id) = id.get().parse() {
                self.pending.resolve(id, Err(error));
            }
        } else if let Some(id) = bad.deep_request() {
            let refusal = wire::error(Some(id), &RpcError::from(bad));
            let _ = self.outbox.try_send(OutgoingMessage::answer(refusal));
        } else {
            return false;
        }
        let text = format!("a message is {}", bad.fault);
        (self.log)(LogStream::Protocol, &text);
        true
    }

    fn noise(&self, bytes: &[u8], reason: &str) -> Result<(), UpstreamError> {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(NOISE_SHOWN)]);
        (self.log)(
            LogStream::Protocol,
            &format!("not a message ({reason}): {shown}"),
        );
        if self.noise.fetch_add(1, Ordering::Relaxed) + 1 >= NOISE_LIMIT {
            return Err(UpstreamError::Protocol(format!(
                "{NOISE_LIMIT} lines in a row that are not MCP messages; \
                 a stdio server must write its log to stderr"
            )));
        }
        Ok(())
    }

    fn response(&self, bytes: &Bytes, id: Option<&RawValue>, outcome: Outcome<'_>) {
        let answer = match outcome {
            Outcome::Result(result) => Ok(Payload::of(bytes, result)),
            Outcome::Error(error) => Err(UpstreamError::Rpc(error)),
        };
        let Some(number) = id.and_then(|id| id.get().parse().ok()) else {
            let text = match answer {
                Err(UpstreamError::Rpc(error)) => error.message,
                _ => "no id".into(),
            };
            (self.log)(
                LogStream::Protocol,
                &format!("answer to nothing we asked: {text}"),
            );
            return;
        };
        // A late response to a cancelled request ends here too, without a log line.
        self.pending.resolve(number, answer);
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let notification = || Notification {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        };
        match method {
            "notifications/progress" => {
                let token = meta::progress(params).map(|progress| progress.token);
                if let Some(id) = token.and_then(|token| token.get().parse().ok()) {
                    let event = CallEvent::Notification(notification());
                    self.pending.event(id, event);
                }
            }
            // A notification of a listen carries the id of the listen.
            _ if let Some(id) = subscription(params) => {
                self.pending
                    .note(id, CallEvent::Notification(notification()));
            }
            CANCELLED => self.cancelled(params),
            // The only call in flight caused it; with several it is unclear.
            "notifications/message" if let Some(id) = self.pending.sole_call() => {
                self.pending
                    .note(id, CallEvent::Notification(notification()));
            }
            // Full: the owner is far behind. A list change is in its queue by
            // then, in the part that is reserved for it.
            _ if has_room(method, &self.inbound) => {
                let _ = self
                    .inbound
                    .try_send(InboundMessage::Notification(notification()));
            }
            _ => {}
        }
    }

    /// With it a modern server ends a listen. A legacy server cancels one of
    /// its own requests: those have ids of their own, which are not ids of our
    /// requests.
    pub(crate) fn cancelled(&self, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        let id = object::member(params, "requestId");
        if let Some(id) = id {
            self.questions.withdrawn(id);
        }
        let error = RpcError::new(wire::code::INTERNAL, "ended by the server");
        let ended = id
            .and_then(|id| id.get().parse().ok())
            .is_some_and(|id| self.pending.end_listen(id, UpstreamError::Rpc(error)));
        if !ended {
            self.pending.note_all(|| {
                CallEvent::Notification(Notification {
                    method: CANCELLED.to_owned(),
                    params: Some(params.to_owned()),
                })
            });
        }
    }

    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        if method == "ping" {
            let pong = wire::response(id, "{}");
            let _ = self.outbox.try_send(OutgoingMessage::answer(pong));
            return;
        }
        let request = ServerRequest::new(id, method, params, self.outbox.clone());
        // If the queue is full, dropping the request refuses it.
        if let Some(request) = self.questions.take(request) {
            let _ = self.inbound.try_send(InboundMessage::Request(request));
        }
    }
}
