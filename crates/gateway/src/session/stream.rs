//! One stream of messages to a legacy client: in order, within bounds, and kept
//! for a while so that a client that lost its connection can resume it.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::memory::StreamMemory;
use crate::body::MessageBody;
use crate::seal::random;

/// Messages and bytes that one stream keeps, answers aside.
const MAX_KEPT: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Bytes that a message takes beside its text.
const OVERHEAD: usize = 64;

pub struct MessageStream {
    id: u64,
    resumable: bool,
    memory: Arc<StreamMemory>,
    /// The lock is held for moments, never across an await.
    state: Mutex<StreamState>,
    /// Wakes the reader: there is a new message.
    news: Notify,
    /// Wakes writers: the reader has taken a message, or has left.
    room: Notify,
}

#[derive(Default)]
struct StreamState {
    kept: VecDeque<StreamEvent>,
    /// The number of the newest message; the first is 1.
    newest: u64,
    /// The last one that a reader took.
    taken: u64,
    bytes: usize,
    /// The current reader's number; a later one replaces it.
    reader: Option<u64>,
    readers: u64,
    closed: bool,
}

/// A message of a stream. Numbers grow; some may be missing.
#[derive(Clone, Debug)]
pub struct StreamEvent {
    pub number: u64,
    pub message: MessageBody,
    /// An answer to the client, which is never dropped for want of room.
    pub answer: bool,
}

impl StreamEvent {
    fn cost(&self) -> usize {
        self.message.size() + OVERHEAD
    }
}

impl StreamState {
    fn position(&self, after: u64) -> usize {
        self.kept.partition_point(|event| event.number <= after)
    }

    /// Whether the reader is too far behind to add a message.
    fn waits(&self, memory: &StreamMemory) -> bool {
        let unread = self.kept.len() - self.position(self.taken);
        let much = self.bytes > MAX_BYTES || memory.is_full();
        self.reader.is_some() && (unread >= MAX_KEPT || (unread > 0 && much))
    }

    fn drop_at(&mut self, at: usize) -> usize {
        let cost = self.kept.remove(at).map_or(0, |event| event.cost());
        self.bytes -= cost;
        cost
    }

    /// The message to drop when there are too many: the oldest that was read, or
    /// any while there is no reader.
    fn dispensable(&self) -> Option<usize> {
        let idle = self.reader.is_none();
        self.kept
            .iter()
            .position(|event| !event.answer && (idle || event.number <= self.taken))
    }
}

