//! Requests to a server, and the messages it sends before its response.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::permit::OutgoingMessage;
use super::request_state::TimeoutPause;
use super::turn::Turn;
use super::{EventSender, Outbox, Permit};
use wire::RpcError;

/// One request to a server.
pub struct UpstreamCall<'a> {
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
    /// The target's name or URI, as the server knows it; `None`: the one in the
    /// params.
    pub name: Option<&'a str>,
    /// Restarted by progress; `None` for a listen, which has no limit.
    pub limit: Option<Duration>,
    /// Request progress notifications; they arrive on `events`.
    pub progress: bool,
    /// Events before the response, in order; a full queue drops.
    pub events: Option<EventSender>,
    /// The caller's capabilities for a modern server; `None`: those of the
    /// connection.
    pub capabilities: Option<&'a RawValue>,
    /// The minimum log level for a modern server during this request.
    pub log_level: Option<&'a str>,
    /// Checked when the request is written.
    pub permit: Option<&'a Arc<dyn Permit>>,
    /// The client that makes the call; a question it causes goes to no other.
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

    /// The param that names the target, and the target's name at the server.
    pub(super) fn about(&self) -> Option<(&'static str, &'a str)> {
        wire::method::name_param(self.method).zip(self.name)
    }

    /// Whether a client made the call and can be asked; false for a listen.
    pub(super) fn is_somebodys(&self) -> bool {
        self.events.is_some() && self.limit.is_some()
    }

    /// Whether the call can cause a question of the server: any client request,
    /// even if its client cannot be asked.
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

/// An event that belongs to one request and arrives before its response.
#[derive(Debug)]
pub enum CallEvent {
    Notification(Notification),
    Request(ServerRequest),
}

/// A server message that belongs to no request of Portway.
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

/// A request of a server to its client (legacy only). Dropping it unanswered
/// refuses it: a server must never wait for ever.
pub struct ServerRequest {
    pub method: String,
    pub params: Option<Box<RawValue>>,
    id: Box<RawValue>,
    outbox: Option<Outbox>,
    /// Pauses the timeout of the call it belongs to.
    pause: Option<TimeoutPause>,
    turn: Option<Arc<Turn>>,
    /// Marks the question as open, as long as it exists.
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

    /// The id that the server chose.
    pub fn id(&self) -> &RawValue {
        &self.id
    }

    /// Drops the request without a reply, because the server cancelled it.
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
            Ok(result) => wire::response(&self.id, result.get()),
            Err(error) => wire::error(Some(&self.id), &error),
        };
        let _ = outbox.try_send(OutgoingMessage::answer(bytes));
    }
}

impl Drop for ServerRequest {
    fn drop(&mut self) {
        // Never an answer in the name of a client: only that there is none.
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
