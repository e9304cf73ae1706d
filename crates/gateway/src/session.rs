//! The sessions of legacy clients.
//!
//! A session's id says all that was agreed when it was opened, so opening one
//! costs nothing, and a restart or another replica knows it. What else there
//! is of a session, [`Session`], lives while it is used.

mod live;
mod shelf;
mod stream;
#[cfg(test)]
mod tests;
mod token;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::seal::random;
use super::{Caller, Scope};
pub use live::{NoSession, Sessions};
use shelf::StreamMemory;
pub use stream::{MessageStream, StreamEvent, StreamReader};
use wire::meta::LogLevel;
use wire::{Id, RpcError, code};

/// Most requests of one client, and to one client, at a time.
const MAX_RUNNING: usize = 1000;
const MAX_ASKED: usize = 1000;

/// What a client answered to a request of ours.
pub type ClientAnswer = Result<Box<RawValue>, RpcError>;

/// A request to a client.
pub struct ClientQuestion {
    pub id: u64,
    /// What to send.
    pub message: Bytes,
    /// Dropping it forgets the request.
    pub answer: oneshot::Receiver<ClientAnswer>,
}

/// One legacy client's session, the part that lives in memory.
pub struct Session {
    /// The revision agreed on.
    pub version: &'static str,
    pub capabilities: Arc<RawValue>,
    owner: Caller,
    expires: u64,
    serial: token::Serial,
    key: Arc<str>,
    /// Cancelled when the session is over, or its memory is given up.
    ended: CancellationToken,
    /// What belongs to no request.
    own: Arc<MessageStream>,
    shelf: Arc<StreamMemory>,
    /// Milliseconds of the registry's clock.
    used: AtomicU64,
    /// Something was done that its id does not tell: it is more than a
    /// greeting.
    relied_on: AtomicBool,
    /// The lock is held for a map operation, never across an await.
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    level: Option<LogLevel>,
    asked: HashMap<u64, oneshot::Sender<ClientAnswer>>,
    /// By the client's id as written.
    running: HashMap<Box<str>, (u64, CancellationToken)>,
    started: u64,
    /// The streams a client can come back to.
    streams: HashMap<u64, Arc<MessageStream>>,
}

impl Session {
    /// Unlike that of any other session; not what the client sends.
    pub fn key(&self) -> Arc<str> {
        self.key.clone()
    }

    /// Cancelled when nothing can reach the client any more. Whoever asks for
    /// it keeps something for the session elsewhere.
    pub fn ended(&self) -> &CancellationToken {
        self.relied_on.store(true, Ordering::Relaxed);
        &self.ended
    }

    /// Like [`Session::ended`], for what is made anew with the session.
    pub(super) fn forgotten(&self) -> &CancellationToken {
        &self.ended
    }

    fn is_of(&self, caller: &Caller) -> bool {
        self.owner.principal == caller.principal && self.owner.scope == caller.scope
    }

    /// A request to the client, which is still to be sent.
    pub fn ask(&self, method: &str, params: Option<&RawValue>) -> ClientQuestion {
        let (sender, answer) = oneshot::channel();
        // Random, within what every peer reads exactly: an answer to an
        // earlier run's question answers nothing here.
        let id = u64::from_be_bytes(random()) >> 12;
        let message = wire::request(id, method, params).into();
        let mut state = self.state.lock();
        state.asked.retain(|_, waiting| !waiting.is_closed());
        if state.asked.len() < MAX_ASKED && !self.ended.is_cancelled() {
            state.asked.insert(id, sender);
        } else {
            drop(state);
            let full = RpcError::new(code::INTERNAL, "too many questions are open");
            // The receiver is in our hands.
            let _ = sender.send(Err(full));
        }
        ClientQuestion {
            id,
            message,
            answer,
        }
    }

    /// The client's answer to something we asked; false if it was not asked.
    pub fn answer(&self, id: &RawValue, answer: ClientAnswer) -> bool {
        let id = Id::new(id).ok().and_then(Id::as_u64);
        id.is_some_and(|id| self.settle(id, answer))
    }

