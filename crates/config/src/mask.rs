//! The secret parts of a definition. One rule for the API, which masks them,
//! and for logs, which must not show them. In doubt a value is hidden;
//! names, paths, packages, versions and ports are shown.

mod address;
mod flag;
mod name;
mod shape;
mod text;
mod words;

use std::ops::Range;

use super::reference::{TextPiece, pieces};
use super::spec::MASK;
use flag::ArgumentScanner;
use shape::looks_secret;
use text::offset;

pub(super) use name::is_secret as secret_name;

/// A range of a text that is masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HiddenRange {
    pub(super) range: Range<usize>,
    /// Set for the value of a variable, which is always masked but searched
    /// for in logs only if it looks like a secret.
    pub(super) setting: bool,
}

/// The hidden parts of each argument.
pub(super) fn in_args(command: &str, args: &[String]) -> Vec<Vec<HiddenRange>> {
    let mut flags = ArgumentScanner::of(command);
    args.iter()
        .map(|arg| {
            let mut hidden = flags.argument(arg);
            hidden.extend(in_defaults(arg));
            tidied(hidden)
        })
        .collect()
}

/// The hidden parts of an address; on the text, which may hold references and
/// then is no URL yet.
pub(super) fn in_url(url: &str) -> Vec<HiddenRange> {
    let mut hidden = address::in_address(url, 0);
    let fragment = address::fragment(url).map(|range| secret(range.start, &url[range]));
    hidden.extend(fragment.into_iter().flatten());
    hidden.extend(in_defaults(url));
    tidied(hidden)
}

/// The hidden parts of any text: a script, JSON, an address, a sentence.
pub(super) fn in_text(text: &str) -> Vec<HiddenRange> {
    tidied(text::in_text(text, 0, 0))
}

/// The text with its hidden parts masked.
pub(super) fn covered(text: &str, hidden: &[HiddenRange]) -> String {
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
            TextPiece::Reference { name, default } => shown.push_str(&reference(name, default)),
            TextPiece::Text(text) if i == 0 && is_scheme(text) && text.len() < value.len() => {
                shown.push_str(text);
            }
            TextPiece::Text(_) => return MASK.into(),
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

/// In order and without overlaps.
fn tidied(mut hidden: Vec<HiddenRange>) -> Vec<HiddenRange> {
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

fn secret(start: usize, text: &str) -> Vec<HiddenRange> {
    vec![HiddenRange {
        range: start..start + text.len(),
        setting: false,
    }]
}

fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
    !text.is_empty() && text.bytes().all(fits)
}

/// The default of a reference to a secret: `${API_KEY:-abc}`.
fn in_defaults(text: &str) -> Vec<HiddenRange> {
    let defaults = pieces(text).into_iter().filter_map(|piece| match piece {
        TextPiece::Reference {
            name,
            default: Some(default),
        } if secret_name(name) || looks_secret(default) => Some(default),
        _ => None,
    });
    defaults
        .flat_map(|default| secret(offset(text, default), default))
        .collect()
}

#[cfg(test)]
mod tests;
