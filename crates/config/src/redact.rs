//! Removes known secret values from text before it is shown: the stderr of a
//! server, an error that quotes a command line.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::mask::{in_url, secret_name};
use super::spec::MASK;

/// Shorter values would blank out ordinary words, and protect little.
const SHORTEST: usize = 6;

/// Values that are settings, under any name.
const PLAIN_WORDS: &[&str] = &[
    "debug", "default", "development", "disabled", "enabled", "localhost", "production", "staging",
    "verbose", "warning",
];

/// Whether a value of the environment must be kept out of logs. All are, except
/// obvious settings: paths, numbers, words, addresses.
pub(super) fn worth_hiding(name: &str, value: &str) -> bool {
    if value.len() < SHORTEST {
        return false;
    }
    secret_name(name) || !is_plain(value)
}

fn is_plain(value: &str) -> bool {
    let path = value.starts_with('/') || value.starts_with("./") || value.starts_with("~/");
    let number = value
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.' || b == b':');
    let address =
        (value.starts_with("http://") || value.starts_with("https://")) && in_url(value).is_empty();
    path || number || address || PLAIN_WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// Replaces known values by `***`, also where they are encoded.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: SecretFinder,
    count: usize,
}

#[derive(Clone, Default)]
enum SecretFinder {
    #[default]
    NoSecrets,
    Automaton(AhoCorasick),
    /// The automaton could not be built, as with more than 2^31 states: every
    /// text may hold a secret, so all of it is hidden.
    Unavailable,
}

impl Redactor {
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Redactor {
        let mut known = BTreeSet::new();
        for secret in secrets {
            let secret = secret.as_ref();
            // A key of several lines is logged one line at a time.
            for text in secret.lines().chain([secret]) {
                if text.len() >= SHORTEST {
                    known.extend(forms(text));
                }
            }
        }
        let count = known.len();
        // One secret may contain another: the longest is replaced.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(known);
        let finder = match automaton {
            _ if count == 0 => SecretFinder::NoSecrets,
            Ok(automaton) => SecretFinder::Automaton(automaton),
            Err(_) => SecretFinder::Unavailable,
        };
        Redactor { finder, count }
    }

    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let finder = match &self.finder {
            SecretFinder::NoSecrets => return Cow::Borrowed(text),
            SecretFinder::Unavailable => return Cow::Borrowed(MASK),
            SecretFinder::Automaton(automaton) => automaton,
        };
        let mut found = finder.find_iter(text).peekable();
        if found.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut from = 0;
        for part in found {
            shown.push_str(&text[from..part.start()]);
            shown.push_str(MASK);
            from = part.end();
        }
        shown.push_str(&text[from..]);
        Cow::Owned(shown)
    }
}

