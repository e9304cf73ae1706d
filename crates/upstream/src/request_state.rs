//! The state of one pending request: its answer, and its timeout, which
//! progress restarts and a question to the client pauses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::UpstreamError;
use super::pending::RequestResult;

/// Shared by the table of pending requests and the caller.
pub(crate) struct RequestState {
    limit: Option<Duration>,
    start: Instant,
    /// The last sign of life, in milliseconds after the start.
    last_ms: AtomicU64,
    /// The number of open questions to the client.
    paused: AtomicUsize,
    /// The lock is held for a moment, never across an await.
    answer: Mutex<Answer>,
}

enum Answer {
    Open(Option<Waker>),
    Ready(RequestResult),
    Taken,
}

/// Pauses the timeout of a request while it exists.
pub(crate) struct TimeoutPause(Arc<RequestState>);

impl Drop for TimeoutPause {
    fn drop(&mut self) {
        self.0.touch();
        self.0.paused.fetch_sub(1, Ordering::AcqRel);
    }
}

impl RequestState {
    pub(crate) fn new(limit: Option<Duration>) -> Arc<RequestState> {
        Arc::new(RequestState {
            limit,
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
            paused: AtomicUsize::new(0),
            answer: Mutex::new(Answer::Open(None)),
        })
    }

    /// Restarts the timeout.
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

    /// The time of the timeout, as things stand; only ever moves away.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let last = match self.is_paused() {
            true => Instant::now(),
            false => self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed)),
        };
        Some(last + self.limit?)
    }

    /// Answers the request; false if it has an answer already.
    pub(super) fn answer(&self, result: RequestResult) -> bool {
        let mut answer = self.answer.lock();
        let Answer::Open(waker) = &mut *answer else {
            return false;
        };
        let waker = waker.take();
        *answer = Answer::Ready(result);
        drop(answer);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    pub(super) fn time_out(&self) {
        if let Some(limit) = self.limit {
            self.answer(Err(UpstreamError::Timeout { limit }));
        }
    }

    /// Must not be called after it was ready.
    pub(super) fn poll_answer(&self, cx: &mut Context<'_>) -> Poll<RequestResult> {
        let mut answer = self.answer.lock();
        match &mut *answer {
            Answer::Open(Some(waker)) => waker.clone_from(cx.waker()),
            Answer::Open(none) => *none = Some(cx.waker().clone()),
            _ => {
                if let Answer::Ready(result) = std::mem::replace(&mut *answer, Answer::Taken) {
                    return Poll::Ready(result);
                }
            }
        }
        Poll::Pending
    }
}
