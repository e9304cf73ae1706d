//! Turns of the calls that may cause questions.
//!
//! A message on a pipe does not name the call that a question belongs to. Two
//! calls of one client that are likely to ask therefore start one after the
//! other: the second starts when the first has asked, or has ended. The wait
//! for a turn is limited, and calls that are known not to ask need none.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::UpstreamCall;
use super::asking::{QuestionHistory, subject};
use super::request_state::RequestState;

/// How long a call that is known to ask waits for its turn,
const KNOWN: Duration = Duration::from_secs(5);
/// and how long a call waits of which nothing is known yet.
const UNKNOWN: Duration = Duration::from_secs(2);
/// Questions that one call asks together arrive within this time.
pub(super) const TOGETHER: Duration = Duration::from_millis(100);

/// The turns of one connection, by client.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<Arc<str>, Arc<Semaphore>>>);

impl Turns {
    /// The turn of one call, not yet taken.
    pub(crate) fn turn(&self, call: &UpstreamCall<'_>, asking: &QuestionHistory) -> Turn {
        let subject = subject(call);
        let patience = match asking.asks(&subject) {
            Some(true) => Some(KNOWN),
            None => Some(UNKNOWN),
            Some(false) => None,
        };
        Turn {
            place: patience.zip(call.whose).map(|(patience, whose)| TurnQueue {
                turns: self.of(whose),
                patience,
            }),
            subject,
            held: Mutex::default(),
            questions: AtomicU64::new(0),
        }
    }

    fn of(&self, whose: &Arc<str>) -> Arc<Semaphore> {
        let mut turns = self.0.lock();
        if let Some(known) = turns.get(whose) {
            return known.clone();
        }
        turns.retain(|_, unused| Arc::strong_count(unused) > 1);
        let new = Arc::new(Semaphore::new(1));
        turns.insert(whose.clone(), new.clone());
        new
    }
}

/// The turn of one call on a connection to a server that asks.
pub(crate) struct Turn {
    pub subject: String,
    place: Option<TurnQueue>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    /// The number of questions that the call has caused.
    questions: AtomicU64,
}

#[derive(Clone)]
struct TurnQueue {
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl Turn {
    /// Waits for the turn; continues without it if that takes too long, or if
    /// another call has shown meanwhile that none is needed.
    pub(crate) async fn take(&self, asking: &QuestionHistory) {
        let Some(TurnQueue { turns, patience }) = &self.place else {
            return;
        };
        tokio::select! {
            biased;
            turn = turns.clone().acquire_owned() => *self.held.lock() = turn.ok(),
            () = asking.is_quiet(&self.subject) => {}
            () = tokio::time::sleep(*patience) => {}
        }
    }

    /// Releases the turn when the call ends, in any way.
    pub(crate) fn end_with_call(&self) -> impl Drop {
        struct TurnEnd<'a>(&'a Turn);
        impl Drop for TurnEnd<'_> {
            fn drop(&mut self) {
                drop(self.0.held.lock().take());
            }
        }
        TurnEnd(self)
    }

    /// Records a question of the call. Unless it is answered by then, the turn
    /// passes on once no more questions come with this one: the server's next
    /// question belongs to another call. This runs in its own task, since no
    /// task may be polling the call while its client is away.
    pub(crate) fn was_asked(self: &Arc<Self>, request: &Arc<RequestState>) {
        let number = self.questions.fetch_add(1, Ordering::Relaxed) + 1;
        let (turn, request) = (self.clone(), request.clone());
        tokio::spawn(async move {
            tokio::time::sleep(TOGETHER).await;
            let last = turn.questions.load(Ordering::Relaxed) == number;
            if last && request.is_paused() {
                drop(turn.held.lock().take());
            }
        });
    }

    /// Whether the call has caused no question.
    pub(crate) fn unasked(&self) -> bool {
        self.questions.load(Ordering::Relaxed) == 0
    }

    /// Sends an answer in the call's turn: the call may ask again after it.
    pub(crate) fn in_turn(self: Arc<Self>, send: impl FnOnce() + Send + 'static) {
        let Some(place) = self.place.clone() else {
            return send();
        };
        let in_turn = {
            let mut held = self.held.lock();
            if held.is_none() {
                *held = place.turns.clone().try_acquire_owned().ok();
            }
            held.is_some()
        };
        if in_turn {
            return send();
        }
        tokio::spawn(async move {
            let turn = place.turns.clone().acquire_owned();
            if let Ok(turn) = tokio::time::timeout(place.patience, turn).await {
                *self.held.lock() = turn.ok();
            }
            send();
        });
    }
}