impl MessageStream {
    pub(super) fn new(memory: Arc<StreamMemory>, resumable: bool) -> Arc<MessageStream> {
        Arc::new(MessageStream {
            id: next_id(),
            resumable,
            memory,
            state: Mutex::default(),
            news: Notify::new(),
            room: Notify::new(),
        })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Adds a message that a reader must not miss; waits for a reader that is
    /// behind. Without a reader the oldest messages are dropped.
    pub async fn push(&self, message: impl Into<MessageBody>, answer: bool) {
        let message = message.into();
        loop {
            let mut room = pin!(self.room.notified());
            room.as_mut().enable();
            {
                let mut state = self.state.lock();
                if !state.waits(&self.memory) {
                    self.add(&mut state, message, answer);
                    return;
                }
            }
            room.await;
        }
    }

    /// Adds an answer at once, however far behind the reader is.
    pub fn answer(&self, message: impl Into<MessageBody>) {
        self.add(&mut self.state.lock(), message.into(), true);
    }

    /// Adds a message that may be lost: it is dropped if the reader is behind.
    pub(super) fn put(&self, message: Bytes) {
        let mut state = self.state.lock();
        if state.waits(&self.memory) {
            return;
        }
        let unread = state.position(state.taken);
        if is_level(&message) && state.kept.range(unread..).any(|old| old.message == message) {
            return;
        }
        self.add(&mut state, message.into(), false);
    }

    fn add(&self, state: &mut StreamState, message: MessageBody, answer: bool) {
        if state.closed {
            return;
        }
        state.newest += 1;
        let event = StreamEvent {
            number: state.newest,
            message,
            answer,
        };
        state.bytes += event.cost();
        self.memory.take(event.cost());
        state.kept.push_back(event);
        while state.kept.len() > MAX_KEPT || state.bytes > MAX_BYTES || self.memory.is_full() {
            match state.dispensable().filter(|at| *at + 1 < state.kept.len()) {
                Some(at) => self.memory.give(state.drop_at(at)),
                None => break,
            }
        }
        self.news.notify_waiters();
    }

    /// Ends the stream.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.news.notify_waiters();
        self.room.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub fn is_read(&self) -> bool {
        self.state.lock().reader.is_some()
    }

    pub fn has_unread(&self) -> bool {
        let state = self.state.lock();
        state.position(state.taken) < state.kept.len()
    }

    /// Reads the unread messages; `None` while there is another reader.
    pub fn read(self: &Arc<MessageStream>) -> Option<StreamReader> {
        let mut state = self.state.lock();
        if state.reader.is_some() {
            return None;
        }
        let at = state.taken;
        Some(self.reader(&mut state, at))
    }

    /// Reads the messages after `number` and replaces the current reader. `None`
    /// if the stream has ended and there is none.
    pub fn resume(self: &Arc<MessageStream>, number: u64) -> Option<StreamReader> {
        let mut state = self.state.lock();
        let at = number.min(state.newest);
        if state.closed && state.position(at) == state.kept.len() {
            return None;
        }
        Some(self.reader(&mut state, at))
    }

    /// Reads the unread messages and replaces the current reader.
    pub fn resume_unread(self: &Arc<MessageStream>) -> Option<StreamReader> {
        let taken = self.state.lock().taken;
        self.resume(taken)
    }

    fn reader(self: &Arc<MessageStream>, state: &mut StreamState, at: u64) -> StreamReader {
        state.readers += 1;
        state.reader = Some(state.readers);
        state.taken = at;
        // Wakes the previous reader, so that it ends.
        self.news.notify_waiters();
        StreamReader {
            stream: self.clone(),
            which: state.readers,
        }
    }
}

/// Counted from a random start, so that an id of an earlier run means nothing.
fn next_id() -> u64 {
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(u64::from_be_bytes(random()) >> 1));
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether a message only reports a change: a second one adds nothing.
fn is_level(message: &[u8]) -> bool {
    let head = &message[..message.len().min(96)];
    let names = [&b"/list_changed\""[..], b"/resources/updated\""];
    names
        .iter()
        .any(|name| head.windows(name.len()).any(|part| part == *name))
}

impl Drop for MessageStream {
    fn drop(&mut self) {
        self.memory.give(self.state.lock().bytes);
    }
}

/// The reader of a stream; dropping it leaves the stream to the next.
pub struct StreamReader {
    stream: Arc<MessageStream>,
    which: u64,
}

impl StreamReader {
    /// The next message; `None` at the end, or when another reader has replaced
    /// this one. Cancel-safe.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        let stream = &*self.stream;
        loop {
            let mut news = pin!(stream.news.notified());
            news.as_mut().enable();
            {
                let mut state = stream.state.lock();
                if state.reader != Some(self.which) {
                    return None;
                }
                let at = state.position(state.taken);
                if let Some(kept) = state.kept.get_mut(at) {
                    let event = kept.clone();
                    // From here on the stream's own bounds hold for it.
                    kept.message.uncharge();
                    state.taken = event.number;
                    if !stream.resumable {
                        stream.memory.give(state.drop_at(at));
                    }
                    stream.room.notify_waiters();
                    return Some(event);
                }
                if state.closed {
                    return None;
                }
            }
            news.await;
        }
    }

    pub fn stream(&self) -> &Arc<MessageStream> {
        &self.stream
    }

    /// The number of the message before the next.
    pub fn position(&self) -> u64 {
        self.stream.state.lock().taken
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut state = self.stream.state.lock();
        if state.reader == Some(self.which) {
            state.reader = None;
            drop(state);
            self.stream.room.notify_waiters();
        }
    }
}
