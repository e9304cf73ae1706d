//! Server-sent events of every change (SPEC G4). Events are created when they
//! are sent: a slow reader gets the present state, not past ones.

mod follow;
mod ring;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::mcp::{KEEP_ALIVE, comment, event, events};
use fleet::Fleet;
use fleet::registry::Registry;
use gateway::Renames;
use gateway::activity::CallRecord;
use gateway::record::{ServerDetails, record};
use ring::{News, Ring};
use store::StoreChange;

/// The most events prepared for one reader at a time.
const AT_ONCE: usize = 64;
/// The time a client waits before it reconnects, in milliseconds.
const RETRY: u64 = 1000;

pub(super) struct Feed {
    /// Identifies this run: ids of another run mean nothing here.
    run: u32,
    ring: Mutex<Ring>,
    moved: watch::Sender<u64>,
    registry: Arc<Registry>,
    fleet: Fleet,
    closing: CancellationToken,
}

impl Feed {
    pub(crate) fn start(
        registry: Arc<Registry>,
        fleet: Fleet,
        calls: broadcast::Receiver<Arc<CallRecord>>,
        store: broadcast::Receiver<StoreChange>,
        renames: broadcast::Receiver<Arc<Renames>>,
        closing: CancellationToken,
    ) -> Arc<Feed> {
        let feed = Arc::new(Feed {
            run: fastrand::u32(..),
            ring: Mutex::default(),
            moved: watch::Sender::new(0),
            registry,
            fleet,
            closing,
        });
        tokio::spawn(follow::follow(feed.clone(), calls, store, renames));
        feed
    }

    fn tell(&self, news: impl IntoIterator<Item = News>) {
        let last = {
            let mut ring = self.ring.lock();
            news.into_iter().for_each(|one| ring.push(one));
            ring.last()
        };
        self.moved.send_if_modified(|known| {
            let moved = *known != last;
            *known = last;
            moved
        });
    }

    /// The events after `last`, the id of the last one the client received;
    /// without it the whole current state, and the events that follow.
    pub(crate) fn stream(self: &Arc<Feed>, last: Option<&str>) -> Response {
        let seen = last.and_then(|last| self.number(last));
        let known = seen.is_some_and(|seen| self.ring.lock().after(seen, 1).is_some());
        let mut reader = EventReader {
            feed: self.clone(),
            moved: self.moved.subscribe(),
            seen: seen.unwrap_or_default(),
            ready: VecDeque::from([comment()]),
        };
        if !known {
            reader.start_over(last.is_some());
        }
        events(stream::unfold(reader, |mut reader| async {
            let next = reader.next().await?;
            Some((next, reader))
        }))
    }

    fn id(&self, number: u64) -> String {
        format!("{:08x}-{number}", self.run)
    }

    fn number(&self, id: &str) -> Option<u64> {
        let (run, number) = id.split_once('-')?;
        let ours = u32::from_str_radix(run, 16).ok()? == self.run;
        number.parse().ok().filter(|_| ours)
    }

    fn event(&self, name: &str, number: u64, data: &impl Serialize) -> Bytes {
        let data = serde_json::to_vec(data).unwrap_or_default();
        let retry = (name == "snapshot").then_some(RETRY);
        event(Some(name), Some(&self.id(number)), retry, &data)
    }

    fn snapshot(&self) -> BTreeMap<&'static str, Vec<ServerDetails>> {
        let snapshot = self.fleet.snapshot();
        let desired = self.registry.desired();
        let records = desired.iter();
        let records = records.map(|(name, wanted)| record(wanted, snapshot.servers.get(name)));
        BTreeMap::from([("servers", records.collect())])
    }

    /// `None` for a state that is no longer current: a later event has it.
    fn spell(&self, number: u64, news: &News) -> Option<Bytes> {
        let spelled = match news {
            News::Server(name) => {
                let wanted = self.registry.desired().get(name).cloned()?;
                let snapshot = self.fleet.snapshot();
                let now = record(&wanted, snapshot.servers.get(name));
                self.event("server", number, &now)
            }
            News::Removed(name) => {
                if self.registry.desired().contains_key(name) {
                    return None;
                }
                self.event("server_removed", number, &json!({"name": name}))
            }
            News::Catalog(name) => {
                let snapshot = self.fleet.snapshot();
                let tools = snapshot.servers.get(name)?.catalog.tools.len();
                let data = json!({"server": name, "toolCount": tools});
                self.event("catalog", number, &data)
            }
            News::Renamed(renames) => self.event("renamed", number, renames),
            News::Entries => self.event("entries", number, &json!({})),
            News::Call(call) if call.outcome.is_some() => self.event("call_ended", number, call),
            News::Call(call) => self.event("call_started", number, call),
        };
        Some(spelled)
    }
}

struct EventReader {
    feed: Arc<Feed>,
    moved: watch::Receiver<u64>,
    seen: u64,
    ready: VecDeque<Bytes>,
}

impl EventReader {
    /// `gap`: the client has missed events.
    fn start_over(&mut self, gap: bool) {
        // First the number, then the state: a change in between is sent twice.
        self.seen = self.feed.ring.lock().last();
        if gap {
            let resync = self.feed.event("resync", self.seen, &json!({}));
            self.ready.push_back(resync);
        }
        let snapshot = self.feed.snapshot();
        let snapshot = self.feed.event("snapshot", self.seen, &snapshot);
        self.ready.push_back(snapshot);
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            self.moved.mark_unchanged();
            let after = self.feed.ring.lock().after(self.seen, AT_ONCE);
            match after {
                None => self.start_over(true),
                Some(news) if !news.is_empty() => {
                    for (number, one) in news {
                        self.seen = number;
                        self.ready.extend(self.feed.spell(number, &one));
                    }
                }
                Some(_) => tokio::select! {
                    () = self.feed.closing.cancelled() => return None,
                    Ok(()) = self.moved.changed() => {}
                    () = tokio::time::sleep(KEEP_ALIVE) => return Some(heartbeat()),
                },
            }
        }
    }
}

/// A comment for proxies in between, and an event for scripts in a browser,
/// which see no comments.
fn heartbeat() -> Bytes {
    let event = event(Some("heartbeat"), None, None, b"{}");
    [comment(), event].concat().into()
}
