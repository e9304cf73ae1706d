//! Protocol revisions and the two eras they fall into.

/// The two families of protocol revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25: an `initialize` handshake, then state.
    Legacy,
    /// From 2026-07-28: no state, every request carries its client's version and capabilities.
    Modern,
}

/// The modern revision we speak.
pub const MODERN: &str = "2026-07-28";

/// The legacy revisions we speak, newest first.
pub const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

impl Era {
    /// The era of any revision, supported or not; None if it is not a date.
    pub fn of(version: &str) -> Option<Self> {
        is_revision(version).then(|| {
            if version < MODERN {
                Self::Legacy
            } else {
                Self::Modern
            }
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Whether a negotiated revision is `floor` or newer. Revisions are dates, so
/// text order is time order; text that is not a date is older than any date.
pub fn at_least(version: &str, floor: &str) -> bool {
    is_revision(version) && version >= floor
}

/// [`at_least`] among legacy revisions only.
pub fn legacy_at_least(version: &str, floor: &str) -> bool {
    Era::of(version) == Some(Era::Legacy) && version >= floor
}

/// Our copy of a legacy revision name, if we speak it.
pub fn known_legacy(version: &str) -> Option<&'static str> {
    LEGACY.iter().copied().find(|known| *known == version)
}

/// The revision to answer `initialize` with: the requested one if it is
/// supported, else the newest legacy one. Never a modern one, which the
/// handshake cannot negotiate.
pub fn negotiate(asked: &str) -> &'static str {
    known_legacy(asked).unwrap_or(LEGACY[0])
}

/// `YYYY-MM-DD`, by shape.
fn is_revision(version: &str) -> bool {
    version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eras_split_at_the_modern_revision() {
        let cases = [
            ("2024-11-05", Some(Era::Legacy)),
            ("2025-11-25", Some(Era::Legacy)),
            ("2026-07-27", Some(Era::Legacy)),
            ("2026-07-28", Some(Era::Modern)),
            ("2027-01-01", Some(Era::Modern)),
            ("", None),
            ("draft", None),
            ("2026-7-28", None),
            ("2026-07-28 ", None),
            ("DRAFT-2026-v", None),
        ];
        for (version, era) in cases {
            assert_eq!(Era::of(version), era, "{version}");
        }
        assert!(LEGACY.is_sorted_by(|newer, older| newer > older));
    }

    #[test]
    fn the_handshake_never_negotiates_modern() {
        for (asked, answer) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("2024-11-05", "2024-11-05"),
            ("2026-07-28", "2025-11-25"),
            ("2023-01-01", "2025-11-25"),
            ("nonsense", "2025-11-25"),
        ] {
            assert_eq!(negotiate(asked), answer, "{asked}");
        }
    }

    #[test]
    fn floors_compare_as_dates() {
        for (version, floor, legacy, any) in [
            ("2025-06-18", "2025-06-18", true, true),
            ("2025-11-25", "2025-06-18", true, true),
            ("2025-03-26", "2025-06-18", false, false),
            ("2026-07-28", "2025-06-18", false, true),
            ("x", "2024-11-05", false, false),
        ] {
            assert_eq!(legacy_at_least(version, floor), legacy, "{version}");
            assert_eq!(at_least(version, floor), any, "{version}");
        }
    }
}
