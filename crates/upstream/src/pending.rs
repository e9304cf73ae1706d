//! Requests that wait for their answer.

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

/// The waiting requests of one connection, by our own id.
///
/// The lock is held for a map operation, never across an await.
pub(crate) struct PendingRequests {
    next: AtomicU64,
    waiters: Mutex<Waiters>,
    /// Told whenever a request is no longer waited for.
    left: Notify,
}

#[derive(Default)]
struct Waiters {
    by_id: HashMap<u64, Waiter>,
    /// Calls that were given up but may still be running over there.
    given_up: HashMap<u64, AbandonedRequest>,
    /// Set once when the connection is gone: later requests fail at once.
    gone: Option<UpstreamError>,
    /// Somebody has waited for a request to leave, and may do so again.
    watched: bool,
}

struct Waiter {
    answer: oneshot::Sender<RequestResult>,
    events: Option<EventSender>,
    /// Somebody's call, and not a request of the connection's owner.
    call: bool,
    /// It goes on until one of the two ends it.
    listen: bool,
    /// The server may be asking something because of it.
    may_ask: bool,
    /// Its client can be asked something.
    can_be_asked: bool,
    /// The client it is made for.
    whose: Option<Arc<str>>,
    /// On a connection to a server that asks.
    turn: Option<Arc<Turn>>,
    /// When it was last asked something.
    asked: Option<Instant>,
    beat: Arc<Heartbeat>,
}

impl Waiter {
    /// It waits for the answer to a question, and has asked all it asks with
    /// it: what the server asks now is another call's.
    fn is_waiting(&self) -> bool {
        let together = |asked: Instant| asked.elapsed() < TOGETHER;
        self.beat.is_paused() && !self.asked.is_some_and(together)
    }
}

struct AbandonedRequest {
    since: Instant,
    whose: Option<Arc<str>>,
}

