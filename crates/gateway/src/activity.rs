//! Who calls what, now and lately. A call costs one small allocation and two
//! marks on a queue; whatever is made of them happens in a task of its own,
//! and where that cannot follow, marks are dropped and counted.

mod book;
mod rate;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use fleet::{CallRequest, Fleet};

use book::CallHistory;
pub use book::{ActivityReport, CallRecord, OutcomeKind};
pub use rate::SecondStats;

/// What may wait to be written down. A call makes two of them, and they are
/// taken every [`PACE`].
const MARKS: usize = 8192;
const AT_ONCE: usize = 4096;
/// So that many calls wake the writer once and not each for itself.
const PACE: Duration = Duration::from_millis(10);
/// How many calls a follower may be behind.
const NEWS: usize = 1024;

/// Cheap to clone.
#[derive(Clone)]
pub struct Activity(Arc<ActivityShared>);

struct ActivityShared {
    marks: mpsc::Sender<ActivityEvent>,
    ids: AtomicU64,
    dropped: Arc<AtomicU64>,
    book: Arc<Mutex<CallHistory>>,
    news: broadcast::Sender<Arc<CallRecord>>,
}

/// A call that has begun. Nothing in it is kept once the call is over: the
/// request has the arguments.
struct StartedCall {
    id: u64,
    at: SystemTime,
    since: Instant,
    principal: Arc<str>,
    request: Arc<CallRequest>,
    /// Where the request does not say it.
    tool: Option<Box<str>>,
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
    pub fn new(fleet: Fleet) -> Activity {
        let (marks, queue) = mpsc::channel(MARKS);
        let (news, _) = broadcast::channel(NEWS);
        let book: Arc<Mutex<CallHistory>> = Arc::default();
        let dropped: Arc<AtomicU64> = Arc::default();
        let writer = ActivityWriter {
            book: book.clone(),
            news: news.clone(),
            dropped: dropped.clone(),
            fleet,
        };
        tokio::spawn(writer.run(queue));
        Activity(Arc::new(ActivityShared {
            marks,
            ids: AtomicU64::new(1),
            dropped,
            book,
            news,
        }))
    }

    /// Watches a call of a tool; other calls are not written down.
    pub(super) fn watch(&self, call: &super::call::Call) -> CallWatch {
        if call.method() != "tools/call" {
            return CallWatch::default();
        }
        let begun = Arc::new(StartedCall {
            id: self.0.ids.fetch_add(1, Ordering::Relaxed),
            at: SystemTime::now(),
            since: Instant::now(),
            principal: call.principal.clone(),
            tool: match &call.request.name {
                Some(_) => None,
                None => Some(call.what.as_str().into()),
            },
            request: call.request.clone(),
        });
        self.mark(ActivityEvent::Started(begun.clone()));
        CallWatch(Some(WatchedCall {
            activity: self.clone(),
            begun,
            over: AtomicBool::new(false),
        }))
    }

    fn mark(&self, mark: ActivityEvent) {
        if self.0.marks.try_send(mark).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What is known now; at most `limit` calls of each kind.
    pub fn report(&self, limit: usize) -> ActivityReport {
        self.0.book.lock().report(limit)
    }

    /// Calls that begin or end from now on. Under load it is some of them.
    pub fn follow(&self) -> broadcast::Receiver<Arc<CallRecord>> {
        self.0.news.subscribe()
    }
}

/// Held by a call for as long as it runs; one that is dropped before it is
/// over was cancelled.
#[derive(Default)]
pub(super) struct CallWatch(Option<WatchedCall>);

struct WatchedCall {
    activity: Activity,
    begun: Arc<StartedCall>,
    over: AtomicBool,
}

impl CallWatch {
    pub(crate) fn watches(&self) -> bool {
        self.0.is_some()
    }

    /// The first word counts.
    pub(crate) fn over(&self, outcome: OutcomeKind, error: Option<&str>) {
        let Some(watched) = &self.0 else { return };
        if !watched.over.swap(true, Ordering::Relaxed) {
            let ending = CallEnd {
                outcome,
                took: watched.begun.since.elapsed(),
                error: error.map(Into::into),
            };
            let mark = ActivityEvent::Ended(watched.begun.clone(), ending);
            watched.activity.mark(mark);
        }
    }
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        self.over(OutcomeKind::Cancelled, None);
    }
}

/// The one who keeps the book.
struct ActivityWriter {
    book: Arc<Mutex<CallHistory>>,
    news: broadcast::Sender<Arc<CallRecord>>,
    dropped: Arc<AtomicU64>,
    fleet: Fleet,
}

impl ActivityWriter {
    async fn run(self, mut queue: mpsc::Receiver<ActivityEvent>) {
        let mut marks = Vec::new();
        let (mut missed, mut settled) = (0, true);
        while queue.recv_many(&mut marks, AT_ONCE).await > 0 {
            self.write(marks.drain(..));
            let dropped = self.dropped.load(Ordering::Relaxed);
            // Once more after the last one: who dropped it may just be going.
            let again = std::mem::replace(&mut settled, dropped == missed);
            if dropped != missed || !again {
                missed = dropped;
                self.settle(dropped);
            }
            // What came while many calls ran is not worth its room later.
            marks.shrink_to(64);
            tokio::time::sleep(PACE).await;
        }
    }

    fn write(&self, marks: impl Iterator<Item = ActivityEvent>) {
        let mut book = self.book.lock();
        for mark in marks {
            let news = match mark {
                ActivityEvent::Started(begun) => book.begun(begun),
                ActivityEvent::Ended(begun, mut ending) => {
                    if let Some(error) = &mut ending.error {
                        *error = self.clean(&begun.request.server, error);
                    }
                    book.ended(&begun, ending)
                }
            };
            if let Some(news) = news {
                // Nobody listening is fine.
                let _ = self.news.send(news);
            }
        }
    }

    /// Calls whose end was dropped.
    fn settle(&self, dropped: u64) {
        for news in self.book.lock().settle(dropped) {
            let _ = self.news.send(news);
        }
    }

    /// It may quote the server.
    fn clean(&self, server: &str, text: &str) -> Box<str> {
        let snapshot = self.fleet.snapshot();
        match snapshot.servers.get(server) {
            Some(view) => view.log.clean(text).into(),
            None => text.into(),
        }
    }
}
