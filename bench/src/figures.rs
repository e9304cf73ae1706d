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
}

impl Figures {
    /// `waits` are nanoseconds, in any order.
    pub fn new(mut waits: Vec<u32>, seconds: f64, spent: f64) -> Figures {
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
        }
    }
}

/// The median of some values, the least and the greatest.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// Of no values, it is not a number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let median = match values.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => values[n / 2],
            n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
        };
        Spread {
            median,
            least: values.first().copied().unwrap_or(f64::NAN),
            most: values.last().copied().unwrap_or(f64::NAN),
        }
    }

    pub fn show(&self, decimals: usize) -> String {
        format!(
            "{:.decimals$} ({:.decimals$}–{:.decimals$})",
            self.median, self.least, self.most
        )
    }
}
