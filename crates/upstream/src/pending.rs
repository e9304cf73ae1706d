//! Requests that wait for their response.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::attribution::Candidates;
use super::heartbeat::{Heartbeat, within};
use super::turn::{TOGETHER, Turn};
use super::{CallEvent, EventSender, UpstreamCall, UpstreamError};

pub(crate) type RequestResult = Result<Box<RawValue>, UpstreamError>;

/// The pending requests of one connection, by our own id.
///
/// The lock is held for a map operation, never across an await.
pub(crate) struct PendingRequests {
    next: AtomicU64,
    waiters: Mutex<Waiters>,
    /// Notified whenever a request is no longer pending.
    left: Notify,
}

#[derive(Default)]
struct Waiters {
    by_id: HashMap<u64, Waiter>,
    /// The number of them that are listens.
    listens: usize,
    /// Calls whose caller gave up, but that may still run at the server.
    given_up: HashMap<u64, AbandonedRequest>,
    /// Set when the connection is gone: later requests fail at once.
    gone: Option<UpstreamError>,
    /// A task has waited for a request to leave, and may do so again.
    watched: bool,
}

impl Waiters {
    fn remove(&mut self, id: u64) -> Option<Waiter> {
        let waiter = self.by_id.remove(&id)?;
        self.listens -= usize::from(waiter.listen);
        Some(waiter)
    }
}

struct Waiter {
    answer: oneshot::Sender<RequestResult>,
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
    beat: Arc<Heartbeat>,
}

