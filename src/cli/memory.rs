//! Gives memory that a burst has freed back to the system. Each thread has
//! memory of its own, which only that thread can give back.

use std::cell::Cell;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(5);
/// Tasks of one round: enough that no worker sleeps through it.
const TASKS: usize = 64;

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs in each worker of the runtime before it sleeps.
pub(super) fn give_back() {
    if LAST.get().is_some_and(|last| last.elapsed() < PERIOD) {
        return;
    }
    LAST.set(Some(Instant::now()));
    #[expect(unsafe_code, reason = "returns only memory that is free")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

/// Wakes all workers now and then, so that each gets to [`give_back`].
pub(super) async fn wake_workers() {
    loop {
        tokio::time::sleep(PERIOD + Duration::from_millis(100)).await;
        for _ in 0..TASKS {
            tokio::spawn(tokio::task::yield_now());
        }
    }
}
