//! The answer to one request of a client: messages in their order, then the
//! reply.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::body::{MessageBody, PreparedResult};
use super::legacy::LegacyCall;
use super::listening::ListenStream;
use super::modern::ModernCall;
use store::memory::{Account, Charge, Full, UNCOUNTED};
use wire::object::member;
use wire::{Payload, RpcError, code};

/// A received result of this size goes out in the bytes it came in. These keep
/// the buffer of their connection, which is larger than a smaller result.
const UNCOPIED: usize = 32 << 10;

/// A whole JSON-RPC response, spelled for its client.
#[derive(Debug)]
pub struct Reply {
    pub body: MessageBody,
    /// The code of an error: some codes have an HTTP status of their own.
    pub error: Option<i64>,
    /// Set when the error is the server's own, passed on.
    pub relayed: bool,
    /// Set when the call timed out.
    pub late: bool,
    /// Set when the answer was dropped for want of memory; the client may try
    /// again.
    pub shed: bool,
}

impl Reply {
    pub(super) fn new(body: MessageBody) -> Reply {
        Reply {
            body,
            error: None,
            relayed: false,
            late: false,
            shed: false,
        }
    }

    pub(super) fn result(id: &RawValue, result: &RawValue) -> Reply {
        Reply::new(wire::response(id, result.get()).into())
    }

    /// A result that all clients share; its bytes are not copied.
    pub(super) fn prepared(id: &RawValue, result: PreparedResult) -> Reply {
        Reply::new(MessageBody::around(wire::response_start(id), result))
    }

    /// A server's result as it was received; `json` is its text.
    pub(super) fn received(id: &RawValue, result: &Payload, json: &str) -> Reply {
        if json.len() < UNCOPIED || !wire::is_one_line(json) {
            return Reply::new(wire::response(id, json).into());
        }
        let start = wire::response_start(id);
        Reply::new(MessageBody::around_payload(start, result.clone()))
    }

    pub fn error(id: &RawValue, error: &RpcError) -> Reply {
        Reply {
            error: Some(error.code),
            ..Reply::new(wire::error(Some(id), error).into())
        }
    }

    /// Charges the answer to its client's share of memory; an error takes its
    /// place where the share is used up.
    fn charged(mut self, account: &Arc<Account>) -> Reply {
        let size = self.body.size();
        if size < UNCOUNTED {
            return self;
        }
        match account.take(size) {
            Ok(charge) => {
                self.body = self.body.charged(charge);
                self
            }
            Err(full) => self.shed(full),
        }
    }

    fn shed(self, full: Full) -> Reply {
        let size = self.body.size();
        let text = format!("the answer ({size} bytes) to a served request is dropped: {full}");
        let error = RpcError::new(code::INTERNAL, text);
        let whole = self.body.whole();
        let message: Option<&RawValue> = serde_json::from_slice(&whole).ok();
        let id = message.and_then(|message| member(message, "id"));
        Reply {
            shed: true,
            ..Reply::error(id.unwrap_or(RawValue::NULL), &error)
        }
    }
}

/// One message on the way to a client.
#[derive(Debug)]
pub enum ReplyItem {
    /// A notification or, to a legacy client, a request.
    Message(Bytes),
    /// The answer; nothing follows.
    Last(Reply),
}

/// One request on its way. Dropping it cancels the request at its server.
pub struct ReplyStream {
    state: ReplyState,
    /// The caller's share of memory.
    account: Arc<Account>,
    /// The params are in memory for as long as the request runs.
    _params: Option<Charge>,
}

pub(super) enum ReplyState {
    /// Answered without waiting; `None` once the reply was taken.
    Reply(Option<Reply>),
    /// A request that Portway answers itself, and that may have to wait.
    Opening(Pin<Box<dyn Future<Output = ReplyState> + Send>>),
    Legacy(Box<LegacyCall>),
    Modern(Box<ModernCall>),
    Listening(Box<ListenStream>),
}

impl ReplyStream {
    pub(super) fn new(account: &Arc<Account>, params: usize, state: ReplyState) -> ReplyStream {
        ReplyStream {
            account: account.clone(),
            _params: (params >= UNCOUNTED).then(|| account.charge(params)),
            state,
        }
    }

