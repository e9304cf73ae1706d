//! The number of calls that ended in each second, and their durations.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

/// Seconds kept.
const KEPT: usize = 120;

/// One second of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SecondStats {
    /// Its beginning, in milliseconds since the epoch.
    pub at: u64,
    pub calls: u64,
    /// Tool errors and errors; not cancellations.
    pub errors: u64,
    /// Milliseconds; null without calls.
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

#[derive(Default)]
pub(super) struct CallRate {
    /// Whole seconds, oldest first; those without calls are left out.
    past: VecDeque<SecondStats>,
    /// The current second, counted from the epoch.
    now: u64,
    errors: u64,
    times: LatencyHistogram,
}

impl CallRate {
    pub(super) fn count(&mut self, now: u64, took: Duration, failed: bool) {
        self.turn(now);
        self.errors += u64::from(failed);
        self.times.add(took);
    }

    /// Closes the current second if it is over. A clock that goes back stays in
    /// the current second.
    fn turn(&mut self, now: u64) {
        if now <= self.now {
            return;
        }
        if self.times.count > 0 {
            let second = self.current();
            self.past.push_back(second);
            self.errors = 0;
            self.times = LatencyHistogram::default();
        }
        self.now = now;
        let oldest = (now + 1).saturating_sub(KEPT as u64) * 1000;
        while self.past.front().is_some_and(|second| second.at < oldest) {
            self.past.pop_front();
        }
    }

    fn current(&self) -> SecondStats {
        let part = |share| self.times.quantile(share);
        SecondStats {
            at: self.now * 1000,
            calls: self.times.count,
            errors: self.errors,
            p50: part(0.50),
            p95: part(0.95),
            p99: part(0.99),
        }
    }

    /// The last seconds without gaps, the current one included.
    pub(super) fn seconds(&mut self, now: u64) -> Vec<SecondStats> {
        self.turn(now);
        let mut known = self.past.iter().cloned().chain([self.current()]).peekable();
        let first = (self.now + 1).saturating_sub(KEPT as u64);
        let second = |at: u64| {
            let at = at * 1000;
            known
                .next_if(|second| second.at == at)
                .unwrap_or(SecondStats {
                    at,
                    ..SecondStats::default()
                })
        };
        (first..=self.now).map(second).collect()
    }
}

/// Steps for each power of two of microseconds: quantiles are within a
/// sixteenth.
const STEPS: usize = 16;
const BITS: u32 = STEPS.trailing_zeros();
/// Up to more than a day.
const SLOTS: usize = 34 * STEPS;

struct LatencyHistogram {
    slots: Box<[u32; SLOTS]>,
    count: u64,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram {
            slots: Box::new([0; SLOTS]),
            count: 0,
        }
    }
}

impl LatencyHistogram {
    fn add(&mut self, took: Duration) {
        let slot = slot(took.as_micros() as u64).min(SLOTS - 1);
        self.slots[slot] = self.slots[slot].saturating_add(1);
        self.count += 1;
    }

    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.slots.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        found.map(|slot| value(slot) as f64 / 1000.0)
    }
}

fn slot(micros: u64) -> usize {
    match micros.checked_ilog2() {
        Some(power) if power >= BITS => {
            let shift = power - BITS;
            shift as usize * STEPS + (micros >> shift) as usize
        }
        _ => micros as usize,
    }
}

fn value(slot: usize) -> u64 {
    match slot / STEPS {
        0 => slot as u64,
        row => ((STEPS + slot % STEPS) as u64) << (row - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_within_a_sixteenth() {
        for micros in [
            0, 1, 15, 16, 17, 999, 1_000, 123_456, 30_000_000, 86_400_000_000,
        ] {
            let told = value(slot(micros));
            assert!(
                told <= micros && micros - told <= micros / 16,
                "{micros}: {told}"
            );
        }
        let mut times = LatencyHistogram::default();
        assert_eq!(times.quantile(0.5), None);
        for ms in 1..=100 {
            times.add(Duration::from_millis(ms));
        }
        times.add(Duration::MAX);
        let p50 = times.quantile(0.5).unwrap();
        assert!((46.0..=51.0).contains(&p50), "{p50}");
        let p95 = times.quantile(0.95).unwrap();
        assert!((89.0..=96.0).contains(&p95), "{p95}");
    }

    #[test]
    fn seconds_have_no_gaps_and_the_old_ones_go() {
        let mut rate = CallRate::default();
        let took = Duration::from_millis(3);
        rate.count(1000, took, false);
        rate.count(1000, took, true);
        rate.count(1003, took, false);
        // A clock that went back.
        rate.count(1001, took, false);
        let seconds = rate.seconds(1004);
        assert_eq!(seconds.len(), KEPT);
        let tail: Vec<_> = seconds[KEPT - 5..]
            .iter()
            .map(|second| (second.at, second.calls, second.errors))
            .collect();
        let expected = [
            (1_000_000, 2, 1),
            (1_001_000, 0, 0),
            (1_002_000, 0, 0),
            (1_003_000, 2, 0),
            (1_004_000, 0, 0),
        ];
        assert_eq!(tail, expected);
        assert_eq!(seconds[KEPT - 4].p50, None);
        assert!(seconds[KEPT - 5].p50.is_some());
        let seconds = rate.seconds(5000);
        assert_eq!(seconds.len(), KEPT);
        assert!(seconds.iter().all(|second| second.calls == 0));
        assert!(rate.past.is_empty());
    }
}
