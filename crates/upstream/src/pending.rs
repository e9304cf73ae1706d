//! Requests that wait for their response.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::request_state::RequestState;
use super::turn::{TOGETHER, Turn};
use super::{CallEvent, EventSender, UpstreamCall, UpstreamError};
use wire::Payload;

mod candidates;
#[cfg(test)]
mod tests;

pub(crate) type RequestResult = Result<Payload, UpstreamError>;

/// The pending requests of one connection, by our own id.
///
/// The lock is held for a map operation, never across an await.
pub(crate) struct PendingRequests {
    next: AtomicU64,
    waiters: Mutex<Waiters>,
    /// Notified whenever a request is no longer pending.
    left: Notify,
    /// Notified when the next timeout is not the one that is waited for.
    next_timeout: Notify,
}

type ById<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// The ids are our own and consecutive, so a multiplication spreads them.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Default)]
struct Waiters {
    by_id: ById<Waiter>,
    /// The number of them that are listens.
    listens: usize,
    /// Calls whose caller gave up, but that may still run at the server.
    given_up: ById<AbandonedRequest>,
    /// Set when the connection is gone: later requests fail at once.
    gone: Option<UpstreamError>,
    /// A task has waited for a request to leave, and may do so again.
    watched: bool,
    /// When the timeouts are looked at next; `None` if no task does that.
    look: Option<Instant>,
}

impl Waiters {
    fn remove(&mut self, id: u64) -> Option<Waiter> {
        let waiter = self.by_id.remove(&id)?;
        self.listens -= usize::from(waiter.listen);
        Some(waiter)
    }
}

struct Waiter {
    events: Option<EventSender>,
    /// A call of a client, not a request of the connection's owner.
    call: bool,
    /// The request runs until one side ends it.
    listen: bool,
    /// The request can cause a question of the server.
    may_ask: bool,
    /// The client can be asked a question.
    can_be_asked: bool,
    /// The client that made the request.
    whose: Option<Arc<str>>,
    /// Set on a connection to a server that asks.
    turn: Option<Arc<Turn>>,
    /// The time of the last question to the client.
    asked: Option<Instant>,
    state: Arc<RequestState>,
}

impl Waiter {
    /// The call waits for the answer to a question, and all questions sent with
    /// it have arrived: the next question belongs to another call.
    fn is_waiting(&self) -> bool {
        let together = |asked: Instant| asked.elapsed() < TOGETHER;
        self.state.is_paused() && !self.asked.is_some_and(together)
    }
}

struct AbandonedRequest {
    since: Instant,
    whose: Option<Arc<str>>,
}

/// How long an abandoned call can still cause a message of the server.
pub(super) const LINGERS: Duration = Duration::from_millis(200);
/// How long it can cause a question that another client must not see.
const FOREIGN: Duration = Duration::from_secs(600);
const LINGERING: usize = 1024;
/// The least time between two looks at the timeouts.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

