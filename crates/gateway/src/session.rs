//! The sessions of legacy clients.
//!
//! A session's id holds all that was agreed when the session was opened, so
//! opening one takes no memory, and it is valid after a restart and on another
//! replica. The rest of a session, [`Session`], is in memory while it is used.

mod live;
mod memory;
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
use memory::StreamMemory;
pub use stream::{MessageStream, StreamEvent, StreamReader};
use wire::meta::LogLevel;
use wire::{Id, RpcError, code};

/// Requests of one client, and questions to one client, at a time.
const MAX_RUNNING: usize = 1000;
const MAX_ASKED: usize = 1000;

/// A client's answer to a question.
pub type ClientAnswer = Result<Box<RawValue>, RpcError>;

/// A question to a client.
pub struct ClientQuestion {
    pub id: u64,
    /// The message to send.
    pub message: Bytes,
    /// Dropping it forgets the question.
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
    /// Cancelled when the session has ended or is removed from memory.
    ended: CancellationToken,
    /// The stream for messages that belong to no request.
    own: Arc<MessageStream>,
    memory: Arc<StreamMemory>,
    /// When it was used last, in milliseconds of [`Sessions`]' clock.
    used: AtomicU64,
    /// Set when the session has state that its id does not hold.
    relied_on: AtomicBool,
    /// The lock is held for a map operation, never across an await.
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    level: Option<LogLevel>,
    asked: HashMap<u64, oneshot::Sender<ClientAnswer>>,
    /// By the client's id as written.
    running: HashMap<Arc<str>, (u64, CancellationToken)>,
    started: u64,
    /// The streams that a client can resume.
    streams: HashMap<u64, Arc<MessageStream>>,
}

impl Session {
    /// Unique; not the id that the client sends.
    pub fn key(&self) -> Arc<str> {
        self.key.clone()
    }

    /// Cancelled when nothing can reach the client any more. For callers that
    /// keep state for the session elsewhere: the session stays in memory longer.
    pub fn ended(&self) -> &CancellationToken {
        self.relied_on.store(true, Ordering::Relaxed);
        &self.ended
    }

    /// Like [`Session::ended`], for state that is made anew with the session.
    pub(super) fn forgotten(&self) -> &CancellationToken {
        &self.ended
    }

    fn is_of(&self, caller: &Caller) -> bool {
        self.owner.principal == caller.principal && self.owner.scope == caller.scope
    }

    /// Registers a question; the caller sends it.
    pub fn ask(&self, method: &str, params: Option<&RawValue>) -> ClientQuestion {
        let (sender, answer) = oneshot::channel();
        // Random, so that an answer to a question of an earlier run matches
        // none, and within the integers that every JSON reader keeps exactly.
        let id = u64::from_be_bytes(random()) >> 12;
        let message = wire::request(id, method, params).into();
        let mut state = self.state.lock();
        state.asked.retain(|_, waiting| !waiting.is_closed());
        if state.asked.len() < MAX_ASKED && !self.ended.is_cancelled() {
            state.asked.insert(id, sender);
        } else {
            drop(state);
            let full = RpcError::new(code::INTERNAL, "too many open questions to this client");
            // The receiver is alive: it is returned below.
            let _ = sender.send(Err(full));
        }
        ClientQuestion {
            id,
            message,
            answer,
        }
    }

    /// Takes the client's answer; false if there is no such question.
    pub fn answer(&self, id: &RawValue, answer: ClientAnswer) -> bool {
        let id = Id::new(id).ok().and_then(Id::as_u64);
        id.is_some_and(|id| self.settle(id, answer))
    }

    /// Ends a question; false if there is none.
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

    /// Sends a message that belongs to no request: on the session's own stream,
    /// buffered within bounds while the client does not read it.
    pub fn send(&self, message: Bytes) {
        self.own.put(message);
    }

    /// The stream for messages that belong to no request.
    pub fn own(&self) -> &Arc<MessageStream> {
        &self.own
    }

    /// Registers a request of the client; `None` if too many are running.
    pub fn begin(self: &Arc<Session>, id: &RawValue) -> Option<RunningRequest> {
        let mut state = self.state.lock();
        if state.running.len() >= MAX_RUNNING || self.ended.is_cancelled() {
            return None;
        }
        state.started += 1;
        let which = state.started;
        let cancelled = self.ended.child_token();
        let id: Arc<str> = id.get().into();
        let entry = (which, cancelled.clone());
        state.running.insert(id.clone(), entry);
        drop(state);
        Some(RunningRequest {
            session: self.clone(),
            id,
            which,
            cancelled,
        })
    }

    /// Cancels a request of the client.
    pub fn cancel(&self, id: &RawValue) {
        if let Some((_, token)) = self.state.lock().running.remove(id.get()) {
            token.cancel();
        }
    }

    /// A stream for the answer to a request; the client cannot resume it yet.
    pub fn stream(&self) -> Arc<MessageStream> {
        MessageStream::new(self.memory.clone(), true)
    }

    /// Lets the client resume the stream from now on.
    pub fn announce(self: &Arc<Session>, stream: &Arc<MessageStream>) {
        self.state
            .lock()
            .streams
            .insert(stream.id(), stream.clone());
        if stream.is_closed() {
            self.retire(stream);
        }
    }

    /// Keeps an ended stream for a while, for a client that missed its end.
    pub fn retire(self: &Arc<Session>, stream: &MessageStream) {
        if self.state.lock().streams.contains_key(&stream.id()) {
            self.memory.retire(Arc::downgrade(self), stream.id());
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

    /// Whether a request runs or a client reads its stream.
    fn is_busy(&self) -> bool {
        self.own.is_read() || !self.state.lock().running.is_empty()
    }

    /// Whether its id holds all of its state: removed from memory, it comes back
    /// with the next request.
    fn is_plain(&self) -> bool {
        let state = self.state.lock();
        let empty = state.streams.is_empty() && state.asked.is_empty();
        empty && !self.relied_on.load(Ordering::Relaxed) && !self.own.has_unread()
    }

    /// Ends it and cancels all that runs for the client.
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
    id: Arc<str>,
    which: u64,
    cancelled: CancellationToken,
}

impl RunningRequest {
    /// The client's id as written.
    pub fn id(&self) -> Arc<str> {
        self.id.clone()
    }

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
