//! The messages to a server, and the stdin that takes those of a process. A
//! message that finds stdin idle is written by the task that sends it; other
//! messages wait in a queue, and the writer task writes them together.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;

use super::UpstreamError;
use super::permit::{OutgoingMessage, WriteGuard};
use super::unread::unread;

/// The queue limit for a server that is slow to read.
const OUTBOX_QUEUE: usize = 256;
/// One write takes no further message from this size on.
const BATCH: usize = 64 << 10;
/// How long the answers to a server's open questions may take at its end.
pub(super) const LAST_ANSWERS: Duration = Duration::from_millis(100);

/// Takes the messages to a server.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<OutgoingMessage>,
    /// Set if the messages go to a process.
    stdin: Option<Arc<ServerInput>>,
}

impl From<mpsc::Sender<OutgoingMessage>> for Outbox {
    fn from(queue: mpsc::Sender<OutgoingMessage>) -> Outbox {
        Outbox { queue, stdin: None }
    }
}

impl Outbox {
    /// An outbox to the stdin of a process, and the writer of that stdin.
    pub(crate) fn to_process(stdin: pipe::Sender) -> (Outbox, InputWriter) {
        let (queue, receiver) = mpsc::channel(OUTBOX_QUEUE);
        let input = Arc::new(ServerInput {
            queued: AtomicUsize::new(0),
            state: Mutex::new(InputState {
                stdin: Some(Arc::new(stdin)),
                batch: BytesMut::new(),
                passing: Vec::new(),
                closed: false,
            }),
        });
        let outbox = Outbox {
            queue,
            stdin: Some(input.clone()),
        };
        let queue = receiver;
        (outbox, InputWriter { input, queue })
    }

    /// Writes a message at once if stdin is idle, or else queues it.
    pub(crate) fn try_send(
        &self,
        message: OutgoingMessage,
    ) -> Result<(), TrySendError<OutgoingMessage>> {
        match &self.stdin {
            Some(input) => match input.write_now(message, &self.queue) {
                Some(message) => self.queue(message),
                None => Ok(()),
            },
            None => self.queue.try_send(message),
        }
    }

    /// Queues a message: it is written together with others of the same time.
    pub(crate) fn queue(
        &self,
        message: OutgoingMessage,
    ) -> Result<(), TrySendError<OutgoingMessage>> {
        match &self.stdin {
            Some(input) => input.queue(message, &self.queue),
            None => self.queue.try_send(message),
        }
    }

    /// Waits for a place in the queue.
    pub(crate) async fn send(&self, message: OutgoingMessage) -> Result<(), UpstreamError> {
        let message = match self.try_send(message) {
            Ok(()) => return Ok(()),
            Err(error) => error.into_inner(),
        };
        let place = self.queue.reserve().await;
        let place = place.map_err(|_| UpstreamError::Lost("the connection ended".into()))?;
        if let Some(input) = &self.stdin {
            input.queued.fetch_add(1, Ordering::AcqRel);
        }
        place.send(message);
        Ok(())
    }
}

/// The stdin of a process.
struct ServerInput {
    /// The messages in the queue, and those taken from it and not yet written.
    queued: AtomicUsize,
    /// The lock is held for a write that does not block, never across an await.
    state: Mutex<InputState>,
}

struct InputState {
    /// `None` after the end of the writer: the process has seen the end of its
    /// input, whoever else still has the outbox.
    stdin: Option<Arc<pipe::Sender>>,
    /// The bytes that the pipe has not taken yet.
    batch: BytesMut,
    /// Held until the batch is written.
    passing: Vec<WriteGuard>,
    /// No message is written at once any more: the writer ends, or a write has
    /// failed, and the end of the reader gives the reason.
    closed: bool,
}

impl ServerInput {
    /// Writes a message; returns it if others are to be written before it.
    fn write_now(
        &self,
        message: OutgoingMessage,
        queue: &mpsc::Sender<OutgoingMessage>,
    ) -> Option<OutgoingMessage> {
        let Some(mut state) = self.state.try_lock() else {
            return Some(message);
        };
        if self.queued.load(Ordering::Acquire) > 0 || !state.is_idle() {
            return Some(message);
        }
        state.put(&message);
        if !matches!(state.write(), Ok(true)) {
            // Wakes the writer, which writes the rest.
            let _ = self.queue(OutgoingMessage::from(Vec::new()), queue);
        }
        None
    }

    fn queue(
        &self,
        message: OutgoingMessage,
        queue: &mpsc::Sender<OutgoingMessage>,
    ) -> Result<(), TrySendError<OutgoingMessage>> {
        // Counted first: no later message may be written before this one.
        self.queued.fetch_add(1, Ordering::AcqRel);
        let sent = queue.try_send(message);
        if sent.is_err() {
            self.queued.fetch_sub(1, Ordering::AcqRel);
        }
        sent
    }

    /// Writes the batch, as soon as the pipe takes it.
    async fn flush(&self, stdin: &pipe::Sender) -> io::Result<()> {
        while !self.state.lock().write()? {
            stdin.writable().await?;
        }
        Ok(())
    }
}

impl InputState {
    fn is_idle(&self) -> bool {
        self.stdin.is_some() && self.batch.is_empty() && !self.closed
    }

