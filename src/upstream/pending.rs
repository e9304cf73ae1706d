//! Requests that wait for their answer, and the gate that lets a connection
//! finish them before it is replaced.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::{CallEvent, UpstreamError};

pub(crate) type Answer = Result<Box<RawValue>, UpstreamError>;

/// The waiting requests of one connection, by our own id.
///
/// A std mutex: held for a map operation, never across an await.
pub(crate) struct Pending {
    next: AtomicU64,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    by_id: HashMap<u64, Waiter>,
    /// Set once when the connection is gone: later requests fail at once.
    gone: Option<UpstreamError>,
}

struct Waiter {
    answer: oneshot::Sender<Answer>,
    events: Option<mpsc::Sender<CallEvent>>,
    beat: Arc<Heartbeat>,
}

impl Pending {
    pub fn new() -> Arc<Pending> {
        Arc::new(Pending {
            next: AtomicU64::new(1),
            waiters: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers request `id`. The ticket forgets it when dropped.
    pub fn expect(
        self: &Arc<Self>,
        id: u64,
        events: Option<mpsc::Sender<CallEvent>>,
    ) -> Result<Ticket, UpstreamError> {
        let (answer, receiver) = oneshot::channel();
        let beat = Arc::new(Heartbeat::new());
        let mut waiters = self.lock();
        if let Some(gone) = &waiters.gone {
            return Err(gone.clone());
        }
        waiters.by_id.insert(
            id,
            Waiter {
                answer,
                events,
                beat: beat.clone(),
            },
        );
        Ok(Ticket {
            id,
            pending: self.clone(),
            answer: receiver,
            beat,
        })
    }

    /// Hands an answer to its waiter; false if nobody waits for that id.
    pub fn resolve(&self, id: u64, answer: Answer) -> bool {
        let waiter = self.lock().by_id.remove(&id);
        waiter.is_some_and(|waiter| waiter.answer.send(answer).is_ok())
    }

    /// Hands something that belongs to request `id` to its caller, restarting
    /// the request's limit. A full queue drops it: the reader must not wait
    /// for one slow caller.
    pub fn event(&self, id: u64, event: CallEvent) -> bool {
        let waiters = self.lock();
        let Some(waiter) = waiters.by_id.get(&id) else {
            return false;
        };
        waiter.beat.touch();
        if let Some(events) = &waiter.events {
            let _ = events.try_send(event);
        }
        true
    }

    /// The connection is gone: every waiter gets `error`, later ones too.
    pub fn fail_all(&self, error: &UpstreamError) {
        let waiters = {
            let mut inner = self.lock();
            inner.gone.get_or_insert_with(|| error.clone());
            std::mem::take(&mut inner.by_id)
        };
        for waiter in waiters.into_values() {
            let _ = waiter.answer.send(Err(error.clone()));
        }
    }
}

/// One waiting request.
pub(crate) struct Ticket {
    pub id: u64,
    pending: Arc<Pending>,
    answer: oneshot::Receiver<Answer>,
    beat: Arc<Heartbeat>,
}

impl Ticket {
    /// Waits for the answer, at most `limit` since the last sign of life.
    pub async fn wait(&mut self, limit: Option<Duration>) -> Answer {
        let answer = async {
            (&mut self.answer)
                .await
                .unwrap_or_else(|_| Err(UpstreamError::Lost("the connection ended".into())))
        };
        within(limit, &self.beat, answer).await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pending.lock().by_id.remove(&self.id);
    }
}

/// When something was last heard of a request.
pub(crate) struct Heartbeat {
    start: Instant,
    last_ms: AtomicU64,
}

impl Heartbeat {
    pub fn new() -> Heartbeat {
        Heartbeat {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    pub fn touch(&self) {
        let ms = self.start.elapsed().as_millis() as u64;
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }
}

/// Runs `work` until `limit` has passed since the last heartbeat.
pub(crate) async fn within(
    limit: Option<Duration>,
    beat: &Heartbeat,
    work: impl Future<Output = Answer>,
) -> Answer {
    let Some(limit) = limit else {
        return work.await;
    };
    tokio::pin!(work);
    loop {
        let deadline = beat.last() + limit;
        tokio::select! {
            answer = &mut work => return answer,
            () = tokio::time::sleep_until(deadline) => {
                if beat.last() + limit <= Instant::now() {
                    return Err(UpstreamError::Timeout { limit });
                }
            }
        }
    }
}

/// Counts calls in flight, and closes so that they can finish.
#[derive(Default)]
pub(crate) struct Gate {
    /// Calls in flight; the top bit says closed.
    state: AtomicUsize,
    emptied: Notify,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Gate {
    pub fn enter(self: &Arc<Self>) -> Result<Pass, UpstreamError> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let pass = Pass(self.clone());
        if before & CLOSED != 0 {
            return Err(UpstreamError::Draining);
        }
        Ok(pass)
    }

    pub fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }

    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    pub fn in_flight(&self) -> usize {
        self.state.load(Ordering::Acquire) & !CLOSED
    }

    /// Resolves when no call is in flight.
    pub async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// Held while a call is in flight.
pub(crate) struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(1, Ordering::AcqRel);
        if before & !CLOSED == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}
