//! A timestamp, written as RFC 3339 in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        self.calendar().strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    /// Later times become the end of the calendar, in the year 9999.
    fn calendar(self) -> jiff::Timestamp {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.calendar())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("not a moment in UTC like 2026-11-15T10:11:12.000Z")]
pub struct NotATimestamp;

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    /// RFC 3339 in UTC, with or without a fraction of up to nanoseconds.
    fn from_str(text: &str) -> Result<Timestamp, NotATimestamp> {
        if !well_written(text) {
            return Err(NotATimestamp);
        }
        let moment: jiff::Timestamp = text.parse().map_err(|_| NotATimestamp)?;
        let millis = u64::try_from(moment.as_millisecond()).map_err(|_| NotATimestamp)?;
        Ok(Timestamp(millis))
    }
}

/// Whether every part has all its digits. The calendar's own parser also takes
/// other forms: hours alone, offsets, the 60th second.
fn well_written(text: &str) -> bool {
    const SHAPE: &str = "0000-00-00T00:00:00";
    let digit_or = |(given, shape): (u8, u8)| match shape {
        b'0' => given.is_ascii_digit(),
        other => given == other,
    };
    let Some((start, end)) = text.split_at_checked(SHAPE.len()) else {
        return false;
    };
    let fraction = match end.strip_suffix('Z') {
        Some("") => true,
        Some(end) => end.strip_prefix('.').is_some_and(|digits| {
            (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        }),
        None => false,
    };
    start.bytes().zip(SHAPE.bytes()).all(digit_or)
        // The clock here has no leap seconds.
        && start.get(17..).is_some_and(|second| second < "60")
        && fraction
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
        let short: Timestamp = "2026-11-15T10:11:12Z".parse().unwrap();
        assert_eq!(short, Timestamp(1_794_737_472_000));
        assert_eq!(Timestamp(1_794_737_472_123).compact(), "20261115T101112Z");
        assert!(Timestamp(u64::MAX).to_string().starts_with("9999-12-3"));
    }

    #[test]
    fn e10_a_date_that_no_calendar_has_is_refused() {
        for bad in [
            "",
            "Z",
            "2026-11-15",
            "2026-13-01T00:00:00Z",
            "2027-02-31T00:00:00Z",
            "2027-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-00-10T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-12-31T23:59:60Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567890Z",
            "2026-01-01T10Z",
            "1969-12-31T23:59:59Z",
            "x-1-1T0:0:0Z",
        ] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
        assert!("2028-02-29T00:00:00Z".parse::<Timestamp>().is_ok());
    }
}
