//! What one run of the load gave.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    pub calls: u64,
    /// With those of the warm-up.
    pub all_calls: u64,
    pub seconds: f64,
    /// Calls a second.
    pub rate: f64,
    /// Microseconds.
    pub median: f64,
    pub p99: f64,
    /// Seconds on the CPU that the load itself took.
    pub spent: f64,
    /// The size of an answer's body.
    pub bytes: usize,
}

impl Figures {
    /// `waits` are nanoseconds, in any order.
    pub fn new(mut waits: Vec<u32>, seconds: f64, spent: f64, bytes: usize) -> Figures {
        waits.sort_unstable();
        let at = |share: f64| {
            let place = (waits.len() as f64 * share) as usize;
            waits
                .get(place.min(waits.len().saturating_sub(1)))
                .map_or(0.0, |wait| f64::from(*wait) / 1000.0)
        };
        Figures {
            calls: waits.len() as u64,
            all_calls: waits.len() as u64,
            seconds,
            rate: waits.len() as f64 / seconds,
            median: at(0.5),
            p99: at(0.99),
            spent,
            bytes,
        }
    }
}

/// The middle one; the mean of the two in the middle of an even number.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
