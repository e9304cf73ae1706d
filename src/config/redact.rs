//! Known secret values taken out of a text before anyone reads it: what a
//! server writes to stderr, an error that quotes a command line.

use std::borrow::Cow;

use super::spec::MASK;

/// Shorter values would blank out ordinary words, and protect little.
const SHORTEST: usize = 6;

/// Values that are settings, whatever they are called.
const PLAIN_WORDS: &[&str] = &[
    "debug",
    "default",
    "development",
    "disabled",
    "enabled",
    "localhost",
    "production",
    "staging",
    "verbose",
    "warning",
];

/// Parts of a name that say its value is a secret.
const SECRET_NAMES: &[&str] = &[
    "auth",
    "bearer",
    "cookie",
    "cred",
    "dsn",
    "jwt",
    "key",
    "pass",
    "pat",
    "private",
    "pwd",
    "secret",
    "signature",
    "token",
];

/// Whether a name speaks of a secret: `API_KEY`, `githubToken`, `sig`.
pub(super) fn secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let said = |part: &str| match part {
        // Too short to look for inside a word: `path`, `author`.
        "pat" | "auth" => name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|w| w == part),
        part => name.contains(part),
    };
    name == "sig" || name == "code" || SECRET_NAMES.iter().any(|part| said(part))
}

/// Whether a value of the environment is to be kept out of logs. All are,
/// but those that plainly are settings: paths, numbers, words, addresses.
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
    let address = (value.starts_with("http://") || value.starts_with("https://"))
        && !value.contains(['@', '?']);
    path || number || address || PLAIN_WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// Replaces known values by `***`.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first: one secret may hold another.
    secrets: Vec<String>,
}

impl Redactor {
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Redactor {
        let mut known = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref();
            known.push(secret.to_owned());
            // A key of many lines is logged a line at a time.
            if secret.contains('\n') {
                known.extend(secret.lines().map(str::to_owned));
            }
            // And a log in JSON shows it escaped.
            let escaped = serde_json::Value::from(secret).to_string();
            known.push(escaped[1..escaped.len() - 1].to_owned());
        }
        known.retain(|secret| secret.len() >= SHORTEST);
        known.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Redactor { secrets: known }
    }

    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MASK));
            }
        }
        text
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
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
    fn settings_stay_readable_and_secrets_do_not() {
        for (name, value) in [
            ("NODE_ENV", "production"),
            ("ROOT", "/srv/files"),
            ("PORT", "1234567"),
            ("BASE", "https://example.com/api"),
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
        ] {
            assert!(worth_hiding(name, value), "{name}");
        }
    }
}