/// So long a call that was given up may still make its server say something.
pub(super) const LINGERS: Duration = Duration::from_millis(200);
/// So long it may make it ask something that another client must not see.
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

    /// Registers request `id`. The ticket forgets it when dropped.
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
        Ok(PendingRequest {
            id,
            pending: self.clone(),
            answer: receiver,
            answered: false,
            beat,
        })
    }

    /// Hands an answer to its waiter; false if nobody waits for that id.
    pub(crate) fn resolve(&self, id: u64, answer: RequestResult) -> bool {
        let (waiter, watched) = {
            let mut waiters = self.waiters.lock();
            if !waiters.given_up.is_empty() {
                waiters.given_up.remove(&id);
            }
            (waiters.by_id.remove(&id), waiters.watched)
        };
        if watched {
            self.left.notify_waiters();
        }
        waiter.is_some_and(|waiter| waiter.answer.send(answer).is_ok())
    }

    /// Hands something that belongs to request `id` to its caller, restarting
    /// the request's limit. A full queue drops it: the reader must not wait
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
                // While somebody is asked, the call's own time stands still.
                request.hold(waiter.beat.pause(), waiter.turn.clone());
                waiter.asked = Some(Instant::now());
                if let Some(turn) = &waiter.turn {
                    turn.was_asked(&waiter.beat);
                }
                events.offer(event);
            }
            // However much it reports, there is room for a question.
            CallEvent::Notification(_) => events.offer_note(event),
        }
        true
    }

    /// As `event`, for what is no sign of progress.
    pub(crate) fn note(&self, id: u64, event: CallEvent) {
        if let Some(waiter) = self.waiters.lock().by_id.get(&id)
            && let Some(events) = &waiter.events
        {
            events.offer_note(event);
        }
    }

    /// Ends a listen in its server's name; false if `id` is none.
    pub(crate) fn end_listen(&self, id: u64, error: UpstreamError) -> bool {
        let is_listen = |waiter: &Waiter| waiter.listen;
        self.waiters.lock().by_id.get(&id).is_some_and(is_listen) && self.resolve(id, Err(error))
    }

    /// Hands something that belongs to one call, nobody knows which, to all.
    pub(crate) fn note_all(&self, event: impl Fn() -> CallEvent) {
        let waiters = self.waiters.lock();
        let calls = waiters.by_id.values().filter(|waiter| waiter.call);
        for events in calls.filter_map(|waiter| waiter.events.as_ref()) {
            events.offer_note(event());
        }
    }

    /// The calls that can have caused what the server says now. Of one
    /// client's calls, those that wait for an answer already count only where
    /// there is no other. Among calls of several clients all of them count.
    pub(crate) fn candidates(&self) -> Candidates {
        self.candidates_within(FOREIGN)
    }

    /// The one call that a line of the server's log can belong to.
    pub(crate) fn sole_call(&self) -> Option<u64> {
        self.candidates_within(LINGERS).sole()
    }

    /// `foreign`: how long the calls count that other clients have given up.
    fn candidates_within(&self, foreign: Duration) -> Candidates {
        let mut waiters = self.waiters.lock();
        waiters
            .given_up
            .retain(|_, call| call.since.elapsed() < FOREIGN);
        let running = waiters.by_id.iter().filter(|(_, waiter)| waiter.may_ask);
        let running: Vec<(u64, &Waiter)> = running.map(|(id, waiter)| (*id, waiter)).collect();
        // A call that was given up has nobody to be asked.
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

    /// Takes out the calls that have ended since.
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

    /// The candidates that wait for no answer, each with what it calls.
    pub(crate) fn subjects(&self, candidates: &Candidates) -> Vec<(u64, Arc<Turn>)> {
        let waiters = self.waiters.lock();
        let calls = candidates.calls.iter().filter_map(|id| {
            let waiter = waiters.by_id.get(id)?;
            let turn = waiter.turn.clone()?;
            (!waiter.beat.is_paused()).then_some((*id, turn))
        });
        calls.collect()
    }

    /// Whether it matters to clients which of them the server asks: one that
    /// can be asked nothing is as well served by a process that all share.
    pub(crate) fn concerns_clients(&self, candidates: &Candidates) -> bool {
        let waiters = self.waiters.lock();
        let running = candidates
            .calls
            .iter()
            .filter_map(|id| waiters.by_id.get(id));
        let running: Vec<&Waiter> = running.collect();
        running.len() > 1 || running.iter().any(|waiter| waiter.can_be_asked)
    }

    /// What a call is about, on a connection to a server that asks.
    pub(crate) fn turn(&self, id: u64) -> Option<Arc<Turn>> {
        self.waiters.lock().by_id.get(&id)?.turn.clone()
    }

    /// Resolves when a request is no longer waited for.
    pub(crate) fn left(&self) -> tokio::sync::futures::Notified<'_> {
        self.waiters.lock().watched = true;
        self.left.notified()
    }

    /// How many calls wait for the answer to a question.
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

    /// The connection is gone: every waiter gets `error`, later ones too.
    pub(crate) fn fail_all(&self, error: &UpstreamError) {
        let waiters = {
            let mut inner = self.waiters.lock();
            inner.gone.get_or_insert_with(|| error.clone());
            std::mem::take(&mut inner.by_id)
        };
        for waiter in waiters.into_values() {
            let _ = waiter.answer.send(Err(error.clone()));
        }
        self.left.notify_waiters();
    }
}

/// One waiting request.
pub(crate) struct PendingRequest {
    pub id: u64,
    pending: Arc<PendingRequests>,
    answer: oneshot::Receiver<RequestResult>,
    /// It was answered, and so is not waited for any more.
    answered: bool,
    beat: Arc<Heartbeat>,
}

impl PendingRequest {
    /// Waits for the answer, at most `limit` since the last sign of life.
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
        let gone = waiters.by_id.remove(&self.id);
        if waiters.watched {
            self.pending.left.notify_waiters();
        }
        drop(waiters);
        drop(gone);
    }
}

#[cfg(test)]
mod tests;
