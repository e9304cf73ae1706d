//! The delay before the next connection attempt.

use std::time::Duration;

use config::TransportKind;

/// Restarts of a process that keeps dying, before a person must step in.
pub(crate) const RESTARTS: u32 = 3;

const LOCAL_FIRST: Duration = Duration::from_millis(500);
const REMOTE_FIRST: Duration = Duration::from_secs(1);
const REMOTE_CAP: Duration = Duration::from_secs(60);

/// The delay after `failures` failures in a row (the first is 1), or `None`
/// when the supervisor gives up. `dice` is in 0..1.
///
/// Delays double and the jitter stays within a fifth, so they always grow.
pub(crate) fn wait(kind: TransportKind, failures: u32, dice: f64) -> Option<Duration> {
    let (first, cap) = match kind {
        TransportKind::Stdio if failures > RESTARTS => return None,
        TransportKind::Stdio => (LOCAL_FIRST, Duration::MAX),
        TransportKind::Http | TransportKind::Sse => (REMOTE_FIRST, REMOTE_CAP),
    };
    let doublings = failures.saturating_sub(1).min(16);
    let plain = first.saturating_mul(1 << doublings);
    Some(plain.mul_f64(0.8 + 0.4 * dice).min(cap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a6_local_gaps_grow_and_end_after_three() {
        for (low, high) in [(1, 2), (2, 3)] {
            let longest = wait(TransportKind::Stdio, low, 1.0).unwrap();
            let shortest = wait(TransportKind::Stdio, high, 0.0).unwrap();
            assert!(longest < shortest, "{longest:?} before {shortest:?}");
        }
        assert!(wait(TransportKind::Stdio, 4, 0.5).is_none());
    }

    #[test]
    fn a6_remote_retries_never_end_and_never_exceed_a_minute() {
        for failures in 1..200 {
            let wait = wait(TransportKind::Http, failures, 1.0).unwrap();
            assert!(wait <= Duration::from_secs(60));
        }
    }
}
