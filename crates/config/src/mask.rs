//! Which parts of a definition are hidden. One answer for both uses: what a
//! view covers is also what a log must not show.

mod shape;

use std::ops::Range;

use super::redact::secret_name;
use super::reference::{Piece, has_references, pieces};
use super::spec::MASK;
use shape::{is_path, looks_secret};

/// Names of users are shorter, tokens longer.
const TOKEN_LENGTH: usize = 16;

/// Programs whose own options come before the server's: `npx -p package`.
const LAUNCHERS: &[&str] = &[
    "bun", "bunx", "deno", "docker", "npm", "npx", "pipx", "pnpm", "pnpx", "podman", "tsx", "uv",
    "uvx", "yarn",
];

/// Characters that end a word inside a text: a script, JSON, a sentence.
const BETWEEN_WORDS: &[char] = &[
    ' ', '\t', '\r', '\n', '"', '\'', '`', '\\', '{', '}', '[', ']', '(', ')', '<', '>', ',', ';',
    '|',
];

/// A part of a text that is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) range: Range<usize>,
    /// A variable's value, hidden whatever it is: not to be looked for in
    /// logs unless it is worth hiding by itself.
    pub(super) setting: bool,
}

/// The kind of value that a flag takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Anything,
    Secret,
    /// `Name: value`.
    Header,
    /// `NAME=value`.
    Variable,
    /// `user:password`.
    User,
    /// The value of `-p`: a password in most programs.
    Password,
}

impl Expected {
    fn after(flag: &str) -> Expected {
        if has_references(flag) {
            return Expected::Anything;
        }
        let name = flag.trim_start_matches('-').to_ascii_lowercase();
        match (flag, name.as_str()) {
            ("-H", _) => Expected::Header,
            ("-e", _) | (_, "env" | "build-arg" | "set-env" | "env-var") => Expected::Variable,
            ("-u", _) | (_, "user" | "userpwd" | "proxy-user") => Expected::User,
            ("-p" | "-P", _) => Expected::Password,
            (_, name) if name.ends_with("header") || name.ends_with("headers") => Expected::Header,
            (_, name) if name.len() > 1 && secret_name(name) => Expected::Secret,
            _ => Expected::Anything,
        }
    }
}

/// The hidden parts of each argument.
pub(super) fn in_args(command: &str, args: &[String]) -> Vec<Vec<Hidden>> {
    let program = command.rsplit('/').next().unwrap_or_default();
    let mut launching = LAUNCHERS.contains(&program);
    let mut expected = Expected::Anything;
    let mut one = |arg: &String| {
        let now = std::mem::replace(&mut expected, Expected::Anything);
        if !is_flag(arg) {
            let launchers = launching && now == Expected::Password;
            launching &= now != Expected::Anything;
            return in_value(if launchers { Expected::Anything } else { now }, arg, 0);
        }
        match arg.split_once('=') {
            Some((flag, value)) => in_value(Expected::after(flag), value, flag.len() + 1),
            None => {
                expected = Expected::after(arg);
                in_attached(arg)
            }
        }
    };
    args.iter()
        .map(|arg| {
            let mut hidden = one(arg);
            hidden.extend(in_defaults(arg));
            tidied(hidden)
        })
        .collect()
}

/// The hidden parts of an address; on the text, which may hold references and
/// then is no URL yet.
pub(super) fn in_url(url: &str) -> Vec<Hidden> {
    let mut hidden = in_address(url, 0);
    hidden.extend(in_defaults(url));
    tidied(hidden)
}

/// The text with its hidden parts covered.
pub(super) fn covered(text: &str, hidden: &[Hidden]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for part in hidden {
        shown.push_str(&text[from..part.range.start]);
        shown.push_str(&cover(&text[part.range.clone()]));
        from = part.range.end;
    }
    shown.push_str(&text[from..]);
    shown
}

/// One hidden value as it is shown. Only references may be seen, alone or
/// behind the word of an authentication scheme; a default inside one is a
/// value like any other.
pub(super) fn cover(value: &str) -> String {
    let mut shown = String::new();
    for (i, piece) in pieces(value).into_iter().enumerate() {
        match piece {
            Piece::Reference { name, default } => shown.push_str(&reference(name, default)),
            Piece::Text(text) if i == 0 && is_scheme(text) && text.len() < value.len() => {
                shown.push_str(text);
            }
            Piece::Text(_) => return MASK.into(),
        }
    }
    shown
}