impl PendingRequests {
    pub(crate) fn new() -> Arc<PendingRequests> {
        Arc::new(PendingRequests {
            next: AtomicU64::new(1),
            waiters: Mutex::default(),
            left: Notify::new(),
            next_timeout: Notify::new(),
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers request `id`. Dropping the ticket removes it.
    pub(crate) fn expect(
        self: &Arc<Self>,
        id: u64,
        call: &UpstreamCall<'_>,
    ) -> Result<PendingRequest, UpstreamError> {
        self.expect_in_turn(id, call, None)
    }

    pub(crate) fn expect_in_turn(
        self: &Arc<Self>,
        id: u64,
        call: &UpstreamCall<'_>,
        turn: Option<Arc<Turn>>,
    ) -> Result<PendingRequest, UpstreamError> {
        let state = RequestState::new(call.limit);
        let mut waiters = self.waiters.lock();
        if let Some(gone) = &waiters.gone {
            return Err(gone.clone());
        }
        waiters.by_id.insert(
            id,
            Waiter {
                events: call.events.clone(),
                call: call.is_somebodys(),
                listen: call.is_listen(),
                may_ask: call.may_ask(),
                can_be_asked: call.capabilities.is_some_and(|all| all.get() != "{}"),
                whose: call.whose.cloned(),
                turn,
                asked: None,
                state: state.clone(),
            },
        );
        waiters.listens += usize::from(call.is_listen());
        self.watch_timeout(&mut waiters, &state);
        Ok(PendingRequest {
            id,
            alone: waiters.by_id.len() == waiters.listens + 1,
            pending: self.clone(),
            answered: false,
            state,
        })
    }

    /// Makes sure that a task looks at the timeouts in time. Nearly all requests
    /// are answered long before, so one timer serves them all.
    fn watch_timeout(self: &Arc<Self>, waiters: &mut Waiters, state: &RequestState) {
        let Some(deadline) = state.deadline() else {
            return;
        };
        match waiters.look {
            Some(look) if look <= deadline => return,
            Some(_) => self.next_timeout.notify_one(),
            None => drop(tokio::spawn(expire(self.clone()))),
        }
        waiters.look = Some(deadline);
    }

    /// Ends the requests whose time is over. They stay in the table until their
    /// callers have given them up.
    fn time_out(&self) {
        let now = Instant::now();
        let mut waiters = self.waiters.lock();
        let mut next: Option<Instant> = None;
        for state in waiters.by_id.values().map(|waiter| &waiter.state) {
            match state.deadline() {
                Some(deadline) if deadline <= now => state.time_out(),
                Some(later) => next = Some(next.map_or(later, |next| next.min(later))),
                None => {}
            }
        }
        waiters.look = next.map(|next| next.max(now + LOOK_PAUSE));
    }

    /// Delivers a response to its waiter; false if no request has that id.
    pub(crate) fn resolve(&self, id: u64, answer: RequestResult) -> bool {
        let (waiter, watched) = {
            let mut waiters = self.waiters.lock();
            if !waiters.given_up.is_empty() {
                waiters.given_up.remove(&id);
            }
            (waiters.remove(id), waiters.watched)
        };
        if watched {
            self.left.notify_waiters();
        }
        waiter.is_some_and(|waiter| waiter.state.answer(answer))
    }

    /// Delivers an event of request `id` to its caller, and restarts the
    /// request's limit. A full queue drops the event: the reader must not wait
    /// for one slow caller.
    pub(crate) fn event(&self, id: u64, mut event: CallEvent) -> bool {
        let mut waiters = self.waiters.lock();
        let Some(waiter) = waiters.by_id.get_mut(&id) else {
            return false;
        };
        waiter.state.touch();
        let Some(events) = &waiter.events else {
            return true;
        };
        match &mut event {
            CallEvent::Request(request) => {
                // While the client is asked, the timeout of the call is paused.
                request.hold(waiter.state.pause(), waiter.turn.clone());
                waiter.asked = Some(Instant::now());
                if let Some(turn) = &waiter.turn {
                    turn.was_asked(&waiter.state);
                }
                events.offer(event);
            }
            // Notifications never fill the queue: there is room for a question.
            CallEvent::Notification(_) => events.offer_note(event),
        }
        true
    }

    /// As `event`, for an event that is not a sign of progress.
    pub(crate) fn note(&self, id: u64, event: CallEvent) {
        if let Some(waiter) = self.waiters.lock().by_id.get(&id)
            && let Some(events) = &waiter.events
        {
            events.offer_note(event);
        }
    }

    /// Ends a listen on behalf of its server; false if `id` is not a listen.
    pub(crate) fn end_listen(&self, id: u64, error: UpstreamError) -> bool {
        let is_listen = |waiter: &Waiter| waiter.listen;
        self.waiters.lock().by_id.get(&id).is_some_and(is_listen) && self.resolve(id, Err(error))
    }

    /// Delivers an event that belongs to one unknown call to all calls.
    pub(crate) fn note_all(&self, event: impl Fn() -> CallEvent) {
        let waiters = self.waiters.lock();
        let calls = waiters.by_id.values().filter(|waiter| waiter.call);
        for events in calls.filter_map(|waiter| waiter.events.as_ref()) {
            events.offer_note(event());
        }
    }

    /// Resolves when a request is no longer pending.
    pub(crate) fn left(&self) -> tokio::sync::futures::Notified<'_> {
        self.waiters.lock().watched = true;
        self.left.notified()
    }

    pub(crate) fn give_up(&self, id: u64) {
        let mut waiters = self.waiters.lock();
        let known = waiters.by_id.get(&id).filter(|waiter| waiter.may_ask);
        let whose = known.map(|waiter| waiter.whose.clone());
        if let Some(whose) = whose
            && waiters.given_up.len() < LINGERING
        {
            let since = Instant::now();
            waiters
                .given_up
                .insert(id, AbandonedRequest { since, whose });
        }
    }

    /// The connection is gone: every request, also a later one, gets `error`.
    pub(crate) fn fail_all(&self, error: &UpstreamError) {
        let waiters = {
            let mut inner = self.waiters.lock();
            inner.gone.get_or_insert_with(|| error.clone());
            inner.listens = 0;
            inner.look = None;
            std::mem::take(&mut inner.by_id)
        };
        for waiter in waiters.into_values() {
            waiter.state.answer(Err(error.clone()));
        }
        self.next_timeout.notify_one();
        self.left.notify_waiters();
    }
}

/// Ends requests at their timeouts, until no request has one.
async fn expire(pending: Arc<PendingRequests>) {
    loop {
        let Some(look) = pending.waiters.lock().look else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep_until(look) => pending.time_out(),
            () = pending.next_timeout.notified() => {}
        }
    }
}

pub(crate) struct PendingRequest {
    pub id: u64,
    /// No other request was pending at the start of this one, except for listens.
    pub alone: bool,
    pending: Arc<PendingRequests>,
    /// The request was answered, and so is no longer pending.
    answered: bool,
    state: Arc<RequestState>,
}

impl PendingRequest {
    /// Waits for the response, at most the limit of the call since the last
    /// sign of life.
    pub(crate) async fn wait(&mut self) -> RequestResult {
        let answer = poll_fn(|cx| self.state.poll_answer(cx)).await;
        self.answered = !matches!(answer, Err(UpstreamError::Timeout { .. }));
        answer
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let mut waiters = self.pending.waiters.lock();
        let gone = waiters.remove(self.id);
        if waiters.watched {
            self.pending.left.notify_waiters();
        }
        drop(waiters);
        drop(gone);
    }
}
