//! Following the files.
//!
//! By looking, not by being told: a stamp of three files five times a second
//! costs next to nothing, and it sees every way an editor saves, links that
//! are switched, and mounts that send no events.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Registry;

const PERIOD: Duration = Duration::from_millis(200);
/// A file that is being written is left alone until it rests,
const REST: Duration = Duration::from_millis(60);
/// but no longer than this: whoever never stops writing is read in between.
const RESTS: usize = 8;

/// Reloads the registry whenever a file has changed, until `stop`.
pub async fn follow(registry: Arc<Registry>, stop: CancellationToken) {
    let work = async {
        // Nothing seen yet: what changed since the first load is found now.
        let mut seen = None;
        loop {
            tokio::time::sleep(PERIOD).await;
            let mut now = look(&registry).await;
            if seen == now {
                continue;
            }
            for _ in 0..RESTS {
                tokio::time::sleep(REST).await;
                let later = look(&registry).await;
                if later == now {
                    break;
                }
                now = later;
            }
            // Before the reading: what is written during it shows up next time.
            seen = now;
            if let Err(error) = registry.reload().await {
                tracing::error!("the changed files could not be taken over: {error}");
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

async fn look(registry: &Registry) -> Option<Vec<Option<Stamp>>> {
    let paths = registry.files.paths();
    let stamps = move || paths.iter().map(|path: &PathBuf| stamp(path)).collect();
    tokio::task::spawn_blocking(stamps).await.ok()
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Also moves with the owner and the mode, which decide whether the file
    /// counts.
    changed: (i64, i64),
}

#[cfg(unix)]
fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
        changed: (file.ctime(), file.ctime_nsec()),
    })
}
