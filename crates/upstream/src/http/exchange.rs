//! One request in flight, and the messages on its own stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;

use super::{ExchangeResult, HttpShared};
use crate::pipe::CANCELLED;
use crate::reply::{ExchangeFailure, HttpReply};
use crate::{
    CallEvent, EventSender, InboundMessage, LogStream, Notification, Permit, ServerRequest,
};
use wire::{Era, Message, Outcome, Payload, message, meta};

/// After this many messages that do not belong on a stream, the stream is
/// closed.
const VIOLATIONS: u32 = 100;

pub(super) struct HttpExchange<'a> {
    shared: &'a HttpShared,
    era: Era,
    id: u64,
    events: Option<EventSender>,
    violations: AtomicU32,
    /// The permit of the request itself.
    pub permit: Option<&'a Arc<dyn Permit>>,
}

impl<'a> HttpExchange<'a> {
    pub(super) fn new(
        shared: &'a HttpShared,
        era: Era,
        id: u64,
        events: Option<EventSender>,
    ) -> HttpExchange<'a> {
        HttpExchange {
            shared,
            era,
            id,
            events,
            violations: AtomicU32::new(0),
            permit: None,
        }
    }

    pub(super) fn permit(mut self, permit: Option<&'a Arc<dyn Permit>>) -> HttpExchange<'a> {
        self.permit = permit;
        self
    }

    /// The result in a response that is not a stream.
    pub(super) fn only(&self, reply: HttpReply) -> ExchangeResult {
        let from = &self.shared.endpoint;
        let what = match reply {
            HttpReply::Message(body) => match self.take(&body) {
                Some(found) => return found,
                None => "answered with a message that is not the answer".to_owned(),
            },
            HttpReply::Nothing(status) => format!("answered {status} and nothing more"),
            HttpReply::Stream(_) => "answered with a stream".to_owned(),
        };
        Err(ExchangeFailure::Odd(format!("{from} {what}")))
    }

    /// Takes one message of this request's stream; the last is its response.
    pub(super) fn take(&self, bytes: &Bytes) -> Option<ExchangeResult> {
        // Revision 2025-03-26 lets a server send several messages as a batch.
        if message::is_batch(bytes) {
            let Ok(messages) = message::parse_batch(bytes) else {
                return self.violation("a batch that cannot be read");
            };
            let found = messages
                .iter()
                .filter_map(|one| self.one(&bytes.slice_ref(one.get().as_bytes())));
            return found.last();
        }
        self.one(bytes)
    }

    fn one(&self, bytes: &Bytes) -> Option<ExchangeResult> {
        match wire::parse_upstream(bytes) {
            Ok(Message::Response { id, outcome }) => self.response(bytes, id, outcome),
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, params);
                None
            }
            Ok(Message::Request { id, method, params }) => self.request(id.raw(), &method, params),
            Err(bad) if bad.deep_answer().is_some_and(|id| self.is_own(id)) => Some(Err(
                ExchangeFailure::Odd(format!("the answer is {}", bad.fault)),
            )),
            Err(reason) => self.violation(&format!("not a message ({reason})")),
        }
    }

    fn response(
        &self,
        bytes: &Bytes,
        id: Option<&RawValue>,
        outcome: Outcome<'_>,
    ) -> Option<ExchangeResult> {
        let ours = id.is_some_and(|id| self.is_own(id));
        match outcome {
            Outcome::Result(result) if ours => Some(Ok(Payload::of(bytes, result))),
            // No id: the server could not read the request; the error says why.
            Outcome::Error(error) if ours || id.is_none() => Some(Err(ExchangeFailure::Rpc {
                status: StatusCode::OK,
                error,
            })),
            _ => self.violation("an answer to another request"),
        }
    }

    fn is_own(&self, id: &RawValue) -> bool {
        id.get().parse() == Ok(self.id)
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let receiver = &self.shared.receiver;
        let notification = Notification {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        };
        if method == "notifications/progress" {
            // By its token: a careless server may mix up its streams.
            let token = meta::progress(params).map(|progress| progress.token);
            if let Some(id) = token.and_then(|token| token.get().parse().ok()) {
                receiver
                    .pending
                    .event(id, CallEvent::Notification(notification));
            }
            return;
        }
        if method == CANCELLED && self.era == Era::Legacy {
            return receiver.cancelled(params);
        }
        // A legacy server's notification on any open stream is for all clients,
        // except for its log.
        let of_this_call = self.era == Era::Modern || method == "notifications/message";
        match &self.events {
            Some(events) if of_this_call => {
                events.offer(CallEvent::Notification(notification));
            }
            _ => {
                let _ = receiver
                    .inbound
                    .try_send(InboundMessage::Notification(notification));
            }
        }
    }

    fn request(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ExchangeResult> {
        if self.era == Era::Modern {
            return self.violation("a request, which a modern server must not send");
        }
        let receiver = &self.shared.receiver;
        if method == "ping" {
            let pong = wire::response(id, "{}");
            let _ = receiver.outbox.try_send(pong.into());
            return None;
        }
        let request = ServerRequest::new(id, method, params, receiver.outbox.clone());
        // A full queue drops the request, which refuses it.
        if self.events.is_some() {
            receiver.pending.event(self.id, CallEvent::Request(request));
        } else {
            let _ = receiver.inbound.try_send(InboundMessage::Request(request));
        }
        None
    }

    fn violation(&self, what: &str) -> Option<ExchangeResult> {
        (self.shared.receiver.log)(LogStream::Protocol, &format!("{what}; ignored"));
        let count = self.violations.fetch_add(1, Ordering::Relaxed) + 1;
        (count >= VIOLATIONS).then(|| {
            Err(ExchangeFailure::Odd(format!(
                "{}: {count} messages in one answer that MCP does not allow there",
                self.shared.endpoint
            )))
        })
    }
}