fn reference(name: &str, default: Option<&str>) -> String {
    match default {
        None => format!("${{{name}}}"),
        Some("") => format!("${{{name}:-}}"),
        Some(_) => format!("${{{name}:-{MASK}}}"),
    }
}

/// `Bearer `, `token `: one short word and a space.
fn is_scheme(text: &str) -> bool {
    ["basic ", "bearer ", "token ", "apikey ", "api-key "]
        .contains(&text.to_ascii_lowercase().as_str())
}

fn is_flag(arg: &str) -> bool {
    let name = arg.trim_start_matches('-');
    arg.starts_with('-') && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// In order and without overlaps.
fn tidied(mut hidden: Vec<Hidden>) -> Vec<Hidden> {
    hidden.retain(|part| !part.range.is_empty());
    hidden.sort_by_key(|part| (part.range.start, std::cmp::Reverse(part.range.end)));
    let mut end = 0;
    hidden.retain(|part| {
        let apart = part.range.start >= end;
        end = end.max(part.range.end);
        apart
    });
    hidden
}

fn secret(start: usize, text: &str) -> Vec<Hidden> {
    vec![Hidden {
        range: start..start + text.len(),
        setting: false,
    }]
}

/// The hidden parts of a flag's value that begins at `start`.
fn in_value(expected: Expected, value: &str, start: usize) -> Vec<Hidden> {
    match expected {
        Expected::Anything => in_text(value, start),
        Expected::Secret => secret(start, value),
        Expected::Header => match value.find([':', '=']) {
            Some(at) if !value[at..].starts_with("://") && !looks_secret(value) => {
                let rest = value[at + 1..].trim_start();
                secret(start + value.len() - rest.len(), rest)
            }
            Some(at) if value[at..].starts_with("://") => in_text(value, start),
            _ => secret(start, value),
        },
        Expected::Variable => match value.split_once('=') {
            Some((name, text)) if is_name(name) => vec![Hidden {
                range: start + name.len() + 1..start + value.len(),
                setting: !secret_name(name) && !looks_secret(text),
            }],
            _ => in_text(value, start),
        },
        Expected::User => match value.split_once(':') {
            Some((user, password)) if !(is_number(user) && is_number(password)) => {
                secret(start + user.len() + 1, password)
            }
            _ => in_text(value, start),
        },
        Expected::Password if is_ordinary_p(value) => in_text(value, start),
        Expected::Password => secret(start, value),
    }
}

/// What `-p` takes where it is no password: a path, a package, a mapping of
/// ports, a version.
fn is_ordinary_p(value: &str) -> bool {
    let numbers = value
        .bytes()
        .all(|b| b.is_ascii_digit() || b":./-".contains(&b));
    is_path(value) || value.starts_with('@') || value.contains("==") || {
        numbers && value.contains([':', '.'])
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
    !text.is_empty() && text.bytes().all(fits)
}

/// A value that stands right behind a flag's letter: `-HName: value`,
/// `-pPassword1`.
fn in_attached(arg: &str) -> Vec<Hidden> {
    let Some((letter, rest)) = arg.split_at_checked(2) else {
        return Vec::new();
    };
    let word = rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    match letter {
        "-H" if rest.contains(':') => in_value(Expected::Header, rest, 2),
        "-p" if !word => in_value(Expected::Password, rest, 2),
        _ => in_text(arg, 0),
    }
}

/// The hidden parts of any text: pairs whose name speaks of a secret, what
/// follows such a flag or `Bearer`, addresses, and words of a secret's shape.
fn in_text(text: &str, start: usize) -> Vec<Hidden> {
    let mut hidden = Vec::new();
    // Whether the word before says that this one is a secret, and whether it
    // would if a `:` came between.
    let (mut follows, mut named) = (false, false);
    for word in text.split(BETWEEN_WORDS).filter(|word| !word.is_empty()) {
        let at = start + offset(text, word);
        let secret_word = std::mem::take(&mut follows);
        let was_named = std::mem::take(&mut named);
        if let Some(value) = word.strip_prefix([':', '=']).filter(|_| was_named) {
            // `"pin": 12` and `"pin":12`.
            follows = value.is_empty();
            hidden.extend(secret(at + 1, value));
            continue;
        }
        if secret_word && !is_flag(word) {
            hidden.extend(secret(at, word));
            continue;
        }
        let name = word.trim_end_matches([':', '=']);
        let speaks = is_name(name) && secret_name(name.trim_start_matches('-'));
        follows = match name.to_ascii_lowercase().as_str() {
            "bearer" => true,
            _ if !speaks => false,
            _ => word.len() > name.len() || (is_flag(word) && word.len() > 2),
        };
        named = speaks;
        match word.split_once('=') {
            Some((name, value))
                if !value.trim_matches('=').is_empty()
                    && is_name(name)
                    && secret_name(name.trim_start_matches('-')) =>
            {
                hidden.extend(secret(at + name.len() + 1, value));
            }
            _ if word.contains("://") => hidden.extend(in_address(word, at)),
            _ => hidden.extend(in_word(word, at)),
        }
    }
    hidden
}

/// Parts of a word that have a secret's shape, wherever they stand in it.
fn in_word(word: &str, start: usize) -> Vec<Hidden> {
    if is_path(word) || has_references(word) {
        return Vec::new();
    }
    if looks_secret(word) {
        return secret(start, word);
    }
    let parts = word.split(['=', ':', '@', '&', '?', '#', '$', '!']);
    parts
        .filter(|part| {
            let before = &word[..offset(word, part)];
            looks_secret(part) && !shape::is_digest(before, part)
        })
        .flat_map(|part| secret(start + offset(word, part), part))
        .collect()
}

fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// The default of a reference to a secret: `${API_KEY:-abc}`.
fn in_defaults(text: &str) -> Vec<Hidden> {
    let defaults = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Reference {
            name,
            default: Some(default),
        } if secret_name(name) || looks_secret(default) => Some(default),
        _ => None,
    });
    defaults
        .flat_map(|default| secret(offset(text, default), default))
        .collect()
}

