//! Detects changes: compares the running and desired servers with the last
//! events, and forwards the events of other sources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Feed;
use super::ring::News;
use fleet::ServerView;
use fleet::registry::DesiredServer;
use gateway::Renames;
use gateway::activity::CallRecord;
use store::StoreChange;

/// A thousand servers that start at once are compared a few times, not a
/// thousand times; an event is late by this at most.
const PACE: Duration = Duration::from_millis(10);

/// A server as in the last event about it.
struct KnownServer {
    wanted: Arc<DesiredServer>,
    view: Option<Arc<ServerView>>,
}

type KnownServers = BTreeMap<Arc<str>, KnownServer>;

pub(super) async fn follow(
    feed: Arc<Feed>,
    mut calls: broadcast::Receiver<Arc<CallRecord>>,
    mut store: broadcast::Receiver<StoreChange>,
    mut renames: broadcast::Receiver<Arc<Renames>>,
) {
    let mut snapshots = feed.fleet.watch();
    let mut desired = feed.registry.watch();
    let mut known = now(&feed);
    let mut entries = true;
    loop {
        tokio::select! {
            () = feed.closing.cancelled() => return,
            Ok(()) = snapshots.changed() => {}
            Ok(()) = desired.changed() => {}
            call = calls.recv() => match call {
                Ok(call) => {
                    feed.tell([News::Call(call)]);
                    continue;
                }
                // Each call that was missed is in the activity.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            },
            Ok(renamed) = renames.recv() => {
                feed.tell([News::Renamed(renamed)]);
                continue;
            }
            change = store.recv(), if entries => {
                entries = !matches!(change, Err(RecvError::Closed));
                if entries && !matches!(change, Ok(StoreChange::Servers)) {
                    feed.tell([News::Entries]);
                }
                continue;
            }
        }
        snapshots.mark_unchanged();
        desired.mark_unchanged();
        let next = now(&feed);
        feed.tell(differences(&known, &next));
        known = next;
        tokio::time::sleep(PACE).await;
    }
}

fn now(feed: &Feed) -> KnownServers {
    let desired = feed.registry.desired();
    let snapshot = feed.fleet.snapshot();
    let one = |wanted: &Arc<DesiredServer>| KnownServer {
        wanted: wanted.clone(),
        view: snapshot.servers.get(&wanted.name).cloned(),
    };
    let wanted = desired.values();
    wanted.map(|it| (it.name.clone(), one(it))).collect()
}

fn differences(before: &KnownServers, after: &KnownServers) -> Vec<News> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let mut news: Vec<News> = gone.cloned().map(News::Removed).collect();
    for (name, now) in after {
        let old = before.get(name);
        if !old.is_some_and(|old| same(old, now)) {
            news.push(News::Server(name.clone()));
        }
        let catalog = |known: &KnownServer| known.view.as_ref().map(|view| view.catalog.clone());
        let same_catalog = match (old.and_then(catalog), catalog(now)) {
            (Some(old), Some(new)) => Arc::ptr_eq(&old, &new),
            (None, Some(new)) => new.tools.is_empty(),
            (_, None) => true,
        };
        if !same_catalog {
            news.push(News::Catalog(name.clone()));
        }
    }
    news
}

fn same(old: &KnownServer, now: &KnownServer) -> bool {
    let view = |known: &KnownServer| known.view.as_ref().map(Arc::as_ptr);
    view(old) == view(now) && Arc::ptr_eq(&old.wanted, &now.wanted)
}
