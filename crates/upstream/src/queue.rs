//! The event queue from one call to its caller. Nearly every call has no event
//! before its response, so an empty queue must cost next to nothing; a channel
//! of tokio's is made for traffic, and takes kilobytes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::CallEvent;

/// A queue that holds at most `most` events.
pub fn event_queue(most: usize) -> (EventSender, EventReceiver) {
    let queue = Arc::new(EventQueue {
        most,
        state: Mutex::new(QueueState {
            waiting: VecDeque::new(),
            reader: None,
            closed: false,
        }),
        senders: AtomicUsize::new(1),
    });
    (EventSender(queue.clone()), EventReceiver(queue))
}

struct EventQueue {
    most: usize,
    /// The lock is held briefly, never across an await.
    state: Mutex<QueueState>,
    senders: AtomicUsize,
}

struct QueueState {
    waiting: VecDeque<CallEvent>,
    reader: Option<Waker>,
    /// The receiver is gone.
    closed: bool,
}

pub struct EventSender(Arc<EventQueue>);

impl EventSender {
    /// Takes an event if `fits` returns true for the number of free places and
    /// of all places. Otherwise drops the event.
    fn offer_if(&self, event: CallEvent, fits: impl Fn(usize, usize) -> bool) {
        let mut state = self.0.state.lock();
        let free = self.0.most.saturating_sub(state.waiting.len());
        if state.closed || free == 0 || !fits(free, self.0.most) {
            // An unanswered request sends its refusal when it is dropped.
            drop(state);
            return drop(event);
        }
        state.waiting.push_back(event);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    pub(super) fn offer(&self, event: CallEvent) {
        self.offer_if(event, |_, _| true);
    }

    /// As [`EventSender::offer`], but keeps places for more important events.
    pub(super) fn offer_note(&self, event: CallEvent) {
        let keeps = match &event {
            CallEvent::Notification(note) => !super::pipe::must_not_be_lost(&note.method),
            CallEvent::Request(_) => false,
        };
        self.offer_if(event, |free, all| !keeps || free > all / 4);
    }
}

impl Clone for EventSender {
    fn clone(&self) -> EventSender {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        EventSender(self.0.clone())
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // Under the lock: a reader either sees that no sender is left, or has
        // put down its waker.
        let reader = self.0.state.lock().reader.take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

pub struct EventReceiver(Arc<EventQueue>);

impl EventReceiver {
    /// The next event; `None` when no sender is left. Cancel-safe.
    pub async fn recv(&mut self) -> Option<CallEvent> {
        std::future::poll_fn(|cx| {
            let mut state = self.0.state.lock();
            if let Some(event) = state.waiting.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.0.senders.load(Ordering::Acquire) == 0 {
                return Poll::Ready(None);
            }
            match &mut state.reader {
                Some(reader) => reader.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    /// The next event that has already arrived.
    pub fn try_recv(&mut self) -> Option<CallEvent> {
        self.0.state.lock().waiting.pop_front()
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        let unread = std::mem::take(&mut state.waiting);
        drop(state);
        drop(unread);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Notification;

    fn note(method: &str) -> CallEvent {
        let method = method.to_owned();
        CallEvent::Notification(Notification {
            method,
            params: None,
        })
    }

    fn method(event: Option<CallEvent>) -> Option<String> {
        match event? {
            CallEvent::Notification(note) => Some(note.method),
            CallEvent::Request(request) => Some(request.method.clone()),
        }
    }

    #[test]
    fn t_f1_a_full_queue_drops_and_keeps_places_for_what_counts() {
        let (sender, mut receiver) = event_queue(4);
        for number in 0..6 {
            sender.offer_note(note(&format!("log{number}")));
        }
        sender.offer_note(note("notifications/tools/list_changed"));
        sender.offer(note("late"));
        let all = std::iter::from_fn(|| method(receiver.try_recv()));
        let expected = ["log0", "log1", "log2", "notifications/tools/list_changed"];
        assert_eq!(all.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn a_reader_is_woken_by_events_and_by_the_end() {
        let (sender, mut receiver) = event_queue(4);
        let reading = tokio::spawn(async move {
            let first = method(receiver.recv().await);
            (first, method(receiver.recv().await))
        });
        let other = sender.clone();
        drop(sender);
        tokio::task::yield_now().await;
        other.offer(note("a"));
        tokio::task::yield_now().await;
        drop(other);
        let read = tokio::time::timeout(Duration::from_secs(60), reading).await;
        assert_eq!(read.unwrap().unwrap(), (Some("a".to_owned()), None));
    }

    #[test]
    fn what_nobody_will_read_is_let_go() {
        let (sender, receiver) = event_queue(4);
        sender.offer(note("a"));
        drop(receiver);
        sender.offer(note("b"));
        assert!(sender.0.state.lock().waiting.is_empty());
    }
}
