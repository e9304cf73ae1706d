//! What is asked of a server, and what it says or asks meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::heartbeat::TimeoutPause;
use super::permit::OutgoingMessage;
use super::turn::Turn;
use super::{EventSender, Outbox, Permit};
use wire::RpcError;

/// One request to a server.
pub struct UpstreamCall<'a> {
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
    /// The name or URI it is about, as the server knows it; `None`: what the
    /// params say.
    pub name: Option<&'a str>,
    /// Restarted by progress; `None` for a listen, which has no end.
    pub limit: Option<Duration>,
    /// Ask the server for progress; it arrives on `events`.
    pub progress: bool,
    /// What comes before the answer, in order; a full queue drops.
    pub events: Option<EventSender>,
    /// What the caller can do for a modern server; `None`: what the
    /// connection declares.
    pub capabilities: Option<&'a RawValue>,
    /// From which level on a modern server may log into this request.
    pub log_level: Option<&'a str>,
    /// Looked at when the request is written.
    pub permit: Option<&'a Arc<dyn Permit>>,
    /// The client it is made for: nobody else may be asked because of it.
    pub whose: Option<&'a Arc<str>>,
}

impl<'a> UpstreamCall<'a> {
    pub fn new(method: &'a str, limit: Duration) -> UpstreamCall<'a> {
        UpstreamCall {
            method,
            params: None,
            name: None,
            limit: Some(limit),
            progress: false,
            events: None,
            capabilities: None,
            log_level: None,
            permit: None,
            whose: None,
        }
    }

    /// The param that names what it is about, and how the server knows that.
    pub(super) fn about(&self) -> Option<(&'static str, &'a str)> {
        wire::method::name_param(self.method).zip(self.name)
    }

    /// Made for a client, who can be asked something; a listen is not.
    pub(super) fn is_somebodys(&self) -> bool {
        self.events.is_some() && self.limit.is_some()
    }

    /// Whether a server can be thought to ask something because of it: what a
    /// client wants of it, for whom it can be asked or not.
    pub(super) fn may_ask(&self) -> bool {
        let asked_for = [
            "resources/subscribe",
            "resources/unsubscribe",
            "resources/read",
            "prompts/get",
            "tools/call",
        ];
        self.is_somebodys() || asked_for.contains(&self.method)
    }

    pub(super) fn is_listen(&self) -> bool {
        self.events.is_some() && self.limit.is_none()
    }

    pub fn params(mut self, params: Option<&'a RawValue>) -> UpstreamCall<'a> {
        self.params = params;
        self
    }
}

/// Something that belongs to one request and comes before its answer.
#[derive(Debug)]
pub enum CallEvent {
    Notification(Notification),
    Request(ServerRequest),
}

/// Something a server says that belongs to no request of ours.
#[derive(Debug)]
pub enum InboundMessage {
    Notification(Notification),
    Request(ServerRequest),
}

#[derive(Debug)]
pub struct Notification {
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

/// A request of a server to its client (legacy only). Unanswered, it is
/// refused when dropped: a server must never wait for ever.
pub struct ServerRequest {
    pub method: String,
    pub params: Option<Box<RawValue>>,
    id: Box<RawValue>,
    outbox: Option<Outbox>,
    /// Holds the time of the call it belongs to.
    pause: Option<TimeoutPause>,
    turn: Option<Arc<Turn>>,
    /// Says that the question is open, as long as it exists.
    _open: Option<watch::Receiver<()>>,
}

impl ServerRequest {
    pub(crate) fn new(
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        outbox: Outbox,
    ) -> ServerRequest {
        ServerRequest {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            id: id.to_owned(),
            outbox: Some(outbox),
            pause: None,
            turn: None,
            _open: None,
        }
    }

    pub(crate) fn open(mut self, open: watch::Receiver<()>) -> ServerRequest {
        self._open = Some(open);
        self
    }

    pub(crate) fn hold(&mut self, pause: TimeoutPause, turn: Option<Arc<Turn>>) {
        self.pause = Some(pause);
        self.turn = turn;
    }

    /// Its server's own.
    pub fn id(&self) -> &RawValue {
        &self.id
    }

    /// Its server has given it up, and wants no answer.
    pub fn forget(mut self) {
        self.outbox = None;
    }

    pub fn answer(mut self, answer: Result<Box<RawValue>, RpcError>) {
        match self.turn.take() {
            Some(turn) => turn.in_turn(move || self.send(answer)),
            None => self.send(answer),
        }
    }

    fn send(&mut self, answer: Result<Box<RawValue>, RpcError>) {
        let Some(outbox) = self.outbox.take() else {
            return;
        };
        let bytes = match answer {
            Ok(result) => wire::response(&self.id, &result),
            Err(error) => wire::error(Some(&self.id), &error),
        };
        let _ = outbox.try_send(OutgoingMessage::answer(bytes));
    }
}

impl Drop for ServerRequest {
    fn drop(&mut self) {
        // Never an answer in somebody's name: only that there is none.
        let refusal = match self.method.as_str() {
            "elicitation/create" => RawValue::from_string(r#"{"action":"cancel"}"#.into())
                .map_err(|error| RpcError::new(wire::code::INTERNAL, error.to_string())),
            "sampling/createMessage" => Err(RpcError::new(-1, "sampling was refused")),
            method => {
                let message = format!("{method} is not available from this client");
                Err(RpcError::new(wire::code::METHOD_NOT_FOUND, message))
            }
        };
        self.send(refusal);
    }
}

impl std::fmt::Debug for ServerRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerRequest({})", self.method)
    }
}
