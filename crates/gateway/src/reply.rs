//! What a client is answered.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::text::{MessageBody, PreparedResult};
use store::memory::{Account, Full, UNCOUNTED};
use wire::{RpcError, code};

/// A whole JSON-RPC response, spelled for its client.
#[derive(Debug)]
pub struct Reply {
    pub body: MessageBody,
    /// The code where it is an error: some have an HTTP status of their own.
    pub error: Option<i64>,
    /// The error is a server's own, passed on.
    pub relayed: bool,
    /// It tells of a call that took too long.
    pub late: bool,
    /// The answer was dropped for want of memory; the client may try again.
    pub shed: bool,
}

impl Reply {
    pub fn result(id: &RawValue, result: &RawValue) -> Reply {
        Reply {
            body: wire::response(id, result).into(),
            error: None,
            relayed: false,
            late: false,
            shed: false,
        }
    }

    /// `result` is on one line already; it is not copied.
    pub(super) fn prepared(id: &RawValue, result: PreparedResult) -> Reply {
        Reply {
            body: MessageBody::around(wire::response_start(id), result),
            error: None,
            relayed: false,
            late: false,
            shed: false,
        }
    }

    pub fn error(id: &RawValue, error: &RpcError) -> Reply {
        Reply {
            body: wire::error(Some(id), error).into(),
            error: Some(error.code),
            relayed: false,
            late: false,
            shed: false,
        }
    }

    /// The answer as far as its client's share of memory reaches; a refusal
    /// where there is no room for it.
    pub fn within(mut self, account: &Arc<Account>) -> Reply {
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
        #[derive(serde::Deserialize)]
        struct Whose<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let size = self.body.size();
        let text = format!("the answer ({size} bytes) to a served request is dropped: {full}");
        let error = RpcError::new(code::INTERNAL, text);
        let whole = self.body.whole();
        let id = serde_json::from_slice(&whole).map(|Whose { id }| id);
        Reply {
            shed: true,
            ..Reply::error(id.unwrap_or(RawValue::NULL), &error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::memory::Budget;

    #[test]
    fn t_an_answer_without_room_becomes_a_refusal_that_says_so() {
        let budget = Budget::new(16 << 10);
        let account = budget.admin();
        let id = RawValue::from_string(r#""seven""#.into()).unwrap();
        let large = RawValue::from_string(format!("\"{}\"", "x".repeat(10 << 10))).unwrap();
        let reply = || Reply::result(&id, &large).within(account);
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
        // What is small is answered at any time.
        let small = RawValue::from_string("{}".into()).unwrap();
        assert!(!Reply::result(&id, &small).within(account).shed);
        drop(first);
        assert_eq!(account.used(), 0);
        assert!(!reply().shed);
    }
}