    /// The next message. Cancel-safe; not to be called after
    /// [`ReplyItem::Last`].
    pub async fn next(&mut self) -> ReplyItem {
        let item = loop {
            match &mut self.state {
                ReplyState::Reply(reply) => match reply.take() {
                    Some(reply) => break ReplyItem::Last(reply),
                    None => return std::future::pending().await,
                },
                ReplyState::Opening(opening) => self.state = opening.await,
                ReplyState::Legacy(call) => break call.next().await,
                ReplyState::Modern(call) => break call.next().await,
                ReplyState::Listening(stream) => break stream.next().await,
            }
        };
        match item {
            ReplyItem::Last(reply) => ReplyItem::Last(reply.charged(&self.account)),
            message => message,
        }
    }

    /// The reply alone; messages before it are dropped.
    pub async fn last(mut self) -> Reply {
        loop {
            if let ReplyItem::Last(reply) = self.next().await {
                return reply;
            }
        }
    }

    /// The reply of a request that was answered without waiting.
    pub fn at_once(self) -> Option<Reply> {
        match self.state {
            ReplyState::Reply(reply) => reply,
            _ => None,
        }
    }

    /// Charges a message to the caller's share of memory. The message is in
    /// memory already: the charge counts for the requests that follow.
    pub fn count(&self, message: Bytes) -> Bytes {
        if message.len() < UNCOUNTED {
            return message;
        }
        Arc::new(self.account.charge(message.len())).bind(message)
    }
}

impl From<Reply> for ReplyState {
    fn from(reply: Reply) -> ReplyState {
        ReplyState::Reply(Some(reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::memory::Budget;

    #[test]
    fn d2_a_large_result_goes_out_in_the_bytes_it_came_in() {
        let id = RawValue::from_string("7".into()).unwrap();
        for (layout, size, pieces) in [("", UNCOPIED, 3), (" \n", UNCOPIED, 1), ("", 100, 1)] {
            let json = format!(r#"{{{layout}"a":"{}"}}"#, "x".repeat(size));
            let message: Bytes = format!(r#"{{"result":{json},"id":1}}"#).into();
            let part = std::str::from_utf8(&message[10..10 + json.len()]).unwrap();
            let result = Payload::of(&message, part);
            let account = Budget::new(1 << 20).admin().clone();
            let reply = Reply::received(&id, &result, part).charged(&account);
            assert_eq!(reply.body.is_charged(), size == UNCOPIED);
            let parts: Vec<Bytes> = reply.body.clone().pieces().collect();
            assert_eq!(parts.len(), pieces);
            if pieces > 1 {
                assert_eq!(parts[1].as_ptr(), part.as_ptr(), "not a copy");
            }
            let json = json.replace(" \n", "");
            let expected = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{json}}}"#);
            assert_eq!(parts.concat(), expected.as_bytes());
            assert_eq!(reply.body.size(), expected.len());
            assert_eq!(reply.body.into_bytes(), expected.as_bytes());
            drop(parts);
            assert_eq!(account.used(), 0);
        }
    }

    #[test]
    fn t_an_answer_without_room_becomes_a_refusal_that_says_so() {
        let budget = Budget::new(16 << 10);
        let account = budget.admin();
        let id = RawValue::from_string(r#""seven""#.into()).unwrap();
        let large = RawValue::from_string(format!("\"{}\"", "x".repeat(10 << 10))).unwrap();
        let reply = || Reply::result(&id, &large).charged(account);
        let first = reply();
        assert!(!first.shed && first.body.is_charged());
        let second = reply();
        assert!(second.shed);
        let text = String::from_utf8(second.body.into_bytes().to_vec()).unwrap();
        assert!(text.contains(r#""id":"seven","error""#), "{text}");
        assert!(
            text.contains("dropped") && text.contains("memory"),
            "{text}"
        );
        // A small answer is sent even without memory.
        let small = RawValue::from_string("{}".into()).unwrap();
        assert!(!Reply::result(&id, &small).charged(account).shed);
        drop(first);
        assert_eq!(account.used(), 0);
        assert!(!reply().shed);
    }
}