    fn put(&mut self, message: &OutgoingMessage) {
        let Some(entered) = message.enter() else {
            return;
        };
        if message.permit().is_some() {
            self.passing.push(entered);
        }
        if !message.bytes.is_empty() {
            self.batch.extend_from_slice(&message.bytes);
            self.batch.extend_from_slice(b"\n");
        }
    }

    /// Writes what the pipe takes now; true if nothing is left.
    fn write(&mut self) -> io::Result<bool> {
        let Some(stdin) = &self.stdin else {
            return Ok(self.batch.is_empty());
        };
        while !self.batch.is_empty() {
            match stdin.try_write(&self.batch) {
                Ok(written) => self.batch.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    self.passing.clear();
                    self.closed = true;
                    return Err(error);
                }
            }
        }
        self.passing.clear();
        if self.batch.capacity() > 1 << 20 {
            self.batch = BytesMut::new();
        }
        Ok(true)
    }
}

/// The owner of a process's stdin, which writes the queued messages.
pub(crate) struct InputWriter {
    input: Arc<ServerInput>,
    queue: mpsc::Receiver<OutgoingMessage>,
}

impl InputWriter {
    /// Writes until `stop`; then closes stdin, and returns how many bytes are
    /// unread.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Option<usize> {
        let stdin = self.input.state.lock().stdin.clone()?;
        tokio::select! {
            () = self.write_queued(&stdin) => stop.cancelled().await,
            () = stop.cancelled() => {}
        }
        let unsent = self.gather_answers();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.input.flush(&stdin)).await;
        // Messages that are sent from now on find the queue closed.
        self.input.state.lock().stdin = None;
        unread(stdin.as_fd()).map(|unread| unread + unsent)
    }

    /// Returns after a failed write.
    async fn write_queued(&mut self, stdin: &pipe::Sender) {
        while let Some(message) = self.queue.recv().await {
            self.input.state.lock().put(&message);
            // Messages of the same time go out together: the server wakes once
            // for all of them, and a wake-up costs more than a write.
            tokio::task::yield_now().await;
            let taken = 1 + self.gather();
            if self.input.flush(stdin).await.is_err() {
                return;
            }
            self.input.queued.fetch_sub(taken, Ordering::AcqRel);
        }
    }

    /// Takes the messages that were queued meanwhile; returns their number.
    fn gather(&mut self) -> usize {
        let mut state = self.input.state.lock();
        let mut taken = 0;
        while state.batch.len() < BATCH {
            let Ok(message) = self.queue.try_recv() else {
                break;
            };
            state.put(&message);
            taken += 1;
        }
        taken
    }

    /// Takes the answers to the server's questions from the rest of the queue;
    /// returns the number of bytes that never reach the pipe.
    fn gather_answers(&mut self) -> usize {
        let mut state = self.input.state.lock();
        state.closed = true;
        // After a partial line the answers would become part of it.
        let whole = state.batch.is_empty();
        let mut unsent = state.batch.len();
        while let Ok(message) = self.queue.try_recv() {
            if whole && message.answer {
                state.put(&message);
            } else {
                unsent += message.bytes.len();
            }
        }
        if !whole {
            state.batch.clear();
            state.passing.clear();
        }
        unsent
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn message(text: &str) -> OutgoingMessage {
        OutgoingMessage::from(text.as_bytes().to_vec())
    }

    /// A pipe that the runtime knows to be writable.
    async fn pipe() -> (pipe::Sender, pipe::Receiver) {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        (sender, receiver)
    }

    #[tokio::test]
    async fn an_idle_stdin_is_written_by_the_sender() {
        let (stdin, mut stdout) = pipe().await;
        let (outbox, _writer) = Outbox::to_process(stdin);
        outbox.try_send(message("a")).unwrap();
        let mut read = [0; 2];
        stdout.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"a\n");
    }

    #[tokio::test]
    async fn messages_keep_their_order_however_they_are_written() {
        let (stdin, mut stdout) = pipe().await;
        let (outbox, writer) = Outbox::to_process(stdin);
        let stop = CancellationToken::new();
        let writer = tokio::spawn(writer.run(stop.clone()));
        let mut expected = Vec::new();
        // The second message is larger than a pipe; only a part fits at once.
        for text in ["a", &"b".repeat(200_000), "c", "d"] {
            outbox.try_send(message(text)).unwrap();
            expected.extend_from_slice(text.as_bytes());
            expected.push(b'\n');
        }
        outbox.queue(message("e")).unwrap();
        outbox.send(message("f")).await.unwrap();
        expected.extend_from_slice(b"e\nf\n");
        let mut read = vec![0; expected.len()];
        stdout.read_exact(&mut read).await.unwrap();
        assert!(read == expected);
        // The end of the writer ends the input, while the outbox still exists.
        stop.cancel();
        assert_eq!(writer.await.unwrap(), Some(0));
        assert_eq!(stdout.read(&mut read).await.unwrap(), 0);
        assert!(outbox.send(message("g")).await.is_err());
    }

    #[tokio::test]
    async fn bytes_that_never_reach_the_server_are_counted() {
        let (stdin, _stdout) = pipe().await;
        let (outbox, writer) = Outbox::to_process(stdin);
        let stop = CancellationToken::new();
        outbox.try_send(message(&"a".repeat(199_999))).unwrap();
        outbox.try_send(message("bb")).unwrap();
        stop.cancel();
        assert_eq!(writer.run(stop).await, Some(200_002));
    }
}
