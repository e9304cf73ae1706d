//! Calls that wait for their client to come back with an answer.
//!
//! A modern client that is asked something gets its question as a result and
//! calls again; the server it was talking to, a legacy one, is still waiting.
//! The call is kept here meanwhile and never started twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::activity::CallWatch;
use super::questions::Questions;
use fleet::{CallStream, Slot};
use store::EntryId;

/// How long a person may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
const ALL: usize = 1000;
const OF_ONE: usize = 64;

/// A call whose server waits for answers.
pub(super) struct ParkedCall {
    pub stream: Option<CallStream>,
    pub asked: Questions,
    pub watch: CallWatch,
    /// The next key.
    pub count: u32,
}

/// The calls that wait, by a number nobody can guess.
#[derive(Clone, Default)]
pub(super) struct ParkedCalls(Arc<Mutex<HashMap<u128, ParkedEntry>>>);

struct ParkedEntry {
    principal: Arc<str>,
    owner: Arc<str>,
    until: Instant,
    call: ParkedCall,
}

impl ParkedCalls {
    /// Keeps a call until it is taken or its time is over. Where too many
    /// wait, the oldest one of the same principal makes room, or of the owner
    /// who has most. Whatever goes unanswered is refused to its server.
    pub(crate) fn put(&self, whose: &Slot, call: ParkedCall) -> u128 {
        let number = uuid::Uuid::new_v4().as_u128();
        let until = Instant::now() + PATIENCE;
        let entry = ParkedEntry {
            principal: whose.principal.clone(),
            owner: whose.owner.clone(),
            until,
            call,
        };
        let displaced = {
            let mut entries = self.0.lock();
            let displaced = displaced(&entries, &whose.principal);
            let displaced = displaced.and_then(|number| entries.remove(&number));
            entries.insert(number, entry);
            displaced
        };
        // Dropped outside the lock: that refuses and cancels.
        drop(displaced);
        let parked = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            if let Some(entries) = parked.upgrade() {
                let late = entries.lock().remove(&number);
                drop(late);
            }
        });
        number
    }

    /// Gives up the calls of entries that `gone` says are open no more.
    pub(crate) fn end_of(&self, gone: impl Fn(EntryId) -> bool) {
        let is_gone = |entry: &mut ParkedEntry| {
            let id = entry.principal.strip_prefix("entry:");
            let id = id.and_then(|id| id.parse().ok());
            id.is_some_and(|id| gone(EntryId(id)))
        };
        let ended: Vec<_> = self
            .0
            .lock()
            .extract_if(|_, entry| is_gone(entry))
            .collect();
        // Dropped outside the lock: that refuses and cancels.
        drop(ended);
    }

    /// Takes a call back, once.
    pub(crate) fn take(&self, principal: &Arc<str>, number: u128) -> Option<ParkedCall> {
        let mut entries = self.0.lock();
        let entry = entries.get(&number)?;
        if entry.principal != *principal || entry.until <= Instant::now() {
            return None;
        }
        entries.remove(&number).map(|entry| entry.call)
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
    if entries.values().filter(|entry| own(entry)).count() >= OF_ONE {
        return oldest(&own);
    }
    if entries.len() < ALL {
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

#[cfg(test)]
mod tests {
    use super::*;

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
            asked: Questions::new(),
            watch: CallWatch::default(),
            count: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c7_one_who_never_returns_costs_nobody_else_a_question() {
        let parked = ParkedCalls::default();
        let (one, other) = (slot("one", "one"), slot("other", "other"));
        let kept = parked.put(&other, call());
        let first = parked.put(&one, call());
        for _ in 0..2 * OF_ONE {
            tokio::time::advance(Duration::from_millis(1)).await;
            parked.put(&one, call());
        }
        let (one, other) = (&one.principal, &other.principal);
        assert_eq!(parked.0.lock().len(), OF_ONE + 1);
        assert!(parked.take(one, first).is_none());
        assert!(parked.take(one, kept).is_none(), "it is another's");
        assert!(parked.take(other, kept).is_some());
        tokio::time::sleep(PATIENCE + Duration::from_secs(1)).await;
        assert_eq!(parked.0.lock().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn c7_where_all_places_are_taken_the_one_with_most_makes_room() {
        let parked = ParkedCalls::default();
        // Their entries have no more than those of the others.
        for at in 0..OF_ONE {
            parked.put(&slot(&format!("greedy {at}"), "greedy"), call());
        }
        let mut modest = Vec::new();
        while parked.0.lock().len() < ALL {
            let whose = format!("modest {}", modest.len() / 2);
            let whose = slot(&whose, &whose);
            modest.push((parked.put(&whose, call()), whose.principal));
        }
        let late = slot("late", "late");
        let number = parked.put(&late, call());
        assert_eq!(parked.0.lock().len(), ALL);
        assert!(parked.take(&late.principal, number).is_some());
        let kept = |(number, whose): &(u128, Arc<str>)| parked.take(whose, *number).is_some();
        assert!(modest.iter().all(kept));
    }
}
