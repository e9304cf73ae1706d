//! What is known of a server's questions, over all of its connections: whether
//! it asks its client anything during a call, and in which calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::UpstreamCall;
use wire::object::{member, text};

/// Tools, prompts and resources that are remembered for one server. What does
/// not fit is treated as never seen.
const SUBJECTS: usize = 4096;

/// Shared by all connections to one definition.
#[derive(Default)]
pub struct QuestionHistory {
    seen: AtomicBool,
    noticed: Notify,
    /// Told when something is learned of a subject.
    learned: Notify,
    /// By tool, prompt or resource: whether a call of it was seen to ask.
    subjects: Mutex<HashMap<String, bool>>,
}

impl QuestionHistory {
    /// `seen`: an earlier run has seen this definition ask.
    pub fn new(seen: bool) -> QuestionHistory {
        QuestionHistory {
            seen: seen.into(),
            ..QuestionHistory::default()
        }
    }

    /// Whether the server was seen to ask its client something during a call.
    pub fn seen(&self) -> bool {
        self.seen.load(Ordering::Acquire)
    }

    pub fn see(&self) {
        if !self.seen.swap(true, Ordering::AcqRel) {
            self.noticed.notify_waiters();
        }
    }

    /// Resolves once the server was seen to ask.
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

    /// Whether calls of `subject` ask; `None` if none has ended yet.
    pub(super) fn asks(&self, subject: &str) -> Option<bool> {
        self.subjects.lock().get(subject).copied()
    }

    /// A call of `subject` asked, or ended without having asked. One that
    /// asked once may ask again.
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

/// The tool, prompt or resource that a call is about.
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
