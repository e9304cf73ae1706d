//! The hidden parts of a text: a script, JSON, a header, a sentence.

use super::super::reference::has_references;
use super::address::{in_address, in_parameters};
use super::flag::{ArgumentScanner, FlagValue, attached, in_value, is_flag};
use super::shape::{self, is_path, looks_secret};
use super::words::{
    QUOTES, SEPARATORS, block_end, is_apostrophe, line_end, quoted, unquoted, value_end, word_end,
};
use super::{HiddenRange, is_name, name, secret};

/// Texts inside quotes inside quotes; more are hidden as a whole.
const DEEPEST: usize = 8;

/// Words that a credential follows in the value of a header.
const SCHEMES: &[&str] = &[
    "apikey", "api-key", "basic", "bearer", "digest", "hmac", "negotiate", "ntlm", "oauth", "token",
];

/// The meaning that the text gives to its next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextWord {
    Word,
    /// A secret, if `:` or `=` comes first.
    Named,
    /// A secret: one word, or the rest of the line.
    Value {
        line: bool,
    },
}

/// A name and what follows its `:` or `=`.
pub(super) struct NamedValue<'t> {
    name: &'t str,
    pub(super) value: &'t str,
    equals: bool,
}

impl<'t> NamedValue<'t> {
    /// The pair that a text begins with.
    pub(super) fn of(text: &'t str) -> Option<NamedValue<'t>> {
        let at = text.find([':', '='])?;
        let (name, value) = (&text[..at], &text[at + 1..]);
        let bare = name.trim_start_matches(['-', '/']);
        let equals = text.as_bytes()[at] == b'=';
        // An address, or a package and its version.
        let other = value.starts_with("//") || equals && value.starts_with('=');
        (is_name(bare) && !other).then_some(NamedValue {
            name,
            value,
            equals,
        })
    }

    pub(super) fn is_secret(&self) -> bool {
        // The `=` after it pads a token, whatever its letters spell.
        if shape::is_random(self.name) {
            return false;
        }
        let spaced = self.value.is_empty() || self.value.starts_with(char::is_whitespace);
        if self.equals || spaced || self.name.starts_with('-') {
            return name::is_secret(self.name);
        }
        // Neither an image and its tag nor two paths.
        let paths = self.name.starts_with('/') && self.value.starts_with('/');
        name::is_secret_itself(self.name) && !paths && !is_tag(self.value)
    }

    /// Whether the value goes to the end of its line.
    fn is_line(&self) -> bool {
        let spaced = !self.equals && (self.value.is_empty() || self.value.starts_with(' '));
        spaced || is_whole_line(self.name)
    }
}

fn is_whole_line(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.contains("authorization") || lower.contains("cookie")
}

/// `latest`, `v1`, `1.2`: these are no passwords.
fn is_tag(value: &str) -> bool {
    let number = value.strip_prefix('v').unwrap_or(value);
    let version = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    value == "latest" || version && (number.contains('.') || number.len() < value.len())
}

/// The hidden parts of a text that begins at `start`: pairs whose name denotes
/// a secret, the word after such a flag or `Bearer`, addresses, and words with
/// the shape of a secret.
pub(super) fn in_text(text: &str, start: usize, depth: usize) -> Vec<HiddenRange> {
    if depth > DEEPEST {
        return secret(start, text);
    }
    if let Some(at) = text.find("-----BEGIN") {
        let mut hidden = in_text(&text[..at], start, depth);
        hidden.extend(secret(start + at, &text[at..]));
        return hidden;
    }
    let mut scan = TextScanner {
        text,
        start,
        depth,
        at: 0,
        next: NextWord::Word,
        flags: ArgumentScanner::default(),
        command: true,
        hidden: credentials(text, start),
    };
    while let Some(c) = text[scan.at..].chars().next() {
        scan.step(c);
    }
    scan.hidden
}

/// `Basic abc`, alone: the value of a header.
fn credentials(text: &str, start: usize) -> Vec<HiddenRange> {
    match text.trim().split_once(' ') {
        Some((scheme, token))
            if scheme.starts_with(|c: char| c.is_ascii_uppercase())
                && is_scheme(scheme)
                && !token.contains(char::is_whitespace)
                && !has_references(token) =>
        {
            secret(start + offset(text, token), token)
        }
        _ => Vec::new(),
    }
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&word.to_ascii_lowercase().as_str())
}

struct TextScanner<'t> {
    text: &'t str,
    start: usize,
    depth: usize,
    at: usize,
    next: NextWord,
    flags: ArgumentScanner,
    /// Whether the next word may be the name of a program.
    command: bool,
    hidden: Vec<HiddenRange>,
}

impl<'t> TextScanner<'t> {
    fn step(&mut self, c: char) {
        let secret_next =
            matches!(self.next, NextWord::Value { .. }) || self.flags.expected == FlagValue::Secret;
        if secret_next && (c == '{' || c == '[') {
            self.hide(block_end(self.text, self.at));
        } else if c.is_whitespace() || SEPARATORS.contains(&c) {
            self.command |= "\n;|(".contains(c);
            self.at += c.len_utf8();
        } else if let NextWord::Value { line } = self.next {
            self.value(line);
        } else {
            let word = &self.text[self.at..word_end(self.text, self.at)];
            self.word(word);
        }
    }

