//! The hidden parts of an address: a password, tokens in the path, the query
//! and the fragment.

use std::ops::Range;

use super::super::reference::has_references;
use super::text::{in_word, offset};
use super::{HiddenRange, is_name, name, secret, shape};

/// Names of users are shorter, tokens longer.
const TOKEN_LENGTH: usize = 16;

/// Path segments that may follow `/token/` without being a token.
const ACTIONS: &[&str] = &[
    "callback", "create", "exchange", "info", "introspect", "list", "mcp", "new", "refresh",
    "revoke", "sse", "validate", "verify",
];

/// On the text, which may hold references and then is no URL yet.
pub(super) fn in_address(url: &str, start: usize) -> Vec<HiddenRange> {
    let (address, fragment) = cut(url, '#');
    let (address, query) = cut(address, '?');
    let host = address.find("://").map_or(0, |i| i + 3);
    let path = address[host..]
        .find('/')
        .map_or(address.len(), |i| host + i);
    let web = address[..host].ends_with("http://") || address[..host].ends_with("https://");
    let mut hidden = in_authority(&address[host..path], start + host, web);
    hidden.extend(in_path(&address[path..], start + path));
    for parameters in [query, fragment] {
        for parameter in parameters.split(['?', '#', '&', ';']) {
            hidden.extend(in_parameter(parameter, start + offset(url, parameter)));
        }
    }
    hidden
}

/// The fragment of an address, if it is not `name=value`. A fragment is never
/// sent to the server, so it can only be a note of the user.
pub(super) fn fragment(url: &str) -> Option<Range<usize>> {
    let at = url.find('#')? + 1;
    (!url[at..].contains('=')).then_some(at..url.len())
}

/// `name=value` of a query.
pub(super) fn in_parameter(parameter: &str, start: usize) -> Vec<HiddenRange> {
    let Some((name, value)) = parameter.split_once('=') else {
        if shape::is_token_in_address(parameter) {
            return secret(start, parameter);
        }
        return Vec::new();
    };
    let decoded = url::form_urlencoded::parse(parameter.as_bytes()).next();
    let (plain_name, plain_value) = decoded.unwrap_or_default();
    let address = plain_value.contains("://") && !in_address(&plain_value, 0).is_empty();
    if name::is_secret(&plain_name) || shape::is_token_in_address(value) || address {
        secret(start + name.len() + 1, value)
    } else {
        Vec::new()
    }
}

fn cut(text: &str, at: char) -> (&str, &str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

fn in_authority(authority: &str, start: usize, web: bool) -> Vec<HiddenRange> {
    let at = authority.rfind('@');
    let host = at.map_or(0, |at| at + 1);
    let mut hidden = Vec::new();
    for label in authority[host..].split(['.', ':']) {
        if shape::looks_secret(label) {
            hidden.extend(secret(start + offset(authority, label), label));
        }
    }
    let Some(at) = at else {
        return hidden;
    };
    let (user, password) = cut(&authority[..at], ':');
    let password = password.strip_prefix(':').unwrap_or_default();
    // `ghp_…@` and `ghp_…:x-oauth-basic@`: a long name is a token. Web
    // addresses with a name and no password have a token there.
    let word = |b: u8| b.is_ascii_alphabetic() || b"-_.".contains(&b);
    let name = user.bytes().all(word) && user.len() < TOKEN_LENGTH;
    if !name || web && password.is_empty() && user != "git" {
        hidden.extend(secret(start, user));
    }
    hidden.extend(secret(start + user.len() + 1, password));
    hidden
}

/// Segments of a token's shape, what follows `/token/` and the like, and
/// parameters as in `/mcp;token=x`.
fn in_path(path: &str, start: usize) -> Vec<HiddenRange> {
    let mut before = "";
    let mut hidden = Vec::new();
    for whole in path.split('/') {
        let mut parts = whole.split(';');
        let segment = parts.next().unwrap_or_default();
        let at = start + offset(path, segment);
        if has_references(segment) {
            // Shown as it is.
        } else if shape::holds_secret(before) && !is_action(segment)
            || shape::is_token_in_address(segment)
        {
            hidden.extend(secret(at, segment));
        } else {
            hidden.extend(in_word(segment, at));
        }
        for parameter in parts {
            hidden.extend(in_parameter(parameter, start + offset(path, parameter)));
        }
        before = segment;
    }
    hidden
}

fn is_action(segment: &str) -> bool {
    let version = segment.strip_prefix('v').is_some_and(|rest| {
        !rest.is_empty() && rest.len() < 3 && rest.bytes().all(|b| b.is_ascii_digit())
    });
    version || ACTIONS.contains(&segment.to_ascii_lowercase().as_str())
}

/// Pairs joined by `&` outside of an address: `sv=1&sig=x`. A `&` that no
/// pair follows belongs to the value before it.
pub(super) fn in_parameters(text: &str, start: usize) -> Option<Vec<HiddenRange>> {
    let pair = |text: &str| text.split_once('=').is_some_and(|(name, _)| is_name(name));
    let mut ends: Vec<usize> = text
        .match_indices('&')
        .map(|(at, _)| at)
        .filter(|at| pair(text[*at..].trim_start_matches('&')))
        .collect();
    if ends.is_empty() {
        return None;
    }
    ends.push(text.len());
    let mut hidden = Vec::new();
    let mut from = 0;
    for end in ends {
        let parameter = text[from..end].trim_start_matches('&');
        hidden.extend(in_parameter(parameter, start + offset(text, parameter)));
        from = end;
    }
    Some(hidden)
}
