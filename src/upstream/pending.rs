//! Requests that wait for their answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::{Call, CallEvent, EventSender, UpstreamError};

pub(crate) type Answer = Result<Box<RawValue>, UpstreamError>;

/// The waiting requests of one connection, by our own id.
///
/// A std mutex: held for a map operation, never across an await.
pub(crate) struct Pending {
    next: AtomicU64,
    waiters: Mutex<Waiters>,
    /// Told whenever a request is no longer waited for.
    left: Notify,
}

#[derive(Default)]
struct Waiters {
    by_id: HashMap<u64, Waiter>,
    /// Calls that were given up but may still be running over there.
    given_up: HashMap<u64, Instant>,
    /// Set once when the connection is gone: later requests fail at once.
    gone: Option<UpstreamError>,
}

struct Waiter {
    answer: oneshot::Sender<Answer>,
    events: Option<EventSender>,
    /// Somebody's call, and not a request of the connection's owner.
    call: bool,
    /// It goes on until one of the two ends it.
    listen: bool,
    /// The server may be asking something because of it.
    may_ask: bool,
    beat: Arc<Heartbeat>,
}

/// So long a call that was given up may still make its server ask something.
const LINGERS: Duration = Duration::from_millis(200);
const LINGERING: usize = 1024;

impl Pending {
    pub fn new() -> Arc<Pending> {
        Arc::new(Pending {
            next: AtomicU64::new(1),
            waiters: Mutex::default(),
            left: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers request `id`. The ticket forgets it when dropped.
    pub fn expect(self: &Arc<Self>, id: u64, call: &Call<'_>) -> Result<Ticket, UpstreamError> {
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
                events: call.events.clone(),
                call: call.is_somebodys(),
                listen: call.is_listen(),
                may_ask: call.may_ask(),
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
        let waiter = {
            let mut waiters = self.lock();
            waiters.given_up.remove(&id);
            waiters.by_id.remove(&id)
        };
        self.left.notify_waiters();
        waiter.is_some_and(|waiter| waiter.answer.send(answer).is_ok())
    }

    /// Hands something that belongs to request `id` to its caller, restarting
    /// the request's limit. A full queue drops it: the reader must not wait
    /// for one slow caller.
    pub fn event(&self, id: u64, mut event: CallEvent) -> bool {
        let waiters = self.lock();
        let Some(waiter) = waiters.by_id.get(&id) else {
            return false;
        };
        waiter.beat.touch();
        let Some(events) = &waiter.events else {
            return true;
        };
        match &mut event {
            CallEvent::Request(request) => {
                // While somebody is asked, the call's own time stands still.
                request.hold(waiter.beat.pause());
                events.offer(event);
            }
            // However much it reports, there is room for a question.
            CallEvent::Notification(_) => events.offer_note(event),
        }
        true
    }

    /// As `event`, for what is no sign of progress.
    pub fn note(&self, id: u64, event: CallEvent) {
        if let Some(waiter) = self.lock().by_id.get(&id)
            && let Some(events) = &waiter.events
        {
            events.offer_note(event);
        }
    }

    /// Ends a listen in its server's name; false if `id` is none.
    pub fn end_listen(&self, id: u64, error: UpstreamError) -> bool {
        let is_listen = |waiter: &Waiter| waiter.listen;
        self.lock().by_id.get(&id).is_some_and(is_listen) && self.resolve(id, Err(error))
    }

    /// Hands something that belongs to one call, nobody knows which, to all.
    pub fn note_all(&self, event: impl Fn() -> CallEvent) {
        let waiters = self.lock();
        let calls = waiters.by_id.values().filter(|waiter| waiter.call);
        for events in calls.filter_map(|waiter| waiter.events.as_ref()) {
            events.offer_note(event());
        }
    }

    /// The one call that can have caused what the server says now; none if
    /// there are several, or one that was given up may still be running. It
    /// may be one for which nobody can be asked.
    pub fn sole_call(&self) -> Option<u64> {
        let mut waiters = self.lock();
        waiters
            .given_up
            .retain(|_, since| since.elapsed() < LINGERS);
        if !waiters.given_up.is_empty() {
            return None;
        }
        let mut calls = waiters.by_id.iter().filter(|(_, waiter)| waiter.may_ask);
        match (calls.next(), calls.next()) {
            (Some((id, _)), None) => Some(*id),
            _ => None,
        }
    }

    /// Resolves when no call is in flight, nor may still be running.
    pub async fn quiet(&self) {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            let lingering = {
                let mut waiters = self.lock();
                waiters
                    .given_up
                    .retain(|_, since| since.elapsed() < LINGERS);
                let busy = waiters.by_id.values().any(|waiter| waiter.call);
                if !busy && waiters.given_up.is_empty() {
                    return;
                }
                !waiters.given_up.is_empty()
            };
            tokio::select! {
                () = left => {}
                () = tokio::time::sleep(LINGERS), if lingering => {}
            }
        }
    }

    /// Whether any call is in flight, or may be.
    pub fn any_call(&self) -> bool {
        let waiters = self.lock();
        !waiters.given_up.is_empty() || waiters.by_id.values().any(|waiter| waiter.call)
    }

    pub fn give_up(&self, id: u64) {
        let mut waiters = self.lock();
        if waiters.given_up.len() < LINGERING {
            waiters.given_up.insert(id, Instant::now());
        }
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
        self.pending.left.notify_waiters();
    }
}

/// When something was last heard of a request, and whether its time counts.
pub(crate) struct Heartbeat {
    start: Instant,
    last_ms: AtomicU64,
    paused: AtomicUsize,
}

/// Stops the time of a request while it exists.
pub(crate) struct Pause(Arc<Heartbeat>);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.touch();
        self.0.paused.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Heartbeat {
    pub fn new() -> Heartbeat {
        Heartbeat {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
            paused: AtomicUsize::new(0),
        }
    }

    pub fn touch(&self) {
        let ms = self.start.elapsed().as_millis() as u64;
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    pub fn pause(self: &Arc<Self>) -> Pause {
        self.paused.fetch_add(1, Ordering::AcqRel);
        Pause(self.clone())
    }

    fn last(&self) -> Instant {
        if self.paused.load(Ordering::Acquire) > 0 {
            return Instant::now();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Notification, ServerRequest, event_queue};

    #[test]
    fn c7_what_is_asked_while_somebody_subscribes_is_nobodys() {
        let pending = Pending::new();
        let limit = Duration::from_secs(1);
        let call = Call {
            events: Some(event_queue(1).0),
            ..Call::new("tools/call", limit)
        };
        let _call = pending.expect(1, &call).unwrap();
        let ping = pending.expect(2, &Call::new("ping", limit)).unwrap();
        assert_eq!(pending.sole_call(), Some(1));
        let subscribe = Call::new("resources/subscribe", limit);
        let subscribe = pending.expect(3, &subscribe).unwrap();
        assert_eq!(pending.sole_call(), None);
        drop((subscribe, ping));
        assert_eq!(pending.sole_call(), Some(1));
    }

    #[tokio::test]
    async fn i2_a_question_is_not_lost_among_reports() {
        let pending = Pending::new();
        let (events, mut queue) = event_queue(8);
        let call = Call {
            events: Some(events),
            ..Call::new("tools/call", Duration::from_secs(1))
        };
        let _call = pending.expect(1, &call).unwrap();
        for _ in 0..20 {
            let note = Notification {
                method: "notifications/progress".into(),
                params: None,
            };
            pending.event(1, CallEvent::Notification(note));
        }
        let id = RawValue::from_string("1".into()).unwrap();
        let (outbox, _answers) = tokio::sync::mpsc::channel(1);
        let request = ServerRequest::new(&id, "roots/list", None, outbox);
        pending.event(1, CallEvent::Request(request));
        let all = std::iter::from_fn(|| queue.try_recv());
        let asked = all.filter(|event| matches!(event, CallEvent::Request(_)));
        assert_eq!(asked.count(), 1);
    }
}
