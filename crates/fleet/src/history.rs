//! The state history of one server with reasons, the latest entry last.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;

use super::state::Status;

const KEPT: usize = 200;
const REASON: usize = 2 << 10;

#[derive(Default)]
pub struct History(Mutex<VecDeque<HistoryEntry>>);

/// A state change of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    /// Milliseconds since the epoch.
    pub at: u64,
    pub state: Status,
    pub reason: Option<String>,
}

/// Milliseconds since the epoch.
pub fn epoch_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl History {
    /// The caller makes sure that `reason` is safe to show.
    pub(super) fn add(&self, at: SystemTime, state: Status, reason: Option<String>) {
        let at = epoch_millis(at);
        let reason = reason.map(|mut text| {
            text.truncate(text.floor_char_boundary(REASON));
            text
        });
        let mut moments = self.0.lock();
        let same = |last: &HistoryEntry| last.state == state && last.reason == reason;
        if moments.back().is_some_and(same) {
            return;
        }
        if moments.len() == KEPT {
            moments.pop_front();
        }
        moments.push_back(HistoryEntry { at, state, reason });
    }

    pub fn read(&self) -> Vec<HistoryEntry> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_keeps_the_newest_and_says_nothing_twice() {
        let history = History::default();
        let now = SystemTime::now();
        for n in 0..500 {
            history.add(now, Status::Error, Some(format!("reason {n}")));
            history.add(now, Status::Error, Some(format!("reason {n}")));
        }
        let moments = history.read();
        assert_eq!(moments.len(), KEPT);
        assert_eq!(moments[KEPT - 1].reason.as_deref(), Some("reason 499"));
        assert_eq!(moments[0].reason.as_deref(), Some("reason 300"));
    }
}
