//! Checks that a client reads its response: it may pause for a while, but must
//! keep up an average rate, or the response would stay in memory for as long as
//! the client likes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The clock starts at the first write that has to wait, so a client that keeps
/// up costs no timer at all.
#[derive(Default)]
pub(super) struct Drain {
    blocked: Option<Blocked>,
    timer: LazyTimer,
}

/// A timer that exists from the first wait on. A later deadline does not move
/// it, since that costs more than to wake up once in vain.
#[derive(Default)]
pub(super) struct LazyTimer(Option<Pin<Box<Sleep>>>);

impl LazyTimer {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < timer.deadline() {
            timer.as_mut().reset(deadline);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

struct Blocked {
    since: Instant,
    /// When the client last read anything.
    progress: Instant,
    /// The bytes it has read since.
    taken: u64,
}

impl Drain {
    /// The client has read this many bytes.
    pub(super) fn took(&mut self, bytes: usize) {
        if let Some(blocked) = &mut self.blocked {
            blocked.taken += bytes as u64;
            blocked.progress = Instant::now();
        }
    }

    /// Everything has been written.
    pub(super) fn over(&mut self) {
        self.blocked = None;
    }

    /// Ready when the client has read nothing for longer than `stall`, or less
    /// than `rate` bytes a second beyond that pause.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, stall: Duration, rate: u64) -> Poll<()> {
        let blocked = self.blocked.get_or_insert_with(|| {
            let now = Instant::now();
            Blocked {
                since: now,
                progress: now,
                taken: 0,
            }
        });
        let earned = Duration::from_millis(blocked.taken.saturating_mul(1000) / rate.max(1));
        let deadline = (blocked.progress + stall).min(blocked.since + stall + earned);
        self.timer.poll(cx, deadline)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::advance;

    use super::*;

    const STALL: Duration = Duration::from_secs(30);
    const RATE: u64 = 1024;

    /// Seconds until a client is cut that reads `bytes` after each pause;
    /// `None` if it is still connected after an hour.
    async fn cut_after(pause: Duration, bytes: usize) -> Option<u64> {
        let mut drain = Drain::default();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3600) {
            let waiting = poll_fn(|cx| drain.poll(cx, STALL, RATE));
            if tokio::time::timeout(pause, waiting).await.is_ok() {
                return Some(start.elapsed().as_secs());
            }
            drain.took(bytes);
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn t_a_client_that_takes_a_byte_now_and_then_is_cut() {
        let secs = Duration::from_secs;
        assert_eq!(cut_after(secs(60), 0).await, Some(30), "nothing at all");
        assert_eq!(cut_after(secs(9), 1).await, Some(30), "a byte every 9 s");
        assert_eq!(
            cut_after(secs(1), 100).await,
            Some(33),
            "100 bytes a second"
        );
        let half = cut_after(secs(1), 512).await;
        assert!(matches!(half, Some(58..=60)), "half the rate: {half:?}");
        assert_eq!(cut_after(secs(1), 1024).await, None, "the rate");
        assert_eq!(cut_after(secs(20), 64 << 10).await, None, "in bursts");
    }

    #[tokio::test(start_paused = true)]
    async fn t_what_was_taken_fast_is_no_credit_for_a_pause() {
        let mut drain = Drain::default();
        let poll = async |drain: &mut Drain| {
            poll_fn(|cx| Poll::Ready(drain.poll(cx, STALL, RATE).is_ready())).await
        };
        assert!(!poll(&mut drain).await);
        drain.took(64 << 20);
        advance(STALL + Duration::from_millis(1)).await;
        assert!(poll(&mut drain).await);
        // The next response starts a new measurement.
        drain.over();
        assert!(!poll(&mut drain).await);
    }
}
