//! Finds the boundaries of words, quotes and values in a text.

use std::ops::Range;

use super::super::reference::reference_at;

pub(super) const QUOTES: &[char] = &['"', '\'', '`'];

/// Characters that end a word, unless quotes hold it together. All but white
/// space may be part of a secret.
pub(super) const SEPARATORS: &[char] = &['{', '}', '[', ']', '(', ')', '<', '>', ',', ';', '|'];

/// The maximum length of the name of a pair.
const NAME_LENGTH: usize = 80;

/// The end of the word that begins at `from`; quotes hold it together.
pub(super) fn word_end(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() || SEPARATORS.contains(&c) {
            break;
        }
        if let Some((_, length)) = reference_at(&text[at..]) {
            at += length;
            continue;
        }
        let apostrophe = is_apostrophe(&text[from..], at - from);
        at += match quoted(&text[at..]).filter(|_| !apostrophe) {
            Some((_, length)) => length,
            None if c == '\\' => text[at..].len() - text[at..].trim_start_matches('\\').len(),
            None => c.len_utf8(),
        };
    }
    at
}

/// Whether a quote in a word opens nothing: `don't`.
pub(super) fn is_apostrophe(word: &str, at: usize) -> bool {
    let letter = word[..at].ends_with(|c: char| c.is_alphanumeric());
    letter && word[at..].starts_with('\'') && !word.starts_with('-')
}

/// The inside of the quotes that a text begins with, and the length of all.
/// `\"` is a quote as well, inside of a text that is quoted itself.
pub(super) fn quoted(text: &str) -> Option<(Range<usize>, usize)> {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    let quote = text[slashes..].chars().next()?;
    if !QUOTES.contains(&quote) {
        return None;
    }
    let open = slashes + 1;
    let ends = text[open..].match_indices(quote).map(|(i, _)| open + i);
    let closes = |at: &usize| {
        let inside = &text[open..*at];
        let before = inside.len() - inside.trim_end_matches('\\').len();
        match slashes {
            0 => before.is_multiple_of(2),
            _ => before == slashes,
        }
    };
    // A shell knows no escapes inside of single quotes.
    let first = || {
        ends.clone()
            .next()
            .filter(|_| quote == '\'' && slashes == 0)
    };
    let end = ends.clone().find(closes).or_else(first)?;
    Some((open..end - slashes, end + 1))
}

/// The inside of quotes that enclose the whole text.
pub(super) fn unquoted(text: &str) -> &str {
    match quoted(text) {
        Some((inner, length)) if length == text.len() => &text[inner],
        _ => text,
    }
}

/// The end of the secret that begins at `from`. A separator is part of it
/// unless white space, quotes, another pair or nothing follows.
pub(super) fn value_end(text: &str, from: usize) -> usize {
    let mut end = word_end(text, from);
    loop {
        let rest = &text[end..];
        let more = rest.trim_start_matches(SEPARATORS);
        let ends = more.is_empty()
            || more.len() == rest.len()
            || more.starts_with(char::is_whitespace)
            || quoted(more).is_some()
            || starts_pair(more);
        if ends {
            return end;
        }
        end = word_end(text, text.len() - more.len());
    }
}

/// The length of the rest of a line, without the next pair of a list unless the
/// `whole` line is wanted.
pub(super) fn line_end(text: &str, whole: bool) -> usize {
    let line = text.split(['\r', '\n']).next().unwrap_or_default();
    let next = line
        .match_indices([',', ';'])
        .map(|(at, _)| at)
        .find(|at| !whole && starts_pair(line[at + 1..].trim_start()));
    let line = &line[..next.unwrap_or(line.len())];
    line.trim_end_matches(|c: char| c.is_whitespace() || "}])".contains(c))
        .len()
}

fn starts_pair(text: &str) -> bool {
    let text = &text[..text.floor_char_boundary(NAME_LENGTH)];
    let rest = match quoted(text) {
        Some((_, length)) => &text[length..],
        None => text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_-.".contains(c)),
    };
    rest.len() < text.len() && rest.trim_start().starts_with([':', '='])
}

/// The end of the object or list that begins at `from`.
pub(super) fn block_end(text: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(c) = text[at..].chars().next() {
        at += quoted(&text[at..]).map_or(c.len_utf8(), |(_, length)| length);
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}
