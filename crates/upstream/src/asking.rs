//! The history of a server's questions, over all of its connections: whether
//! the server asks its client during calls, and during which calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::UpstreamCall;
use wire::object::{member, text};

/// The limit of remembered tools, prompts and resources of one server. Further
/// ones are treated as never seen.
const SUBJECTS: usize = 4096;

/// Shared by all connections to one definition.
#[derive(Default)]
pub struct QuestionHistory {
    seen: AtomicBool,
    noticed: Notify,
    /// Notified when a subject becomes known.
    learned: Notify,
    /// By tool, prompt or resource: whether a call of it has asked.
    subjects: Mutex<HashMap<String, bool>>,
}

impl QuestionHistory {
    /// `seen`: the server of this definition asked in an earlier run.
    pub fn new(seen: bool) -> QuestionHistory {
        QuestionHistory {
            seen: seen.into(),
            ..QuestionHistory::default()
        }
    }

    /// Whether the server has asked its client during a call.
    pub fn seen(&self) -> bool {
        self.seen.load(Ordering::Acquire)
    }

    pub fn see(&self) {
        if !self.seen.swap(true, Ordering::AcqRel) {
            self.noticed.notify_waiters();
        }
    }

    /// Resolves once the server has asked.
    pub async fn noticed(&self) {
        loop {
            let noticed = self.noticed.notified();
            tokio::pin!(noticed);
            noticed.as_mut().enable();
            if self.seen() {
                return;
            }
            noticed.await;
        }
    }

    /// Whether calls of `subject` ask; `None` if no call has ended yet.
    pub(super) fn asks(&self, subject: &str) -> Option<bool> {
        self.subjects.lock().get(subject).copied()
    }

    /// Records that a call of `subject` asked, or ended without a question. A
    /// subject that asked once may ask again.
    pub(super) fn learn(&self, subject: &str, asked: bool) {
        let mut subjects = self.subjects.lock();
        if let Some(known) = subjects.get_mut(subject) {
            *known |= asked;
        } else if subjects.len() < SUBJECTS {
            subjects.insert(subject.to_owned(), asked);
            drop(subjects);
            self.learned.notify_waiters();
        }
    }

    /// Resolves once calls of `subject` are known not to ask.
    pub(super) async fn is_quiet(&self, subject: &str) {
        loop {
            let learned = self.learned.notified();
            tokio::pin!(learned);
            learned.as_mut().enable();
            if self.asks(subject) == Some(false) {
                return;
            }
            learned.await;
        }
    }
}

/// The tool, prompt or resource that a call addresses.
pub(super) fn subject(call: &UpstreamCall<'_>) -> String {
    let named = || {
        let param = wire::method::name_param(call.method)?;
        member(call.params?, param).and_then(text)
    };
    let name = match call.name {
        Some(name) => name.into(),
        None => named().unwrap_or_default(),
    };
    format!("{} {name}", call.method)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn c7_a_tool_that_asked_once_is_not_forgotten() {
        let asking = QuestionHistory::default();
        assert_eq!(asking.asks("tools/call a"), None);
        asking.learn("tools/call a", false);
        assert_eq!(asking.asks("tools/call a"), Some(false));
        asking.learn("tools/call a", true);
        asking.learn("tools/call a", false);
        assert_eq!(asking.asks("tools/call a"), Some(true));
    }

    #[test]
    fn c7_a_call_is_known_by_the_servers_name_of_its_tool() {
        let params = RawValue::from_string(r#"{"name":"a"}"#.into()).unwrap();
        let call = UpstreamCall::new("tools/call", Duration::from_secs(1)).params(Some(&params));
        assert_eq!(subject(&call), "tools/call a");
        let renamed = UpstreamCall {
            name: Some("b"),
            ..call
        };
        assert_eq!(subject(&renamed), "tools/call b");
        let list = UpstreamCall::new("tools/list", Duration::from_secs(1));
        assert_eq!(subject(&list), "tools/list ");
    }
}
