//! The client's requests that have no response yet.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use wire::Era;

/// The limit that a gateway has for one session.
const MOST: usize = 1000;
const BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct OpenRequests {
    /// The lock is held for a map operation.
    state: Mutex<RequestTable>,
    /// The number of calls that end by themselves, unlike subscriptions.
    finite: watch::Sender<usize>,
}

#[derive(Default)]
struct RequestTable {
    /// By id as written.
    calls: HashMap<Box<str>, OpenRequest>,
    entered: u64,
    bytes: usize,
}

struct OpenRequest {
    number: u64,
    era: Era,
    unwanted: CancellationToken,
    begun: watch::Sender<bool>,
}

/// The way to cancel a request.
pub(super) enum CancelRoute {
    /// Closing the connection cancels it.
    Modern,
    /// The gateway needs the notification, once it knows the request.
    Legacy(watch::Receiver<bool>),
    /// The request has its response already, or never existed.
    Unknown,
}

impl OpenRequests {
    /// Enters the requests of one line. `None` if there are too many.
    pub(super) fn enter(
        self: &Arc<OpenRequests>,
        ids: Vec<Box<RawValue>>,
        era: Era,
        size: usize,
    ) -> Option<ClientCall> {
        let mut state = self.state.lock();
        let room = state.calls.len() + ids.len() <= MOST
            && (state.bytes == 0 || state.bytes + size <= BYTES);
        if !room {
            return None;
        }
        state.entered += 1;
        state.bytes += size;
        self.finite.send_modify(|count| *count += 1);
        let mut call = self.aside();
        call.number = state.entered;
        call.open = ids.iter().map(|id| id.get().into()).collect();
        (call.ids, call.size, call.finite) = (ids, size, true);
        for id in &call.ids {
            let entry = OpenRequest {
                number: call.number,
                era,
                unwanted: call.unwanted.clone(),
                begun: call.begun.clone(),
            };
            state.calls.insert(id.get().into(), entry);
        }
        Some(call)
    }

    /// A call of the bridge itself, which the client does not wait for.
    pub(super) fn aside(self: &Arc<OpenRequests>) -> ClientCall {
        ClientCall {
            running: self.clone(),
            number: 0,
            ids: Vec::new(),
            open: Vec::new(),
            size: 0,
            finite: false,
            succeeded: false,
            unwanted: CancellationToken::new(),
            begun: watch::Sender::new(false),
        }
    }

    pub(super) fn cancel(&self, id: &RawValue) -> CancelRoute {
        let state = self.state.lock();
        let Some(entry) = state.calls.get(id.get()) else {
            return CancelRoute::Unknown;
        };
        // Cancelling one request of a batch must not drop the other responses.
        let same = |other: &&OpenRequest| other.number == entry.number;
        if state.calls.values().filter(same).count() == 1 {
            entry.unwanted.cancel();
        }
        match entry.era {
            Era::Modern => CancelRoute::Modern,
            Era::Legacy => CancelRoute::Legacy(entry.begun.subscribe()),
        }
    }

    /// Waits until no finite request is open.
    pub(super) async fn none(&self) {
        let _ = self.finite.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// The requests of one line, until all have a response.
pub(super) struct ClientCall {
    running: Arc<OpenRequests>,
    number: u64,
    ids: Vec<Box<RawValue>>,
    /// The requests without a response.
    open: Vec<Box<str>>,
    size: usize,
    finite: bool,
    succeeded: bool,
    /// Cancelled when the client has cancelled the request.
    pub unwanted: CancellationToken,
    begun: watch::Sender<bool>,
}

impl ClientCall {
    /// Marks a request that lasts until the client cancels it.
    pub(super) fn is_endless(&mut self) {
        if std::mem::take(&mut self.finite) {
            self.running.finite.send_modify(|count| *count -= 1);
        }
    }

    /// The gateway has received the request.
    pub(super) fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// Records a response, if it belongs to this call.
    pub(super) fn answer(&mut self, id: &RawValue, is_result: bool) {
        let before = self.open.len();
        self.open.retain(|open| **open != *id.get());
        self.succeeded |= is_result && self.open.len() < before;
    }

    /// Whether any response is a result.
    pub(super) fn has_succeeded(&self) -> bool {
        self.succeeded
    }

    pub(super) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// The requests that the client still waits for.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = &RawValue> {
        let wanted = !self.unwanted.is_cancelled();
        let open = move |id: &&RawValue| wanted && self.open.iter().any(|open| **open == *id.get());
        self.ids.iter().map(|id| &**id).filter(open)
    }
}

impl Drop for ClientCall {
    fn drop(&mut self) {
        let mut state = self.running.state.lock();
        state.bytes -= self.size;
        for id in &self.ids {
            // A reused id belongs to the later request.
            let entry = state.calls.get(id.get());
            if entry.is_some_and(|entry| entry.number == self.number) {
                state.calls.remove(id.get());
            }
        }
        drop(state);
        self.is_endless();
    }
}
