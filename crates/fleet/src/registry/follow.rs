//! Following the files.
//!
//! By looking, not by being told: a stamp of a few files five times a second
//! costs next to nothing, and it sees every way an editor saves, links that
//! are switched, and mounts that send no events.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Registry;
use store::StoreChange;

const PERIOD: Duration = Duration::from_millis(200);
/// A file that is being written is left alone until it rests,
const REST: Duration = Duration::from_millis(60);
/// but no longer than this: whoever never stops writing is read in between.
const RESTS: usize = 8;
/// Some file systems count time in whole seconds, and two saves of one second
/// look alike there. So each change is read once more when it is this old.
const COARSE: Duration = Duration::from_millis(2500);

/// A file that could not be read is tried again, though its stamp stays.
const UNREAD: Duration = Duration::from_secs(1);

/// Before the store is asked again; it tells of its coming back too.
const AGAIN: [Duration; 3] = [
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// Between two attempts to record starts and stops.
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

/// Takes over what other replicas change in the store.
async fn follow_store(registry: &Registry) {
    let mut changes = registry.store.changes();
    loop {
        match changes.recv().await {
            Ok(StoreChange::Servers | StoreChange::Everything) | Err(RecvError::Lagged(_)) => {}
            Ok(StoreChange::Entry(_) | StoreChange::Records) => continue,
            // The store is gone: there is nothing to follow any more.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
        // What came meanwhile is read along.
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

/// Tries again to record the starts and stops that the store did not take.
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
    /// What was last read; nothing at first, so that what changed since the
    /// start is found.
    seen: Option<FileStamps>,
    /// When to read once more, whatever the stamps say.
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
            // Stamped before the reading: what is written during it shows up
            // next time. What never rested is looked at again anyway.
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
            // Tried again at the next look, told once.
            self.seen = None;
            if self.failure.as_ref() != Some(error) {
                tracing::error!("the changed files could not be taken over: {error}");
            }
        }
        self.failure = failure;
    }
}

/// The stamps once they rest; `None` if they do not.
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

/// What tells one state of a file from another without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Also moves with the owner and the mode, which decide whether the file
    /// counts.
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
