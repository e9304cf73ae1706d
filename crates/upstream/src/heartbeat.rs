//! The timeout of one request: progress restarts it, and it is paused while the
//! client is asked a question.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::UpstreamError;
use super::pending::RequestResult;

/// The last sign of life of a request, and whether its timeout is paused.
pub(crate) struct Heartbeat {
    start: Instant,
    last_ms: AtomicU64,
    paused: AtomicUsize,
}

/// Pauses the timeout of a request while it exists.
pub(crate) struct TimeoutPause(Arc<Heartbeat>);

impl Drop for TimeoutPause {
    fn drop(&mut self) {
        self.0.touch();
        self.0.paused.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Heartbeat {
    pub(crate) fn new() -> Heartbeat {
        Heartbeat {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
            paused: AtomicUsize::new(0),
        }
    }

    pub(crate) fn touch(&self) {
        let ms = self.start.elapsed().as_millis() as u64;
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    pub(crate) fn pause(self: &Arc<Self>) -> TimeoutPause {
        self.paused.fetch_add(1, Ordering::AcqRel);
        TimeoutPause(self.clone())
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire) > 0
    }

    fn last(&self) -> Instant {
        if self.is_paused() {
            return Instant::now();
        }
        self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }
}

/// Runs `work` until `limit` has passed since the last heartbeat.
pub(crate) async fn within(
    limit: Option<Duration>,
    beat: &Heartbeat,
    work: impl Future<Output = RequestResult>,
) -> RequestResult {
    let Some(limit) = limit else {
        return work.await;
    };
    tokio::pin!(work);
    loop {
        let deadline = beat.last() + limit;
        tokio::select! {
            biased;
            answer = &mut work => return answer,
            () = tokio::time::sleep_until(deadline) => {
                if beat.last() + limit <= Instant::now() {
                    return Err(UpstreamError::Timeout { limit });
                }
            }
        }
    }
}
