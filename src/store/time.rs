//! A moment, as people and other programs read it: RFC 3339 in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MILLIS_PER_DAY: u64 = 24 * 60 * 60 * 1000;

/// Milliseconds since 1970. Wall clock: for records, never for time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    pub fn now() -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0)))
    }

    pub fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    pub fn as_millis(self) -> u64 {
        self.0
    }

    /// `20261115T101112Z`, for the name of a file.
    pub(super) fn compact(self) -> String {
        let text = self.to_string();
        let digits: String = text[..19].chars().filter(|c| !"-:".contains(*c)).collect();
        digits + "Z"
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0 / MILLIS_PER_DAY);
        let millis = self.0 % MILLIS_PER_DAY;
        let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
        let (second, milli) = (millis / 1000 % 60, millis % 1000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
        )
    }
}

#[derive(Debug, thiserror::Error)]
#[error("not a moment in UTC like 2026-11-15T10:11:12.000Z")]
pub struct NotATimestamp;

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    /// Reads what `Display` writes, with or without the fraction.
    fn from_str(text: &str) -> Result<Timestamp, NotATimestamp> {
        let text = text.strip_suffix('Z').ok_or(NotATimestamp)?;
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let numbers: Vec<u64> = seconds
            .split(['-', 'T', ':'])
            .map(|part| part.parse().map_err(|_| NotATimestamp))
            .collect::<Result<_, _>>()?;
        let [year, month, day, hour, minute, second] = numbers[..] else {
            return Err(NotATimestamp);
        };
        let sane = (1970..10_000).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 61
            && !fraction.is_empty()
            && fraction.bytes().all(|b| b.is_ascii_digit());
        if !sane {
            return Err(NotATimestamp);
        }
        let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
        let millis: u64 = millis.parse().map_err(|_| NotATimestamp)?;
        let days = days_from_civil(year, month, day);
        let seconds = (hour * 60 + minute) * 60 + second;
        Ok(Timestamp(days * MILLIS_PER_DAY + seconds * 1000 + millis))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Howard Hinnant's algorithm: years begin in March, so that the leap day is
/// the last day of one; eras are the 400 years after which all repeats.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let year_of_era = year % 400;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year / 400 * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read_back() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_737_472_123, "2026-11-15T10:11:12.123Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(text.parse::<Timestamp>().unwrap(), Timestamp(millis));
        }
        for day in 0..60_000 {
            let (y, m, d) = civil_from_days(day);
            assert_eq!(days_from_civil(y, m, d), day);
        }
        assert_eq!(Timestamp(1_794_737_472_123).compact(), "20261115T101112Z");
        for bad in [
            "",
            "Z",
            "2026-11-15",
            "2026-13-01T00:00:00Z",
            "x-1-1T0:0:0Z",
        ] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }
}