impl Waiter {
    /// The call waits for the answer to a question, and all questions sent with
    /// it have arrived: the next question belongs to another call.
    fn is_waiting(&self) -> bool {
        let together = |asked: Instant| asked.elapsed() < TOGETHER;
        self.beat.is_paused() && !self.asked.is_some_and(together)
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

impl PendingRequests {
    pub(crate) fn new() -> Arc<PendingRequests> {
        Arc::new(PendingRequests {
            next: AtomicU64::new(1),
            waiters: Mutex::default(),
            left: Notify::new(),
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
        let (answer, receiver) = oneshot::channel();
        let beat = Arc::new(Heartbeat::new());
        let mut waiters = self.waiters.lock();
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
                can_be_asked: call.capabilities.is_some_and(|all| all.get() != "{}"),
                whose: call.whose.cloned(),
                turn,
                asked: None,
                beat: beat.clone(),
            },
        );
        waiters.listens += usize::from(call.is_listen());
        Ok(PendingRequest {
            id,
            alone: waiters.by_id.len() == waiters.listens + 1,
            pending: self.clone(),
            answer: receiver,
            answered: false,
            beat,
        })
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
        waiter.is_some_and(|waiter| waiter.answer.send(answer).is_ok())
    }

    /// Delivers an event of request `id` to its caller, and restarts the
    /// request's limit. A full queue drops the event: the reader must not wait
    /// for one slow caller.
    pub(crate) fn event(&self, id: u64, mut event: CallEvent) -> bool {
        let mut waiters = self.waiters.lock();
        let Some(waiter) = waiters.by_id.get_mut(&id) else {
            return false;
        };
        waiter.beat.touch();
        let Some(events) = &waiter.events else {
            return true;
        };
        match &mut event {
            CallEvent::Request(request) => {
                // While the client is asked, the timeout of the call is paused.
                request.hold(waiter.beat.pause(), waiter.turn.clone());
                waiter.asked = Some(Instant::now());
                if let Some(turn) = &waiter.turn {
                    turn.was_asked(&waiter.beat);
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

    /// The calls that can have caused the server's current message. Of one
    /// client's calls, those that already wait for an answer are candidates only
    /// if there is no other. With calls of several clients, all are candidates.
    pub(crate) fn candidates(&self) -> Candidates {
        self.candidates_within(FOREIGN)
    }

    /// The only call that a line of the server's log can belong to.
    pub(crate) fn sole_call(&self) -> Option<u64> {
        self.candidates_within(LINGERS).sole()
    }

    /// `foreign`: how long the abandoned calls of other clients are candidates.
    fn candidates_within(&self, foreign: Duration) -> Candidates {
        let mut waiters = self.waiters.lock();
        waiters
            .given_up
            .retain(|_, call| call.since.elapsed() < FOREIGN);
        let running = waiters.by_id.iter().filter(|(_, waiter)| waiter.may_ask);
        let running: Vec<(u64, &Waiter)> = running.map(|(id, waiter)| (*id, waiter)).collect();
        // An abandoned call has no client to ask.
        if running.is_empty() {
            return Candidates::default();
        }
        let first = &running[0].1.whose;
        let anothers = |whose: &Option<Arc<str>>| whose.is_none() || whose != first;
        let lingers = |call: &AbandonedRequest| {
            let anothers = call.whose.is_some() && call.whose != *first;
            call.since.elapsed() < if anothers { foreign } else { LINGERS }
        };
        let given_up = waiters.given_up.iter().filter(|(_, call)| lingers(call));
        let given_up: Vec<(u64, &AbandonedRequest)> =
            given_up.map(|(id, call)| (*id, call)).collect();
        let others = running[1..].iter().map(|(_, waiter)| &waiter.whose);
        let mut others = others.chain(given_up.iter().map(|(_, call)| &call.whose));
        let mixed = others.any(anothers);
        let free = |(_, waiter): &&(u64, &Waiter)| mixed || !waiter.is_waiting();
        let mut calls: Vec<u64> = running.iter().filter(free).map(|(id, _)| *id).collect();
        if calls.is_empty() {
            calls = running.iter().map(|(id, _)| *id).collect();
        }
        calls.extend(given_up.iter().map(|(id, _)| *id));
        Candidates { calls, mixed }
    }

    /// Removes the calls that have ended since.
    pub(crate) fn keep_running(&self, candidates: &mut Candidates) {
        let waiters = self.waiters.lock();
        let limit = if candidates.mixed { FOREIGN } else { LINGERS };
        let lingers = |id: &u64| {
            let call = waiters.given_up.get(id);
            call.is_some_and(|call| call.since.elapsed() < limit)
        };
        let runs = |id: &u64| waiters.by_id.contains_key(id) || lingers(id);
        candidates.calls.retain(runs);
    }

    /// The candidates that wait for no answer, each with its turn.
    pub(crate) fn subjects(&self, candidates: &Candidates) -> Vec<(u64, Arc<Turn>)> {
        let waiters = self.waiters.lock();
        let calls = candidates.calls.iter().filter_map(|id| {
            let waiter = waiters.by_id.get(id)?;
            let turn = waiter.turn.clone()?;
            (!waiter.beat.is_paused()).then_some((*id, turn))
        });
        calls.collect()
    }

    /// Whether it matters to clients which of them the server asks: a client
    /// that cannot be asked can as well share a process with all others.
    pub(crate) fn concerns_clients(&self, candidates: &Candidates) -> bool {
        let waiters = self.waiters.lock();
        let running = candidates
            .calls
            .iter()
            .filter_map(|id| waiters.by_id.get(id));
        let running: Vec<&Waiter> = running.collect();
        running.len() > 1 || running.iter().any(|waiter| waiter.can_be_asked)
    }

    /// The turn of a call, on a connection to a server that asks.
    pub(crate) fn turn(&self, id: u64) -> Option<Arc<Turn>> {
        self.waiters.lock().by_id.get(&id)?.turn.clone()
    }

    /// Resolves when a request is no longer pending.
    pub(crate) fn left(&self) -> tokio::sync::futures::Notified<'_> {
        self.waiters.lock().watched = true;
        self.left.notified()
    }

    /// The number of calls that wait for the answer to a question.
    pub(crate) fn questioned(&self) -> usize {
        let waiters = self.waiters.lock();
        let calls = waiters.by_id.values().filter(|waiter| waiter.call);
        calls.filter(|waiter| waiter.beat.is_paused()).count()
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
            std::mem::take(&mut inner.by_id)
        };
        for waiter in waiters.into_values() {
            let _ = waiter.answer.send(Err(error.clone()));
        }
        self.left.notify_waiters();
    }
}

pub(crate) struct PendingRequest {
    pub id: u64,
    /// No other request was pending at the start of this one, except for listens.
    pub alone: bool,
    pending: Arc<PendingRequests>,
    answer: oneshot::Receiver<RequestResult>,
    /// The request was answered, and so is no longer pending.
    answered: bool,
    beat: Arc<Heartbeat>,
}

impl PendingRequest {
    /// Waits for the response, at most `limit` since the last sign of life.
    pub(crate) async fn wait(&mut self, limit: Option<Duration>) -> RequestResult {
        let answer = async {
            let answer = (&mut self.answer).await;
            self.answered = answer.is_ok();
            answer.unwrap_or_else(|_| Err(UpstreamError::Lost("the connection ended".into())))
        };
        within(limit, &self.beat, answer).await
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

#[cfg(test)]
mod tests;
