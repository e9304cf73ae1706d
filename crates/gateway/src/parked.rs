//! Calls that wait for their client to return with an answer.
//!
//! A modern client gets the question of a legacy server as a result, with a
//! `requestState`, and calls again; the server is still waiting. Its call is
//! parked here meanwhile and never started twice. The state is sealed: bound to
//! the principal and the request that may return it, and to a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::activity::CallWatch;
use super::call::Call;
use super::questions::Questions;
use super::seal::{Seal, SealPurpose, unix_seconds};
use fleet::{CallStream, Slot};
use store::EntryId;
use wire::{RpcError, code, object};

/// How long the user may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
const MAX_PARKED: usize = 1000;
const MAX_PER_PRINCIPAL: usize = 64;

/// A call whose server waits for answers.
pub(super) struct ParkedCall {
    pub stream: Option<CallStream>,
    pub questions: Questions,
    pub watch: CallWatch,
    /// The number of questions of the call so far.
    pub count: u32,
}

/// All parked calls, by a random number.
#[derive(Clone)]
pub(super) struct ParkedCalls {
    calls: Arc<Mutex<HashMap<u128, ParkedEntry>>>,
    seal: Arc<Seal>,
}

struct ParkedEntry {
    principal: Arc<str>,
    owner: Arc<str>,
    until: Instant,
    call: ParkedCall,
}

impl ParkedCalls {
    pub(crate) fn new(seal: Arc<Seal>) -> ParkedCalls {
        ParkedCalls {
            calls: Arc::default(),
            seal,
        }
    }

    /// Parks a call until its client returns, 10 minutes at most. Returns the
    /// `requestState` for that.
    pub(crate) fn park(&self, call: &Call, parked: ParkedCall) -> String {
        let number = self.put(&call.request.slot, parked);
        self.sealed(call, Some(number))
    }

    /// The `requestState` for a call that is started again.
    pub(crate) fn restart_state(&self, call: &Call) -> String {
        self.sealed(call, None)
    }

    /// Without the number of a parked call, the call is started again.
    fn sealed(&self, call: &Call, number: Option<u128>) -> String {
        let until = unix_seconds() + PATIENCE.as_secs();
        let mut state = Vec::with_capacity(STATE_LENGTH);
        state.push(u8::from(number.is_some()));
        state.extend(number.unwrap_or_default().to_be_bytes());
        state.extend(call.digest());
        state.extend(until.to_be_bytes());
        let principal = &call.request.slot.principal;
        self.seal.seal(SealPurpose::RequestState, principal, &state)
    }

    /// The parked call that `state`, the `requestState` of a repeated call,
    /// identifies; `None` if the call is started again.
    pub(crate) fn take(
        &self,
        call: &Call,
        state: &RawValue,
    ) -> Result<Option<ParkedCall>, RpcError> {
        let expired = || {
            let text = "requestState: is not valid any more; make the call again without it";
            RpcError::new(code::INVALID_PARAMS, text)
        };
        let principal = &call.request.slot.principal;
        let text = object::text(state).ok_or_else(expired)?;
        let bytes = self.seal.open(SealPurpose::RequestState, principal, &text);
        let state = bytes.and_then(|bytes| opened(&bytes, &call.digest()));
        let parked = state.ok_or_else(expired)?.map(|number| {
            let parked = self.remove(principal, number);
            parked.ok_or_else(expired)
        });
        parked.transpose()
    }

    /// If too many calls are parked, the oldest one of the same principal is
    /// dropped, or of the owner with most calls. Its unanswered questions are
    /// refused to their servers.
    fn put(&self, slot: &Slot, call: ParkedCall) -> u128 {
        let number = uuid::Uuid::new_v4().as_u128();
        let until = Instant::now() + PATIENCE;
        let entry = ParkedEntry {
            principal: slot.principal.clone(),
            owner: slot.owner.clone(),
            until,
            call,
        };
        let displaced = {
            let mut entries = self.calls.lock();
            let displaced = displaced(&entries, &slot.principal);
            let displaced = displaced.and_then(|number| entries.remove(&number));
            entries.insert(number, entry);
            displaced
        };
        // Dropped outside the lock: that refuses and cancels.
        drop(displaced);
        let calls = Arc::downgrade(&self.calls);
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            if let Some(calls) = calls.upgrade() {
                let late = calls.lock().remove(&number);
                drop(late);
            }
        });
        number
    }

    fn remove(&self, principal: &Arc<str>, number: u128) -> Option<ParkedCall> {
        let mut entries = self.calls.lock();
        let entry = entries.get(&number)?;
        if entry.principal != *principal || entry.until <= Instant::now() {
            return None;
        }
        entries.remove(&number).map(|entry| entry.call)
    }

    /// Cancels the calls of entries for which `revoked` is true.
    pub(crate) fn cancel_revoked(&self, revoked: impl Fn(EntryId) -> bool) {
        let is_revoked = |entry: &mut ParkedEntry| {
            let id = entry.principal.strip_prefix("entry:");
            let id = id.and_then(|id| id.parse().ok());
            id.is_some_and(|id| revoked(EntryId(id)))
        };
        let cancelled: Vec<_> = self
            .calls
            .lock()
            .extract_if(|_, entry| is_revoked(entry))
            .collect();
        // Dropped outside the lock: that refuses and cancels.
        drop(cancelled);
    }
}