    /// Hides all up to `end`, but for quotes around it.
    fn hide(&mut self, end: usize) {
        let value = unquoted(&self.text[self.at..end]);
        let at = self.start + offset(self.text, value);
        self.hidden.extend(secret(at, value));
        self.at = end;
        self.next = NextWord::Word;
        self.flags.expected = FlagValue::Anything;
    }

    fn value(&mut self, line: bool) {
        let rest = &self.text[self.at..];
        let first = rest.split(char::is_whitespace).next().unwrap_or_default();
        let end = match quoted(rest) {
            None if line || is_scheme(first) => self.at + line_end(rest, is_scheme(first)),
            _ => value_end(self.text, self.at),
        };
        self.hide(end);
    }

    fn word(&mut self, word: &'t str) {
        let named = std::mem::replace(&mut self.next, NextWord::Word) == NextWord::Named;
        let at = self.start + self.at;
        if named && word.starts_with([':', '=']) {
            // `"pin": 12`, `pin = 12` and `pin => 12`.
            let value = word.trim_start_matches([':', '=', '>']);
            self.next = NextWord::Value { line: false };
            self.at += word.len() - value.len();
            return;
        }
        let is_flag = is_flag(word);
        let expected = self.flags.next(is_flag);
        if is_flag {
            self.flag(word, expected == FlagValue::Secret);
            return;
        }
        if expected == FlagValue::Secret {
            return self.hide(value_end(self.text, self.at));
        }
        if expected != FlagValue::Anything {
            let value = unquoted(word);
            let at = at + offset(word, value);
            self.hidden
                .extend(in_value(expected, value, at, self.depth + 1));
            self.at += word.len();
            return;
        }
        if let Some((inner, length)) = quoted(word) {
            return self.quoted(&word[inner.clone()], inner.start, length);
        }
        if word.eq_ignore_ascii_case("bearer") {
            self.next = NextWord::Value { line: false };
        } else if let Some(hidden) = in_parameters(word, at) {
            self.hidden.extend(hidden);
        } else if let Some(pair) = NamedValue::of(word) {
            return self.pair(word, &pair);
        } else if word.contains("://") {
            self.hidden.extend(in_address(word, at));
        } else {
            if std::mem::take(&mut self.command) {
                self.flags = ArgumentScanner::of(word);
            }
            if names_secret(word) {
                self.next = NextWord::Named;
            }
            return self.bare(word);
        }
        self.at += word.len();
    }

    /// A word by its shape, up to the first quotes in it.
    fn bare(&mut self, word: &str) {
        let quote = word.match_indices(QUOTES).map(|(at, _)| at);
        let end = quote
            .filter(|at| *at > 0)
            .find(|at| !is_apostrophe(word, *at))
            .map_or(word, |at| word[..at].trim_end_matches('\\'))
            .chars()
            .count()
            .max(1);
        let end: usize = word.chars().take(end).map(char::len_utf8).sum();
        let at = self.start + self.at;
        self.hidden.extend(in_word(&word[..end], at));
        self.at += end;
    }

    fn flag(&mut self, word: &str, is_value: bool) {
        let at = self.start + self.at;
        let pair = NamedValue::of(word);
        match (attached(word), &pair) {
            (Some(hidden), _) => {
                let moved = hidden.into_iter().map(|part| HiddenRange {
                    range: part.range.start + at..part.range.end + at,
                    setting: part.setting,
                });
                self.hidden.extend(moved);
                self.at += word.len();
            }
            (None, Some(pair)) => {
                self.flags.expected = FlagValue::after(pair.name);
                self.at += word.len() - pair.value.len();
            }
            (None, None) => {
                self.flags.expected = FlagValue::after(word);
                self.bare(word);
            }
        }
        if is_value {
            self.hidden.extend(secret(at, word));
        }
    }

    fn pair(&mut self, word: &str, pair: &NamedValue<'_>) {
        if pair.is_secret() {
            let line = if pair.value.is_empty() {
                pair.is_line()
            } else {
                is_whole_line(pair.name)
            };
            self.next = NextWord::Value { line };
        } else if !pair.equals && !pair.value.is_empty() || looks_secret(pair.name) {
            return self.bare(word);
        }
        self.at += word.len() - pair.value.len();
    }

    /// A text in quotes: the name of a pair, or a text of its own.
    fn quoted(&mut self, inner: &str, before: usize, length: usize) {
        let at = self.start + self.at + before;
        self.at += length;
        self.command = false;
        if names_secret(inner) {
            self.next = NextWord::Named;
            return;
        }
        self.hidden.extend(in_text(inner, at, self.depth + 1));
        // The sign between a name and its value.
        if self.text[self.at..].starts_with([':', '=']) {
            self.at += 1;
        }
    }
}

/// Whether a word is the name of a secret, and not a token whose letters happen
/// to spell one.
fn names_secret(word: &str) -> bool {
    is_name(word) && name::is_secret(word) && !shape::is_random(word)
}

/// Parts of a word that have a secret's shape, wherever they stand in it.
pub(super) fn in_word(word: &str, start: usize) -> Vec<HiddenRange> {
    if is_path(word) || has_references(word) {
        return Vec::new();
    }
    if looks_secret(word) {
        return secret(start, word);
    }
    let parts = word.split(['=', ':', '@', '&', '?', '#', '$', '!', '\\']);
    parts
        .filter(|part| {
            let before = &word[..offset(word, part)];
            looks_secret(part) && !shape::is_digest(before, part)
        })
        .flat_map(|part| secret(start + offset(word, part), part))
        .collect()
}

pub(super) fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}
