//! The state of the copy in memory relative to the database.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long memory serves entries while the database is unreachable.
pub(super) const FROM_MEMORY: Duration = Duration::from_secs(5 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorState {
    /// Every change is notified.
    InStep,
    /// The database responds, and must be read.
    Behind,
    /// The database does not respond.
    Away,
}

/// The lock is held to read or set the fields.
#[derive(Debug)]
pub(super) struct MirrorStatus(Mutex<MirrorProgress>);

#[derive(Debug)]
struct MirrorProgress {
    state: MirrorState,
    /// When memory was last up to date.
    in_step: Instant,
    /// The number of operations that the database has completed.
    answers: u64,
}

impl Default for MirrorStatus {
    fn default() -> MirrorStatus {
        MirrorStatus(Mutex::new(MirrorProgress {
            state: MirrorState::Behind,
            in_step: Instant::now(),
            answers: 0,
        }))
    }
}

impl MirrorStatus {
    pub(super) fn memory(&self) -> MirrorState {
        self.0.lock().state
    }

    pub(super) fn is_away(&self) -> bool {
        self.memory() == MirrorState::Away
    }

    /// How long ago memory was last up to date, where it is not now.
    pub(super) fn unheard(&self) -> Duration {
        self.0.lock().in_step.elapsed()
    }

    pub(super) fn set_in_step(&self) {
        self.0.lock().read(MirrorState::InStep);
    }

    /// Everything was read just now, but further changes will not be notified.
    pub(super) fn set_read(&self) {
        self.0.lock().read(MirrorState::Behind);
    }

    pub(super) fn set_behind(&self) {
        self.0.lock().leave(MirrorState::Behind);
    }

    pub(super) fn note_answer(&self) {
        self.0.lock().answers += 1;
    }

    /// For [`MirrorStatus::set_away_since`].
    pub(super) fn answers(&self) -> u64 {
        self.0.lock().answers
    }

    /// An attempt failed that began after `answers`. If the database has
    /// completed another operation meanwhile, it came back during the attempt.
    pub(super) fn set_away_since(&self, answers: u64) {
        let mut now = self.0.lock();
        let came_back = now.answers != answers;
        now.leave(if came_back {
            MirrorState::Behind
        } else {
            MirrorState::Away
        });
    }

    /// Records a failed read, but only in the state `Behind`: in the others the
    /// listener knows better or is already reconnecting.
    pub(super) fn suspect_away(&self, answers: u64) {
        let mut now = self.0.lock();
        if now.answers == answers && now.state == MirrorState::Behind {
            now.state = MirrorState::Away;
        }
    }

    /// Something has changed, but memory does not have the new value.
    pub(super) fn doubt(&self) {
        let mut now = self.0.lock();
        if now.state == MirrorState::InStep {
            now.leave(MirrorState::Behind);
        }
    }
}

impl MirrorProgress {
    /// Memory is up to date now.
    fn read(&mut self, state: MirrorState) {
        self.in_step = Instant::now();
        self.state = state;
    }

    /// Memory was up to date until now if it was in step.
    fn leave(&mut self, state: MirrorState) {
        if self.state == MirrorState::InStep {
            self.in_step = Instant::now();
        }
        self.state = state;
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
        let unheard = status.unheard();
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