/// The call that makes room for another of `principal`, if one must.
fn displaced(entries: &HashMap<u128, ParkedEntry>, principal: &Arc<str>) -> Option<u128> {
    let oldest = |among: &dyn Fn(&ParkedEntry) -> bool| {
        let own = entries.iter().filter(|(_, entry)| among(entry));
        own.min_by_key(|(_, entry)| entry.until)
            .map(|(number, _)| *number)
    };
    let own = |entry: &ParkedEntry| entry.principal == *principal;
    if entries.values().filter(|entry| own(entry)).count() >= MAX_PER_PRINCIPAL {
        return oldest(&own);
    }
    if entries.len() < MAX_PARKED {
        return None;
    }
    // By owner: a user with many entries is still one user.
    let mut counts: HashMap<&Arc<str>, usize> = HashMap::new();
    for entry in entries.values() {
        *counts.entry(&entry.owner).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    oldest(&|entry| entry.owner == *most)
}

const STATE_LENGTH: usize = 1 + 16 + 32 + 8;

/// The number in a state that [`ParkedCalls::sealed`] made; `None` if the state
/// is of another request, or has expired.
fn opened(bytes: &[u8], digest: &[u8; 32]) -> Option<Option<u128>> {
    let bytes: [u8; STATE_LENGTH] = bytes.try_into().ok()?;
    let number = u128::from_be_bytes(bytes[1..17].try_into().ok()?);
    let until = u64::from_be_bytes(bytes[49..].try_into().ok()?);
    if bytes[17..49] != *digest || until <= unix_seconds() {
        return None;
    }
    match bytes[0] {
        1 => Some(Some(number)),
        0 => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked_calls() -> ParkedCalls {
        let secret = config::Secret::new("a secret of thirty-two characters");
        ParkedCalls::new(Arc::new(Seal::new(&secret)))
    }

    fn slot(principal: &str, owner: &str) -> Slot {
        Slot {
            principal: principal.into(),
            owner: owner.into(),
            session: None,
            ended: None,
            capabilities: upstream::no_capabilities(),
        }
    }

    fn call() -> ParkedCall {
        ParkedCall {
            stream: None,
            questions: Questions::new(),
            watch: CallWatch::default(),
            count: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c7_one_who_never_returns_costs_nobody_else_a_question() {
        let parked = parked_calls();
        let (one, other) = (slot("one", "one"), slot("other", "other"));
        let kept = parked.put(&other, call());
        let first = parked.put(&one, call());
        for _ in 0..2 * MAX_PER_PRINCIPAL {
            tokio::time::advance(Duration::from_millis(1)).await;
            parked.put(&one, call());
        }
        let (one, other) = (&one.principal, &other.principal);
        assert_eq!(parked.calls.lock().len(), MAX_PER_PRINCIPAL + 1);
        assert!(parked.remove(one, first).is_none());
        assert!(parked.remove(one, kept).is_none(), "it is another's");
        assert!(parked.remove(other, kept).is_some());
        tokio::time::sleep(PATIENCE + Duration::from_secs(1)).await;
        assert_eq!(parked.calls.lock().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn c7_where_all_places_are_taken_the_one_with_most_makes_room() {
        let parked = parked_calls();
        // Their entries have no more than those of the others.
        for at in 0..MAX_PER_PRINCIPAL {
            parked.put(&slot(&format!("greedy {at}"), "greedy"), call());
        }
        let mut modest = Vec::new();
        while parked.calls.lock().len() < MAX_PARKED {
            let whose = format!("modest {}", modest.len() / 2);
            let whose = slot(&whose, &whose);
            modest.push((parked.put(&whose, call()), whose.principal));
        }
        let late = slot("late", "late");
        let number = parked.put(&late, call());
        assert_eq!(parked.calls.lock().len(), MAX_PARKED);
        assert!(parked.remove(&late.principal, number).is_some());
        let kept = |(number, whose): &(u128, Arc<str>)| parked.remove(whose, *number).is_some();
        assert!(modest.iter().all(kept));
    }
}
