//! The calls that a message of the server can belong to.

use std::sync::Arc;
use std::time::Duration;

use super::{AbandonedRequest, FOREIGN, LINGERS, PendingRequests, Waiter};
use crate::attribution::Candidates;
use crate::turn::Turn;

impl PendingRequests {
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
            (!waiter.state.is_paused()).then_some((*id, turn))
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

    /// The number of calls that wait for the answer to a question.
    pub(crate) fn questioned(&self) -> usize {
        let waiters = self.waiters.lock();
        let calls = waiters.by_id.values().filter(|waiter| waiter.call);
        calls.filter(|waiter| waiter.state.is_paused()).count()
    }
}