fn in_address(url: &str, start: usize) -> Vec<Hidden> {
    let (address, fragment) = cut(url, '#');
    let (address, query) = cut(address, '?');
    let host = address.find("://").map_or(0, |i| i + 3);
    let path = address[host..]
        .find('/')
        .map_or(address.len(), |i| host + i);
    let mut hidden = in_userinfo(&address[host..path], start + host);
    hidden.extend(in_path(&address[path..], start + path));
    for parameters in [query, fragment] {
        for parameter in parameters.split(['?', '#', '&', ';']) {
            let at = start + offset(url, parameter);
            match parameter.split_once('=') {
                Some((name, value)) if secret_name(name) || looks_secret(value) => {
                    hidden.extend(secret(at + name.len() + 1, value));
                }
                None if looks_secret(parameter) => hidden.extend(secret(at, parameter)),
                _ => {}
            }
        }
    }
    hidden
}

fn cut(text: &str, at: char) -> (&str, &str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

fn in_userinfo(authority: &str, start: usize) -> Vec<Hidden> {
    let Some(at) = authority.rfind('@') else {
        return Vec::new();
    };
    let (user, password) = cut(&authority[..at], ':');
    let mut hidden = Vec::new();
    // `ghp_…@` and `ghp_…:x-oauth-basic@`: a long name is a token.
    if user.len() >= TOKEN_LENGTH {
        hidden.extend(secret(start, user));
    }
    if let Some(password) = password.strip_prefix(':') {
        hidden.extend(secret(start + user.len() + 1, password));
    }
    hidden
}

/// Segments of a secret's shape, and what follows `/token/` and the like.
fn in_path(path: &str, start: usize) -> Vec<Hidden> {
    let mut before = "";
    let mut hidden = Vec::new();
    for segment in path.split('/') {
        let at = start + offset(path, segment);
        let word = segment
            .bytes()
            .all(|b| b.is_ascii_alphabetic() || b"-_.".contains(&b));
        if !word && !has_references(segment) && shape::holds_secret(before) {
            hidden.extend(secret(at, segment));
        } else {
            hidden.extend(in_word(segment, at));
        }
        before = segment;
    }
    hidden
}

#[cfg(test)]
mod tests;
