//! Times and durations, as people write and read them.

use serde_json::Value;

use config::settings::duration;
use store::Timestamp;

/// The time since a moment in milliseconds: `12s`, `5m`, `3h`, `2d`.
pub(super) fn ago(millis: &Value) -> String {
    let Some(millis) = millis.as_u64() else {
        return String::new();
    };
    span(Timestamp::now().as_millis().saturating_sub(millis) / 1000)
}

fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub(super) fn moment(millis: &Value) -> String {
    let moment = millis.as_u64().map(Timestamp::from_millis);
    moment.map_or_else(String::new, |moment| moment.to_string())
}

/// `5m` before now, or an absolute time.
pub(super) fn past(text: &str) -> Result<Timestamp, String> {
    let back = |millis| Timestamp::now().as_millis().saturating_sub(millis);
    parse(text, back, "5m")
}

/// `30d` from now, or an absolute time.
pub(super) fn future(text: &str) -> Result<Timestamp, String> {
    let ahead = |millis| Timestamp::now().as_millis().saturating_add(millis);
    parse(text, ahead, "30d")
}

fn parse(text: &str, from: impl Fn(u64) -> u64, such: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    // A century: a longer span is a mistake, and no year has five digits.
    let span = duration(text).ok().map(|span| span.as_millis());
    let millis = span.and_then(|millis| u64::try_from(millis).ok());
    match millis.filter(|millis| *millis < 100 * 366 * 86_400_000) {
        Some(millis) => Ok(Timestamp::from_millis(from(millis))),
        None => Err(format!(
            "is neither a span such as {such} nor a moment in UTC such as 2026-11-15T10:11:12Z"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_spans_are_short() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m"),
            (3600, "1h"),
            (86_399, "23h"),
            (864_000, "10d"),
        ] {
            assert_eq!(span(seconds), text);
        }
        assert_eq!(ago(&Value::Null), "");
    }

    #[test]
    fn k7_a_moment_is_a_span_or_a_date() {
        let moment = past("2026-11-15T10:11:12Z").unwrap();
        assert_eq!(moment.to_string(), "2026-11-15T10:11:12.000Z");
        let now = Timestamp::now().as_millis();
        let back = past("5m").unwrap().as_millis();
        assert!((290_000..=310_000).contains(&(now - back)), "{back}");
        assert!(future("1d").unwrap().as_millis() > now + 86_000_000);
        for wrong in [
            "",
            "soon",
            "5 minutes",
            "yesterday",
            "99999999d",
            "2027-02-31T00:00:00Z",
        ] {
            assert!(past(wrong).unwrap_err().contains("5m"), "{wrong:?}");
        }
    }
}
