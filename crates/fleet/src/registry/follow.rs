//! Follows changes of the source files.
//!
//! By polling, not by events: checking the stamps of a few files five times a
//! second costs next to nothing, and it detects every way an editor saves,
//! switched links, and mounts that send no events.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Registry;
use store::StoreChange;

const PERIOD: Duration = Duration::from_millis(200);
/// A file that is being written is not read until it rests,
const REST: Duration = Duration::from_millis(60);
/// but at most this many times: a file that never rests is read in between.
const RESTS: usize = 8;
/// Some file systems store time in whole seconds, and two saves within one
/// second look alike there. So each change is read once more at this age.
const COARSE: Duration = Duration::from_millis(2500);

/// A file that could not be read is retried, though its stamp is unchanged.
const UNREAD: Duration = Duration::from_secs(1);

/// Delays before the store is queried again; it also notifies when it is back.
const AGAIN: [Duration; 3] = [
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// The delay between two attempts to record starts and stops.
const RECORD_AGAIN: Duration = Duration::from_millis(500);

/// Reloads the registry whenever a file has changed, until `stop`.
pub async fn follow(registry: Arc<Registry>, stop: CancellationToken) {
    let mut follower = SourceFollower::default();
    tokio::select! {
        () = follower.run(&registry) => {}
        () = follow_store(&registry) => {}
        () = record_runs(&registry) => {}
        () = stop.cancelled() => {}
    }
}

/// Takes over the changes that other replicas make in the store.
async fn follow_store(registry: &Registry) {
    let mut changes = registry.store.changes();
    loop {
        match changes.recv().await {
            Ok(StoreChange::Servers | StoreChange::Everything) | Err(RecvError::Lagged(_)) => {}
            Ok(StoreChange::Entry(_) | StoreChange::Records) => continue,
            // The store is closed: there is nothing to follow any more.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
        // The sync reads the changes that arrived meanwhile too.
        changes = changes.resubscribe();
        for wait in AGAIN {
            match registry.sync().await {
                Ok(()) => break,
                Err(error) => tracing::warn!("changed servers could not be taken over: {error}"),
            }
            tokio::time::sleep(wait).await;
        }
    }
}

/// Retries to record the starts and stops that the store did not accept.
async fn record_runs(registry: &Registry) {
    let mut failing = false;
    loop {
        tokio::time::sleep(RECORD_AGAIN).await;
        registry.finish_edit().await;
        if !registry.has_unrecorded() {
            failing = false;
            continue;
        }
        match registry.record_runs().await {
            Ok(()) if failing => tracing::info!("starts and stops are recorded again"),
            Ok(()) => {}
            Err(error) if !failing => {
                failing = true;
                tracing::warn!("starts and stops are not recorded, trying again: {error}");
            }
            Err(_) => {}
        }
    }
}

type FileStamps = Vec<Option<FileStamp>>;

#[derive(Default)]
struct SourceFollower {
    /// The stamps of the last read; none at first, so that changes since the
    /// start are found.
    seen: Option<FileStamps>,
    /// When to read once more, even with unchanged stamps.
    again: Option<Instant>,
    failure: Option<String>,
}

impl SourceFollower {
    async fn run(&mut self, registry: &Registry) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let due = self.again.is_some_and(|due| due <= Instant::now());
            let now = look(registry).await;
            if now == self.seen && !due {
                continue;
            }
            let rested = settle(registry, now).await;
            let changed = rested != self.seen;
            // The stamps are taken before the read: a write during it shows up
            // next time. Files that never rested are checked again anyway.
            self.seen = rested;
            self.again = changed.then(|| Instant::now() + COARSE);
            self.reload(registry).await;
            if registry.has_unread().await {
                self.again = Some(Instant::now() + UNREAD);
            }
        }
    }

    async fn reload(&mut self, registry: &Registry) {
        let failure = registry.reload().await.err().map(|error| error.to_string());
        if let Some(error) = &failure {
            // Retried at the next poll, logged once.
            self.seen = None;
            if self.failure.as_ref() != Some(error) {
                tracing::error!("the changed files could not be taken over: {error}");
            }
        }
        self.failure = failure;
    }
}

/// The stamps once they stop changing; `None` if they do not.
async fn settle(registry: &Registry, mut now: Option<FileStamps>) -> Option<FileStamps> {
    for _ in 0..RESTS {
        tokio::time::sleep(REST).await;
        let later = look(registry).await;
        if later == now {
            return now;
        }
        now = later;
    }
    None
}

async fn look(registry: &Registry) -> Option<FileStamps> {
    let paths = registry.files.paths();
    let stamps = move || paths.iter().map(|path: &PathBuf| stamp(path)).collect();
    tokio::task::spawn_blocking(stamps).await.ok()
}

/// File metadata that distinguishes two states of a file without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Also changes with the owner and the mode, which decide whether the file
    /// is trusted.
    changed: (i64, i64),
}

#[cfg(unix)]
fn stamp(path: &Path) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some(FileStamp {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
        changed: (file.ctime(), file.ctime_nsec()),
    })
}
