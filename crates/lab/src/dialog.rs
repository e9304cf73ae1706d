//! One conversation with the server under test, at the message level: ids of our
//! choice, several requests at once, and a log of everything that comes back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::http::HttpChannel;
use crate::pipe::PipeChannel;
use wire::Era;
use wire::meta::{Envelope, PROGRESS_TOKEN, ServerParams};

/// Limits on logged messages, so that a flood costs no more.
const NOTES: usize = 4096;
const BYTES: usize = 16 << 20;
const ODD: usize = 32;

/// How one request ended.
#[derive(Clone, Debug)]
pub(crate) enum Reaction {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// No response within the limit.
    Silent(Duration),
    /// Our own request, unchanged.
    Echo,
    /// The connection or the process ended.
    Gone(String),
    /// An HTTP error without an MCP message.
    Refused {
        status: u16,
        text: String,
    },
}

impl Reaction {
    /// From a response.
    pub(crate) fn of(message: &Value) -> Reaction {
        match message.get("error") {
            Some(error) => Reaction::Error {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            },
            None => Reaction::Result(message["result"].clone()),
        }
    }

    pub(crate) fn result(&self) -> Option<&Value> {
        match self {
            Reaction::Result(result) => Some(result),
            _ => None,
        }
    }

    pub(crate) fn code(&self) -> Option<i64> {
        match self {
            Reaction::Error { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Words that fit after "it" or "answered with".
    pub(crate) fn in_words(&self) -> String {
        match self {
            Reaction::Result(_) => "a result".into(),
            Reaction::Error { code, message } => format!("error {code} ({message})"),
            Reaction::Silent(Duration::ZERO) => "no answer".into(),
            Reaction::Silent(limit) => {
                let seconds = (limit.as_secs_f64() * 10.0).round() / 10.0;
                format!("no answer within {seconds} s")
            }
            Reaction::Echo => "an echo: our own request came back".into(),
            Reaction::Gone(reason) => format!("no answer: {reason}"),
            Reaction::Refused { status, text } if text.is_empty() => format!("HTTP {status}"),
            Reaction::Refused { status, text } => format!("HTTP {status} ({text})"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TimedReaction {
    pub reaction: Reaction,
    pub took: Duration,
}

impl TimedReaction {
    pub(crate) fn silent(limit: Duration) -> TimedReaction {
        TimedReaction {
            reaction: Reaction::Silent(limit),
            took: limit,
        }
    }
}

/// A notification or a request from the server.
#[derive(Clone, Debug)]
pub(crate) struct LoggedMessage {
    pub at: Instant,
    pub method: String,
    pub params: Value,
}

/// Messages that are not a response to an open request.
#[derive(Default)]
pub(crate) struct MessageLog {
    pub notes: Vec<LoggedMessage>,
    pub asks: Vec<LoggedMessage>,
    /// Ids of no request of ours, or ids of another type.
    pub foreign: Vec<Value>,
    /// Ids with more than one response.
    pub twice: Vec<Value>,
    /// Of all notifications and requests.
    bytes: usize,
}

impl MessageLog {
    pub(crate) fn notification(&mut self, message: &Value) {
        if self.has_room(message) {
            push(&mut self.notes, NOTES, LoggedMessage::of(message));
        }
    }

    pub(crate) fn request(&mut self, message: &Value) {
        if self.has_room(message) {
            push(&mut self.asks, NOTES, LoggedMessage::of(message));
        }
    }

    /// Limits bytes too: a few large messages can also be a flood.
    fn has_room(&mut self, message: &Value) -> bool {
        let bytes = self.bytes.saturating_add(message.to_string().len());
        if bytes <= BYTES {
            self.bytes = bytes;
        }
        bytes <= BYTES
    }

    pub(crate) fn stray(&mut self, id: &Value) {
        push(&mut self.foreign, ODD, id.clone());
    }

    pub(crate) fn again(&mut self, id: &Value) {
        push(&mut self.twice, ODD, id.clone());
    }

    pub(crate) fn heard(&self, method: &str) -> bool {
        self.notes.iter().any(|note| note.method == method)
    }
}

impl LoggedMessage {
    fn of(message: &Value) -> LoggedMessage {
        LoggedMessage {
            at: Instant::now(),
            method: message["method"].as_str().unwrap_or_default().to_owned(),
            params: message["params"].clone(),
        }
    }
}

fn push<T>(list: &mut Vec<T>, limit: usize, one: T) {
    if list.len() < limit {
        list.push(one);
    }
}

/// Responds to a request of the server, as a client without a person does.
pub(crate) fn answer(request: &Value) -> Value {
    let (member, content) = match request["method"].as_str() {
        Some("ping") => ("result", json!({})),
        Some("roots/list") => ("result", json!({"roots": []})),
        Some("elicitation/create") => ("result", json!({"action": "cancel"})),
        Some("sampling/createMessage") => {
            let error = json!({"code": -1, "message": "nobody is here to allow it"});
            ("error", error)
        }
        _ => {
            let code = wire::code::METHOD_NOT_FOUND;
            (
                "error",
                json!({"code": code, "message": "Method not found"}),
            )
        }
    };
    json!({"jsonrpc": "2.0", "id": request["id"], member: content})
}

pub(crate) enum Channel {
    Pipe(Box<PipeChannel>),
    Http(Box<HttpChannel>),
}

/// A channel, and the form of the lab's requests on it.
pub(crate) struct Dialog {
    pub channel: Channel,
    pub era: Era,
    /// The capabilities that the lab announces as a client.
    pub capabilities: Arc<RawValue>,
    next: u64,
}

/// How the server reacted to a cancelled request.
pub(crate) enum CancelOutcome {
    /// The response came before the cancellation.
    TooLate,
    /// A response still came, this long after the cancellation.
    Answered(Reaction, Duration),
    Silent,
    /// Cancelled by closing its stream, after which no response can arrive.
    Closed,
}

impl Dialog {
    pub(crate) fn new(channel: Channel, capabilities: Arc<RawValue>) -> Dialog {
        Dialog {
            channel,
            era: Era::Legacy,
            capabilities,
            next: 0,
        }
    }

    pub(crate) fn log(&mut self) -> &mut MessageLog {
        match &mut self.channel {
            Channel::Pipe(pipe) => &mut pipe.log,
            Channel::Http(http) => http.log.get_mut(),
        }
    }

    /// A request with the next number.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.request_as(json!(self.next), method, params)
    }

    pub(crate) fn request_as(&self, id: Value, method: &str, params: Value) -> Value {
        let params = match self.era {
            Era::Modern => self.modern_params(&params).unwrap_or(params),
            Era::Legacy => params,
        };
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn modern_params(&self, params: &Value) -> Option<Value> {
        let client_info = to_raw_value(&client_info()).ok()?;
        let envelope = Envelope {
            version: wire::MODERN,
            client_info: Some(&client_info),
            capabilities: &self.capabilities,
            log_level: None,
        };
        let raw = to_raw_value(params).ok()?;
        let mut modern = String::new();
        let spelling = ServerParams {
            params: Some(&raw),
            envelope: Some(&envelope),
            progress_token: None,
            subject: None,
        };
        spelling.write(&mut modern).ok()?;
        let mut modern: Value = serde_json::from_str(&modern).ok()?;
        // The tokens of `upstream` are numbers; the lab also tries strings.
        if let Some(token) = params["_meta"].get(PROGRESS_TOKEN) {
            modern["_meta"][PROGRESS_TOKEN] = token.clone();
        }
        Some(modern)
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> TimedReaction {
        let request = self.request(method, params);
        let mut reactions = self.ask_all(&[request], limit).await;
        reactions.pop().unwrap_or(TimedReaction::silent(limit))
    }

    /// Sends all at once; returns the reactions in the order of the requests.
    pub(crate) async fn ask_all(
        &mut self,
        requests: &[Value],
        limit: Duration,
    ) -> Vec<TimedReaction> {
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.ask_all(requests, limit).await,
            Channel::Http(http) => http.ask_all(requests, self.era, limit).await,
        }
    }

    pub(crate) async fn notify(&mut self, method: &str) {
        let message = json!({"jsonrpc": "2.0", "method": method});
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.send(&message).await,
            Channel::Http(http) => http.notify(&message, self.era).await,
        }
    }

    /// Sends a request, cancels it after `after`, and waits `rest` for a
    /// response that should not come.
    pub(crate) async fn ask_and_cancel(
        &mut self,
        request: &Value,
        after: Duration,
        rest: Duration,
    ) -> CancelOutcome {
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.ask_and_cancel(request, after, rest).await,
            Channel::Http(http) => http.ask_and_cancel(request, self.era, after, rest).await,
        }
    }

    /// Reads and logs messages for a while.
    pub(crate) async fn listen(&mut self, time: Duration) {
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.listen(time).await,
            Channel::Http(_) => tokio::time::sleep(time).await,
        }
    }
}

pub(crate) fn cancellation(id: &Value) -> Value {
    let params = json!({"requestId": id, "reason": "trying out cancellation"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

/// The name and version that the lab sends as a client.
pub(crate) fn client_info() -> Value {
    json!({"name": "portway-lab", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_flood_of_large_notes_costs_no_more_than_one_of_small_ones() {
        let mut log = MessageLog::default();
        let large = json!({"method": "a", "params": {"text": "x".repeat(BYTES / 4)}});
        for _ in 0..3 {
            log.notification(&large);
            log.request(&large);
        }
        assert_eq!(log.notes.len() + log.asks.len(), 3);
        log.notification(&json!({"method": "b"}));
        assert!(log.heard("b"));
    }
}
