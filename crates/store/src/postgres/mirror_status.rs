//! The state of the copy in memory relative to the database.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long memory serves entries while the database is unreachable.
pub(super) const FROM_MEMORY: Duration = Duration::from_secs(5 * 60);

const IN_STEP: u8 = 0;
const BEHIND: u8 = 1;
const AWAY: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorState {
    /// Every change is notified.
    InStep,
    /// The database responds, and must be read.
    Behind,
    /// The database does not respond; memory has had no update for this long.
    Away(Duration),
}

#[derive(Debug)]
pub(super) struct MirrorStatus {
    mode: AtomicU8,
    /// When memory was last up to date, in milliseconds since `start`.
    in_step: AtomicU64,
    /// The number of operations that the database has completed.
    answers: AtomicU64,
    start: Instant,
}

impl Default for MirrorStatus {
    fn default() -> MirrorStatus {
        MirrorStatus {
            mode: AtomicU8::new(BEHIND),
            in_step: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            start: Instant::now(),
        }
    }
}

impl MirrorStatus {
    pub(super) fn memory(&self) -> MirrorState {
        match self.mode.load(Ordering::Acquire) {
            IN_STEP => MirrorState::InStep,
            BEHIND => MirrorState::Behind,
            _ => MirrorState::Away(self.unheard()),
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.mode.load(Ordering::Acquire) == AWAY
    }

    /// How long ago memory was last up to date, where it is not now.
    pub(super) fn unheard(&self) -> Duration {
        let last = Duration::from_millis(self.in_step.load(Ordering::Acquire));
        self.start.elapsed().saturating_sub(last)
    }

    /// Records that memory was up to date just now.
    fn mark(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.in_step.store(now, Ordering::Release);
    }

    pub(super) fn set_in_step(&self) {
        self.mark();
        self.mode.store(IN_STEP, Ordering::Release);
    }

    /// Everything was read just now, but further changes will not be notified.
    pub(super) fn set_read(&self) {
        self.mark();
        self.mode.store(BEHIND, Ordering::Release);
    }

    pub(super) fn set_behind(&self) {
        self.leave(BEHIND);
    }

    pub(super) fn note_answer(&self) {
        self.answers.fetch_add(1, Ordering::AcqRel);
    }

    /// For [`MirrorStatus::set_away_since`].
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Acquire)
    }

    /// An attempt failed that began after `answers`. If the database has
    /// completed another operation meanwhile, it came back during the attempt.
    pub(super) fn set_away_since(&self, answers: u64) {
        let mode = if self.answers() == answers {
            AWAY
        } else {
            BEHIND
        };
        self.leave(mode);
    }

    /// Records a failed read, but only in the mode `Behind`: in the others the
    /// listener knows better or is already reconnecting.
    pub(super) fn suspect_away(&self, answers: u64) {
        if self.answers() != answers {
            return;
        }
        let _ = self
            .mode
            .compare_exchange(BEHIND, AWAY, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Something has changed, but memory does not have the new value.
    pub(super) fn doubt(&self) {
        let left = self
            .mode
            .compare_exchange(IN_STEP, BEHIND, Ordering::AcqRel, Ordering::Acquire);
        if left.is_ok() {
            self.mark();
        }
    }

    fn leave(&self, mode: u8) {
        if self.mode.swap(mode, Ordering::AcqRel) == IN_STEP {
            self.mark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e7_time_without_news_counts_from_the_last_moment_in_step() {
        let status = MirrorStatus::default();
        assert_eq!(status.memory(), MirrorState::Behind);
        status.set_in_step();
        assert_eq!(status.memory(), MirrorState::InStep);
        let answers = status.answers();
        status.suspect_away(answers);
        assert_eq!(status.memory(), MirrorState::InStep, "that is known better");
        status.set_behind();
        std::thread::sleep(Duration::from_millis(30));
        status.suspect_away(answers);
        assert!(status.is_away());
        let MirrorState::Away(unheard) = status.memory() else {
            panic!("it is away");
        };
        assert!(unheard >= Duration::from_millis(30), "{unheard:?}");
    }

    #[test]
    fn f7_an_answer_during_a_failing_attempt_says_that_the_database_is_there() {
        let status = MirrorStatus::default();
        let before = status.answers();
        status.note_answer();
        status.set_away_since(before);
        status.suspect_away(before);
        assert_eq!(status.memory(), MirrorState::Behind);
        status.set_away_since(status.answers());
        assert!(status.is_away());
    }
}
