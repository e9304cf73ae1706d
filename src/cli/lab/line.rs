//! One conversation with the server under test, as raw as it gets: ids of our
//! choice, several questions at once, and everything noted that comes back.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::pipe::Pipe;
use super::web::Web;
use wire::Era;

/// Kept of what nobody asked for; a flood costs no more.
const NOTES: usize = 4096;
const BYTES: usize = 16 << 20;
const ODD: usize = 32;

pub(super) struct Question {
    pub id: Value,
    pub method: &'static str,
    pub params: Value,
}

/// How one question ended.
#[derive(Clone, Debug)]
pub(super) enum Said {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// Nothing within the limit.
    Silent(Duration),
    /// Our own request, word for word.
    Echo,
    /// The connection or the process ended.
    Gone(String),
    /// HTTP said no, without a message of MCP.
    Refused {
        status: u16,
        text: String,
    },
}

impl Said {
    /// From a response.
    pub(super) fn of(message: &Value) -> Said {
        match message.get("error") {
            Some(error) => Said::Error {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            },
            None => Said::Result(message["result"].clone()),
        }
    }

    pub(super) fn result(&self) -> Option<&Value> {
        match self {
            Said::Result(result) => Some(result),
            _ => None,
        }
    }

    pub(super) fn code(&self) -> Option<i64> {
        match self {
            Said::Error { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Behind "it" or "answered with".
    pub(super) fn in_words(&self) -> String {
        match self {
            Said::Result(_) => "a result".into(),
            Said::Error { code, message } => format!("error {code} ({message})"),
            Said::Silent(Duration::ZERO) => "no answer".into(),
            Said::Silent(limit) => {
                let seconds = (limit.as_secs_f64() * 10.0).round() / 10.0;
                format!("no answer within {seconds} s")
            }
            Said::Echo => "an echo: our own request came back".into(),
            Said::Gone(reason) => format!("no answer: {reason}"),
            Said::Refused { status, text } if text.is_empty() => format!("HTTP {status}"),
            Said::Refused { status, text } => format!("HTTP {status} ({text})"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub said: Said,
    pub took: Duration,
}

/// A notification, or a request of the server.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub at: Instant,
    pub method: String,
    pub params: Value,
}

/// What came that is no answer to an open question.
#[derive(Default)]
pub(super) struct Log {
    pub notes: Vec<Note>,
    pub asks: Vec<Note>,
    /// Ids that nobody asked with, or not of that type.
    pub foreign: Vec<Value>,
    /// Ids that were answered more than once.
    pub twice: Vec<Value>,
    /// Of all notes and requests.
    bytes: usize,
}

impl Log {
    pub(super) fn note(&mut self, message: &Value) {
        if self.has_room(message) {
            push(&mut self.notes, NOTES, Note::of(message));
        }
    }

    pub(super) fn ask(&mut self, message: &Value) {
        if self.has_room(message) {
            push(&mut self.asks, NOTES, Note::of(message));
        }
    }

    /// A few large ones can be a flood too.
    fn has_room(&mut self, message: &Value) -> bool {
        let bytes = self.bytes.saturating_add(message.to_string().len());
        if bytes <= BYTES {
            self.bytes = bytes;
        }
        bytes <= BYTES
    }

    pub(super) fn stray(&mut self, id: &Value) {
        push(&mut self.foreign, ODD, id.clone());
    }

    pub(super) fn again(&mut self, id: &Value) {
        push(&mut self.twice, ODD, id.clone());
    }

    pub(super) fn heard(&self, method: &str) -> bool {
        self.notes.iter().any(|note| note.method == method)
    }
}

impl Note {
    fn of(message: &Value) -> Note {
        Note {
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

/// What a server asks of its client, answered as a client without a person.
pub(super) fn answer(request: &Value) -> Value {
    let id = &request["id"];
    let result = match request["method"].as_str() {
        Some("ping") => json!({}),
        Some("roots/list") => json!({"roots": []}),
        Some("elicitation/create") => json!({"action": "cancel"}),
        Some("sampling/createMessage") => {
            let error = json!({"code": -1, "message": "nobody is here to allow it"});
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
        _ => {
            let error =
                json!({"code": wire::code::METHOD_NOT_FOUND, "message": "Method not found"});
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) enum Channel {
    Pipe(Box<Pipe>),
    Web(Box<Web>),
}

/// A channel, and how to spell on it.
pub(super) struct Line {
    pub channel: Channel,
    pub era: Era,
    next: u64,
}

/// What became of a question that was taken back.
pub(super) enum Cancelled {
    /// It was answered before.
    TooLate,
    /// Still answered, so long after the cancellation.
    Answered(Said, Duration),
    Silent,
    /// By closing its stream, after which nothing can be heard.
    Closed,
}

impl Line {
    pub(super) fn new(channel: Channel) -> Line {
        Line {
            channel,
            era: Era::Legacy,
            next: 0,
        }
    }

    pub(super) fn log(&mut self) -> &mut Log {
        match &mut self.channel {
            Channel::Pipe(pipe) => &mut pipe.log,
            Channel::Web(web) => web.log.get_mut(),
        }
    }

    /// A question with the next number.
    pub(super) fn question(&mut self, method: &'static str, params: Value) -> Question {
        self.next += 1;
        self.question_as(json!(self.next), method, params)
    }

    pub(super) fn question_as(
        &self,
        id: Value,
        method: &'static str,
        mut params: Value,
    ) -> Question {
        if self.era == Era::Modern {
            envelope(&mut params);
        }
        Question { id, method, params }
    }

    pub(super) async fn ask(
        &mut self,
        method: &'static str,
        params: Value,
        limit: Duration,
    ) -> Reply {
        let question = self.question(method, params);
        let mut replies = self.ask_all(&[question], limit).await;
        replies.pop().unwrap_or(Reply {
            said: Said::Silent(limit),
            took: limit,
        })
    }

    /// All at once; the replies in the order of the questions.
    pub(super) async fn ask_all(&mut self, questions: &[Question], limit: Duration) -> Vec<Reply> {
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.ask_all(questions, limit).await,
            Channel::Web(web) => web.ask_all(questions, self.era, limit).await,
        }
    }

    pub(super) async fn notify(&mut self, method: &'static str, params: Value) {
        let message = match params.is_null() {
            true => json!({"jsonrpc": "2.0", "method": method}),
            false => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        };
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.send(&message).await,
            Channel::Web(web) => web.tell(&message, self.era).await,
        }
    }

    /// Asks, waits `after`, takes it back, and waits `rest` for an answer all
    /// the same.
    pub(super) async fn ask_and_cancel(
        &mut self,
        question: &Question,
        after: Duration,
        rest: Duration,
    ) -> Cancelled {
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.ask_and_cancel(question, after, rest).await,
            Channel::Web(web) => web.ask_and_cancel(question, self.era, after, rest).await,
        }
    }

    /// Reads along for a while.
    pub(super) async fn listen(&mut self, time: Duration) {
        match &mut self.channel {
            Channel::Pipe(pipe) => pipe.listen(time).await,
            Channel::Web(_) => tokio::time::sleep(time).await,
        }
    }
}

pub(super) fn cancellation(id: &Value) -> Value {
    let params = json!({"requestId": id, "reason": "trying out cancellation"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

/// What every modern request says of itself.
pub(super) fn envelope(params: &mut Value) {
    if !params.is_object() {
        *params = json!({});
    }
    let meta = &mut params["_meta"];
    if !meta.is_object() {
        *meta = json!({});
    }
    meta["io.modelcontextprotocol/protocolVersion"] = json!(wire::MODERN);
    meta["io.modelcontextprotocol/clientInfo"] = client_info();
    meta["io.modelcontextprotocol/clientCapabilities"] = abilities();
}

pub(super) fn client_info() -> Value {
    json!({"name": "portway-lab", "version": env!("CARGO_PKG_VERSION")})
}

/// All that Portway can pass on: a server that would ask shall do so here.
pub(super) fn abilities() -> Value {
    serde_json::from_str(gateway::everything().get()).unwrap_or_else(|_| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_flood_of_large_notes_costs_no_more_than_one_of_small_ones() {
        let mut log = Log::default();
        let large = json!({"method": "a", "params": {"text": "x".repeat(BYTES / 4)}});
        for _ in 0..3 {
            log.note(&large);
            log.ask(&large);
        }
        assert_eq!(log.notes.len() + log.asks.len(), 3);
        log.note(&json!({"method": "b"}));
        assert!(log.heard("b"));
    }
}
