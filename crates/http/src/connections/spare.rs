//! File descriptors in reserve for the moment when there are no others: after
//! one of them is closed, the admin can still connect.

use std::fs::File;
use std::time::{Duration, Instant};

const COUNT: usize = 16;
/// How long descriptors must have been available before some are reserved again.
const CALM: Duration = Duration::from_secs(1);

pub(crate) struct Spares {
    kept: Vec<File>,
    /// When the last one was released.
    given: Option<Instant>,
}

impl Spares {
    pub(crate) fn keep() -> Spares {
        let mut spares = Spares {
            kept: Vec::with_capacity(COUNT),
            given: None,
        };
        spares.fill();
        spares
    }

    fn fill(&mut self) {
        while self.kept.len() < COUNT {
            match File::open("/dev/null") {
                Ok(file) => self.kept.push(file),
                Err(_) => return,
            }
        }
    }

    /// Releases one; false if none is left.
    pub(crate) fn give_up(&mut self) -> bool {
        self.given = Some(Instant::now());
        self.kept.pop().is_some()
    }

    /// Reserves some again, if there was no shortage for a while.
    pub(crate) fn refill(&mut self) {
        if self.given.is_some_and(|at| at.elapsed() >= CALM) {
            self.given = None;
            self.fill();
        }
    }

    /// Whether descriptors are scarce now.
    pub(crate) fn are_needed(&self) -> bool {
        self.given.is_some()
    }
}
