//! When to end: with the client, however it ends.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::failure::Failure;

const LOOK: Duration = Duration::from_secs(1);

/// Cancelled by a signal, and when the parent process is gone: its end of our
/// stdin may live on in another process.
pub(super) fn stop() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    for kind in kinds {
        let mut signal = signal(kind).map_err(Failure::other)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signal.recv().await;
            stop.cancel();
        });
    }
    let stopped = stop.clone();
    let parent = nix::unistd::getppid();
    tokio::spawn(async move {
        while nix::unistd::getppid() == parent {
            tokio::time::sleep(LOOK).await;
        }
        stopped.cancel();
    });
    Ok(stop)
}
