//! Calls that wait for their client to come back with an answer.
//!
//! A modern client that is asked something gets its question as a result and
//! calls again; the server it was talking to, a legacy one, is still waiting.
//! The exchange is kept here meanwhile and never started twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::activity::Watch;
use super::exchange::Exchange;
use super::questions::Questions;
use crate::upstream::ServerRequest;

/// How long a person may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
const ALL: usize = 1000;
const OF_ONE: usize = 64;

/// An exchange whose server waits for answers.
pub(super) struct ParkedCall {
    pub exchange: Exchange,
    pub asked: Questions,
    pub watch: Watch,
    /// The next key.
    pub count: u32,
}

/// The calls that wait, by a number nobody can guess.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<HashMap<u128, Entry>>>);

struct Entry {
    principal: Arc<str>,
    until: Instant,
    call: ParkedCall,
}

impl Parked {
    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call until it is taken or its time is over; `None` if there
    /// are too many. Then, as when its time is over, the server is refused.
    pub fn put(&self, principal: &Arc<str>, call: ParkedCall) -> Option<u128> {
        let number = uuid::Uuid::new_v4().as_u128();
        let until = Instant::now() + PATIENCE;
        let asked = call.asked.values().next().map(ServerRequest::crowded);
        {
            let mut entries = self.lock();
            let own = entries
                .values()
                .filter(|entry| entry.principal == *principal);
            if entries.len() >= ALL || own.count() >= OF_ONE {
                return None;
            }
            let principal = principal.clone();
            entries.insert(
                number,
                Entry {
                    principal,
                    until,
                    call,
                },
            );
        }
        let parked = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let crowded = async {
                match asked {
                    Some(crowded) => crowded.await,
                    None => std::future::pending().await,
                }
            };
            // One that serves its calls one at a time must not be kept from
            // all others by a client that may never come back.
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = crowded => {}
            }
            if let Some(entries) = parked.upgrade() {
                // Dropped outside the lock: that refuses and cancels.
                let late = entries
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&number);
                drop(late);
            }
        });
        Some(number)
    }

    /// Takes a call back, once.
    pub fn take(&self, principal: &Arc<str>, number: u128) -> Option<ParkedCall> {
        let mut entries = self.lock();
        let entry = entries.get(&number)?;
        if entry.principal != *principal || entry.until <= Instant::now() {
            return None;
        }
        entries.remove(&number).map(|entry| entry.call)
    }
}
