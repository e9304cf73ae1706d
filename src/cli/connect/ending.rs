//! The signal to exit: together with the client, however the client exits.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::failure::{CliResult, Failure};

const LOOK: Duration = Duration::from_secs(1);

/// A token that a signal cancels, or the exit of the parent process: another
/// process may still hold the other end of stdin.
pub(super) fn stop() -> CliResult<CancellationToken> {
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
