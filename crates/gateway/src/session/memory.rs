//! The memory that the streams of all sessions share, and how long an ended
//! stream is kept for a client that comes back.

use std::collections::VecDeque;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Session;

/// Bytes of all streams together, where nothing else is set.
const MAX_BYTES: usize = 64 << 20;
const MAX_RETIRED: usize = 4096;
const KEEP: Duration = Duration::from_secs(120);

pub(super) struct StreamMemory {
    bytes: AtomicUsize,
    room: AtomicUsize,
    /// Finished streams, oldest first.
    retired: Mutex<VecDeque<RetiredStream>>,
}

struct RetiredStream {
    since: Instant,
    session: Weak<Session>,
    stream: u64,
}

impl Default for StreamMemory {
    fn default() -> StreamMemory {
        StreamMemory {
            bytes: AtomicUsize::new(0),
            room: AtomicUsize::new(MAX_BYTES),
            retired: Mutex::default(),
        }
    }
}

impl StreamMemory {
    pub(super) fn set_room(&self, bytes: usize) {
        self.room.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes() > self.room.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps an ended stream for a while, as long as there is room.
    pub(super) fn retire(&self, session: Weak<Session>, stream: u64) {
        let since = Instant::now();
        let mut retired = self.retired.lock();
        retired.push_back(RetiredStream {
            since,
            session,
            stream,
        });
        drop(retired);
        self.tidy();
    }

    /// Removes ended streams that are too old, or too many.
    pub(super) fn tidy(&self) {
        loop {
            let mut retired = self.retired.lock();
            let over = self.is_full() || retired.len() > MAX_RETIRED;
            // The newest one stays: its client may just be reconnecting.
            let due = retired.front().is_some_and(|oldest| {
                oldest.since.elapsed() >= KEEP || (over && retired.len() > 1)
            });
            let oldest = if due { retired.pop_front() } else { None };
            drop(retired);
            let Some(oldest) = oldest else { return };
            if let Some(session) = oldest.session.upgrade() {
                session.forget(oldest.stream);
            }
        }
    }
}
