//! The output to the client: one message per line, in order.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

const LINES: usize = 256;
/// The limit for lines that the client has not read; a longer line goes alone.
const BYTES: u32 = 16 << 20;

/// Sending waits while the client is slow to read.
#[derive(Clone)]
pub(super) struct ClientOutput {
    queue: mpsc::Sender<OutputItem>,
    room: Arc<Semaphore>,
}

enum OutputItem {
    Line(Bytes, OwnedSemaphorePermit),
    /// Notified when everything before it is written.
    Mark(oneshot::Sender<()>),
}

/// A thread writes, so that a client that does not read blocks no other task.
/// `stop` is cancelled when stdout is closed.
pub(super) fn open(stop: CancellationToken) -> ClientOutput {
    let (queue, items) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        let _ = write_all(items);
        stop.cancel();
    });
    let room = Arc::new(Semaphore::new(BYTES as usize));
    ClientOutput { queue, room }
}

fn write_all(mut items: mpsc::Receiver<OutputItem>) -> std::io::Result<()> {
    let mut stdout = std::io::BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    while let Some(first) = items.blocking_recv() {
        let mut marks = Vec::new();
        let mut next = Some(first);
        // Everything in the queue is written before the flush.
        while let Some(item) = next {
            match item {
                OutputItem::Line(line, _room) => {
                    stdout.write_all(&line)?;
                    stdout.write_all(b"\n")?;
                }
                OutputItem::Mark(mark) => marks.push(mark),
            }
            next = items.try_recv().ok();
        }
        stdout.flush()?;
        for mark in marks {
            let _ = mark.send(());
        }
    }
    Ok(())
}

impl ClientOutput {
    /// Writes one message unchanged except for line ends between its tokens.
    pub(super) async fn message(&self, message: Bytes) {
        let mut line = message;
        if line.iter().any(|b| matches!(b, b'\n' | b'\r')) {
            let Ok(raw) = serde_json::from_slice::<&RawValue>(&line) else {
                return;
            };
            line = Bytes::from(wire::compact(raw).get().to_owned());
        }
        let size = u32::try_from(line.len()).unwrap_or(BYTES).min(BYTES);
        // The semaphore is never closed.
        if let Ok(room) = self.room.clone().acquire_many_owned(size).await {
            let _ = self.queue.send(OutputItem::Line(line, room)).await;
        }
    }

    /// Waits until all messages are written, or cannot be.
    pub(super) async fn written(&self, limit: Duration) {
        let (mark, written) = oneshot::channel();
        let wait = async {
            if self.queue.send(OutputItem::Mark(mark)).await.is_ok() {
                let _ = written.await;
            }
        };
        let _ = tokio::time::timeout(limit, wait).await;
    }
}
