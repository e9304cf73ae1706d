//! The record of tool calls: which run, which ended lately, how many per second
//! and how long they took. Whatever counts calls or shows them reads it here.
//!
//! A call costs one small allocation and two events on a queue; a task of its
//! own writes them down. Where the task cannot follow, events are dropped and
//! counted.

mod history;
mod rate;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use super::call::Call;
use fleet::{CallRequest, Fleet};
use wire::object::find_members;
use wire::schema::mentions;

use history::CallHistory;
pub use history::{ActivityReport, CallRecord, OutcomeKind};
pub use rate::SecondStats;

/// Events that may wait to be written down. A call makes two of them, and they
/// are taken every [`WRITE_INTERVAL`].
const QUEUED_EVENTS: usize = 8192;
const EVENTS_AT_ONCE: usize = 4096;
/// So that many calls wake the writer once and not each for itself.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);
/// Records that a subscriber may be behind by.
const QUEUED_RECORDS: usize = 1024;

/// Cheap to clone.
#[derive(Clone)]
pub struct Activity(Arc<ActivityShared>);

struct ActivityShared {
    events: mpsc::Sender<ActivityEvent>,
    ids: AtomicU64,
    dropped: Arc<AtomicU64>,
    history: Arc<Mutex<CallHistory>>,
    records: broadcast::Sender<Arc<CallRecord>>,
}

/// A call that runs. None of it is kept once the call is over: the request has
/// the arguments.
struct StartedCall {
    id: u64,
    at: SystemTime,
    since: Instant,
    request: Arc<CallRequest>,
    /// Where the request does not name it.
    tool: Option<Arc<str>>,
}

enum ActivityEvent {
    Started(Arc<StartedCall>),
    Ended(Arc<StartedCall>, CallEnd),
}

struct CallEnd {
    outcome: OutcomeKind,
    took: Duration,
    error: Option<Box<str>>,
}

impl Activity {
    /// Must be called inside the runtime.
    pub(super) fn new(fleet: Fleet) -> Activity {
        let (events, queue) = mpsc::channel(QUEUED_EVENTS);
        let (records, _) = broadcast::channel(QUEUED_RECORDS);
        let history: Arc<Mutex<CallHistory>> = Arc::default();
        let dropped: Arc<AtomicU64> = Arc::default();
        let writer = ActivityWriter {
            history: history.clone(),
            records: records.clone(),
            dropped: dropped.clone(),
            fleet,
        };
        tokio::spawn(writer.run(queue));
        Activity(Arc::new(ActivityShared {
            events,
            ids: AtomicU64::new(1),
            dropped,
            history,
            records,
        }))
    }

    /// Records a call of a tool; calls of other methods are not recorded.
    pub(super) fn watch(&self, call: &Call) -> CallWatch {
        if call.method() != "tools/call" {
            return CallWatch::default();
        }
        let started = Arc::new(StartedCall {
            id: self.0.ids.fetch_add(1, Ordering::Relaxed),
            at: SystemTime::now(),
            since: Instant::now(),
            tool: match &call.request.name {
                Some(_) => None,
                None => Some(call.client_name.as_str().into()),
            },
            request: call.request.clone(),
        });
        self.send(ActivityEvent::Started(started.clone()));
        CallWatch(Some(WatchedCall {
            activity: self.clone(),
            started,
            ended: AtomicBool::new(false),
        }))
    }

    fn send(&self, event: ActivityEvent) {
        if self.0.events.try_send(event).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The state now, with at most `limit` calls of each kind.
    pub fn report(&self, limit: usize) -> ActivityReport {
        self.0.history.lock().report(limit)
    }

    /// Calls that start or end from now on; an ended one has an outcome. Under
    /// load only some calls are published.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<CallRecord>> {
        self.0.records.subscribe()
    }
}

/// Held by a call for as long as it runs. A call that is dropped before its end
/// was cancelled.
#[derive(Default)]
pub(super) struct CallWatch(Option<WatchedCall>);

struct WatchedCall {
    activity: Activity,
    started: Arc<StartedCall>,
    ended: AtomicBool,
}

impl CallWatch {
    /// Ends the call with the tool's result.
    pub(crate) fn end_with(&self, result: &str) {
        if self.0.is_some() {
            // Searching is cheaper than walking over all members.
            let [failed] = if mentions(result, "isError") {
                find_members(result, ["isError"])
            } else {
                [None]
            };
            let outcome = if failed == Some("true") {
                OutcomeKind::ToolError
            } else {
                OutcomeKind::Ok
            };
            self.end(outcome, None);
        }
    }

    /// Ends the call; only the first end counts.
    pub(crate) fn end(&self, outcome: OutcomeKind, error: Option<&str>) {
        let Some(watched) = &self.0 else { return };
        if !watched.ended.swap(true, Ordering::Relaxed) {
            let end = CallEnd {
                outcome,
                took: watched.started.since.elapsed(),
                error: error.map(Into::into),
            };
            let event = ActivityEvent::Ended(watched.started.clone(), end);
            watched.activity.send(event);
        }
    }
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        self.end(OutcomeKind::Cancelled, None);
    }
}

/// The task that writes the history.
struct ActivityWriter {
    history: Arc<Mutex<CallHistory>>,
    records: broadcast::Sender<Arc<CallRecord>>,
    dropped: Arc<AtomicU64>,
    fleet: Fleet,
}

impl ActivityWriter {
    async fn run(self, mut queue: mpsc::Receiver<ActivityEvent>) {
        let mut events = Vec::new();
        let (mut known_drops, mut settled) = (0, true);
        while queue.recv_many(&mut events, EVENTS_AT_ONCE).await > 0 {
            self.write(events.drain(..));
            let dropped = self.dropped.load(Ordering::Relaxed);
            // Once more after the last drop: the call whose event was dropped
            // may still be ending.
            let was_settled = std::mem::replace(&mut settled, dropped == known_drops);
            if dropped != known_drops || !was_settled {
                known_drops = dropped;
                for record in self.history.lock().settle(dropped) {
                    self.publish(record);
                }
            }
            // The room that a burst of calls took is given back.
            events.shrink_to(64);
            tokio::time::sleep(WRITE_INTERVAL).await;
        }
    }

    fn write(&self, events: impl Iterator<Item = ActivityEvent>) {
        let mut history = self.history.lock();
        for event in events {
            let record = match event {
                ActivityEvent::Started(started) => history.start(started),
                ActivityEvent::Ended(started, mut end) => {
                    if let Some(error) = &mut end.error {
                        *error = self.redacted(&started.request.server, error);
                    }
                    history.end(&started, end)
                }
            };
            if let Some(record) = record {
                self.publish(record);
            }
        }
    }

    fn publish(&self, record: Arc<CallRecord>) {
        // Without a subscriber there is nothing to do.
        let _ = self.records.send(record);
    }

    /// An error may quote the server, and so its secrets.
    fn redacted(&self, server: &str, text: &str) -> Box<str> {
        let snapshot = self.fleet.snapshot();
        match snapshot.servers.get(server) {
            Some(view) => view.log.clean(text).into(),
            None => text.into(),
        }
    }
}