/// A secret as it may stand in a log: plain, escaped as JSON (once, or inside
/// of JSON), in hexadecimal, in an address, in base64 or base32 of its own or
/// inside a longer text (as in the credentials of `Basic`).
fn forms(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let escaped = |text: &str| {
        let json = serde_json::Value::from(text).to_string();
        json[1..json.len() - 1].to_owned()
    };
    let once = escaped(secret);
    let mut forms = vec![
        secret.to_owned(),
        escaped(&once),
        once,
        percent_encoded(secret, |byte| format!("%{byte:02X}")),
        percent_encoded(secret, |byte| format!("%{byte:02x}")),
    ];
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for between in ["", ":", " ", "-"] {
        let hex = digits.join(between);
        forms.push(hex.to_ascii_uppercase());
        forms.push(hex);
    }
    for text in [STANDARD.encode(bytes), URL_SAFE.encode(bytes)] {
        forms.push(text.trim_end_matches('=').to_owned());
        forms.push(text);
    }
    for before in 0..3 {
        let padded = behind(before, bytes);
        for text in [STANDARD.encode(&padded), URL_SAFE.encode(&padded)] {
            forms.push(text[inside(before, bytes, 6)].to_owned());
        }
    }
    let whole = base32(bytes);
    forms.push(format!("{whole}{}", "=".repeat((8 - whole.len() % 8) % 8)));
    forms.push(whole);
    for before in 0..5 {
        let text = base32(&behind(before, bytes))[inside(before, bytes, 5)].to_owned();
        forms.push(text.to_ascii_lowercase());
        forms.push(text);
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

fn behind(before: usize, bytes: &[u8]) -> Vec<u8> {
    [&vec![0; before], bytes].concat()
}

/// The characters of `bits` each that no byte before or after affects.
fn inside(before: usize, bytes: &[u8], bits: usize) -> Range<usize> {
    (before * 8).div_ceil(bits)..(before + bytes.len()) * 8 / bits
}

/// Without padding.
fn base32(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |at: usize| (at..at + 5).fold(0, |digit, at| digit << 1 | bit(at));
    (0..bytes.len() * 8)
        .step_by(5)
        .map(|at| char::from(DIGITS[usize::from(digit(at))]))
        .collect()
}

fn percent_encoded(text: &str, encode: fn(u8) -> String) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => encode(byte),
    };
    text.bytes().map(one).collect()
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} texts)", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_taken_out_longest_first() {
        let redactor = Redactor::new(["secret1", "secret1-long", "abc", "line one\nline two"]);
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("got secret1-long and secret1.", "got *** and ***."),
            ("abc is too short to hide", "abc is too short to hide"),
            ("line two alone", "*** alone"),
            ("{\"k\":\"line one\\nline two\"}", "{\"k\":\"***\"}"),
            ("前secret1後", "前***後"),
        ] {
            assert_eq!(redactor.redact(text), expected);
        }
        assert!(matches!(redactor.redact("plain"), Cow::Borrowed(_)));
        assert!(!format!("{redactor:?}").contains("secret1"));
    }

    #[test]
    fn g3_without_an_automaton_all_text_is_hidden() {
        let redactor = Redactor {
            finder: SecretFinder::Unavailable,
            count: 1,
        };
        assert_eq!(redactor.redact("got secret1"), MASK);
        assert_eq!(Redactor::default().redact("got secret1"), "got secret1");
    }

    #[test]
    fn g3_encoded_values_are_taken_out_too() {
        let secret = "s3cr3t/värde+1";
        let redactor = Redactor::new([secret]);
        let mut encoded = vec![
            "733363723374".to_owned() + "2f76c3a47264652b31",
            "s3cr3t%2Fv%C3%A4rde%2B1".to_owned(),
            "s3cr3t%2fv%c3%a4rde%2b1".to_owned(),
            "73:33:63:72:33:74:2f:76:c3:a4:72:64:65:2b:31".to_owned(),
            "73 33 63 72 33 74 2F 76 C3 A4 72 64 65 2B 31".to_owned(),
            "OMZWG4RTOQXXNQ5EOJSGKKZR".to_owned(),
            "omzwg4rtoqxxnq5eojsgkkzr".to_owned(),
        ];
        for engine in [STANDARD, URL_SAFE] {
            encoded.push(engine.encode(secret));
            encoded.push(engine.encode(secret).trim_end_matches('=').to_owned());
        }
        for text in encoded {
            assert_eq!(redactor.redact(&format!("got <{text}>")), "got <***>");
        }
        // Inside other text, all but the characters that it shares remains
        // hidden.
        for user in ["u:", "me:", "someone:"] {
            for end in ["", "!", "!!"] {
                let text = STANDARD.encode(format!("{user}{secret}{end}"));
                let shown = redactor.redact(&text).into_owned();
                assert!(shown.contains(MASK), "{user} {end}: {shown}");
                let left = text.len() + MASK.len() - shown.len();
                assert!(left >= secret.len(), "{user} {end}: {shown}");
            }
        }
    }

    #[test]
    fn settings_stay_readable_and_secrets_do_not() {
        for (name, value) in [
            ("NODE_ENV", "production"),
            ("ROOT", "/srv/files"),
            ("PORT", "1234567"),
            ("BASE", "https://example.com/api?page=2"),
            ("X", "short"),
        ] {
            assert!(!worth_hiding(name, value), "{name}");
        }
        for (name, value) in [
            ("ANY", "hunter2hunter2"),
            ("API_KEY", "production"),
            ("GITHUB_PAT", "/abcdef"),
            ("DATABASE_DSN", "1234567"),
            ("BASE", "https://u:p@example.com"),
            ("HOOK", "https://h/services/T0/B0/k9Xq2LmZ7pR4tV8wB1nC"),
        ] {
            assert!(worth_hiding(name, value), "{name}");
        }
    }
}