    /// What comes of something we asked; false if it was not asked.
    pub fn settle(&self, id: u64, answer: ClientAnswer) -> bool {
        let waiting = self.state.lock().asked.remove(&id);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    /// The level from which on the client wants log messages.
    pub fn level(&self) -> Option<LogLevel> {
        self.state.lock().level
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        self.relied_on.store(true, Ordering::Relaxed);
        self.state.lock().level = Some(level);
    }

    /// Sends something that belongs to no request: on the session's own
    /// stream, buffered within bounds while there is none.
    pub fn tell(&self, message: Bytes) {
        self.own.put(message);
    }

    /// The stream of what belongs to no request.
    pub fn own(&self) -> &Arc<MessageStream> {
        &self.own
    }

    /// Enters a request of the client. None if it has too many.
    pub fn begin(self: &Arc<Session>, id: &RawValue) -> Option<RunningRequest> {
        let mut state = self.state.lock();
        if state.running.len() >= MAX_RUNNING || self.ended.is_cancelled() {
            return None;
        }
        state.started += 1;
        let which = state.started;
        let cancelled = self.ended.child_token();
        let entry = (which, cancelled.clone());
        state.running.insert(id.get().into(), entry);
        drop(state);
        Some(RunningRequest {
            session: self.clone(),
            id: id.get().into(),
            which,
            cancelled,
        })
    }

    /// The client does not want the answer to its request any more.
    pub fn cancel(&self, id: &RawValue) {
        if let Some((_, token)) = self.state.lock().running.remove(id.get()) {
            token.cancel();
        }
    }

    /// A stream for the answer to a request, not yet known to the client.
    pub fn stream(&self) -> Arc<MessageStream> {
        MessageStream::new(self.shelf.clone(), true)
    }

    /// The client learns of the stream: from now on it can come back to it.
    pub fn announce(self: &Arc<Session>, stream: &Arc<MessageStream>) {
        self.state
            .lock()
            .streams
            .insert(stream.id(), stream.clone());
        if stream.is_closed() {
            self.retire(stream);
        }
    }

    /// The stream has ended: it is kept a while for a client that missed it.
    pub fn retire(self: &Arc<Session>, stream: &MessageStream) {
        if self.state.lock().streams.contains_key(&stream.id()) {
            self.shelf.retire(Arc::downgrade(self), stream.id());
        }
    }

    /// The stream with this id.
    pub fn find_stream(&self, id: u64) -> Option<Arc<MessageStream>> {
        if id == self.own.id() {
            return Some(self.own.clone());
        }
        self.state.lock().streams.get(&id).cloned()
    }

    fn forget(&self, stream: u64) {
        // Taken out before it is dropped: dropping it is work of its own.
        let _forgotten = self.state.lock().streams.remove(&stream);
    }

    /// Whether somebody would miss it now.
    fn is_busy(&self) -> bool {
        self.own.is_read() || !self.state.lock().running.is_empty()
    }

    /// Whether its id tells all there is to it: forgotten, it comes back with
    /// the next request.
    fn is_plain(&self) -> bool {
        let state = self.state.lock();
        let empty = state.streams.is_empty() && state.asked.is_empty();
        empty && !self.relied_on.load(Ordering::Relaxed) && !self.own.has_unread()
    }

    /// Ends it: whatever runs for the client is given up.
    pub fn end(&self) {
        self.ended.cancel();
        self.own.close();
        let mut state = self.state.lock();
        let asked = std::mem::take(&mut state.asked);
        let streams = std::mem::take(&mut state.streams);
        drop(state);
        for stream in streams.values() {
            stream.close();
        }
        drop(asked);
    }

    fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

/// A request of the client that is being answered.
pub struct RunningRequest {
    session: Arc<Session>,
    id: Box<str>,
    which: u64,
    cancelled: CancellationToken,
}

impl RunningRequest {
    /// Done when the client has cancelled it, or its session is over.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        // An id that was used again belongs to the later request.
        if state
            .running
            .get(&self.id)
            .is_some_and(|(which, _)| *which == self.which)
        {
            state.running.remove(&self.id);
        }
    }
}
