//! Body values mirrored in `Mcp-Name` and `Mcp-Param-*` headers.

mod number;
mod schema;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::object::{each_member, is_null, text, unquote};
use number::Number;
pub use schema::{InvalidAnnotation, ParamHeader, ParamType, param_headers, without_annotations};

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    #[error("contains characters that must be base64-encoded in a header value")]
    Characters,
    #[error("has a base64 marker, but its content is not base64 of UTF-8 text")]
    Base64,
}

/// A value as it may stand in a header: itself where that is plain ASCII and
/// unambiguous, else base64 between markers.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && marked(value).is_none();
    if plain {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(value)))
}

/// The value a header stands for. The marker is exact: any other case or a
/// missing end makes it plain text.
pub(crate) fn decode_value(header: &str) -> Result<Cow<'_, str>, BadHeader> {
    let header = header.trim_matches([' ', '\t']);
    if !header
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
    {
        return Err(BadHeader::Characters);
    }
    let Some(encoded) = marked(header) else {
        return Ok(Cow::Borrowed(header));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| BadHeader::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| BadHeader::Base64)?;
    Ok(Cow::Owned(text))
}

fn marked(value: &str) -> Option<&str> {
    value.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}

/// Whether a header equals the body value: strings after decoding, numbers
/// by value. Objects and arrays have no header form.
pub fn matches(header: &str, json: &str) -> Result<bool, BadHeader> {
    let header = decode_value(header)?;
    Ok(match json.as_bytes().first() {
        Some(b'"') => unquote(json).is_some_and(|value| value == header),
        Some(b't' | b'f') => json == header,
        Some(b'-' | b'0'..=b'9') => {
            Number::parse(&header).is_some_and(|number| Some(number) == Number::parse(json))
        }
        _ => false,
    })
}

/// The `Mcp-Param-*` headers of one call: names and encoded values, for each
/// annotated argument that is there and not null.
pub fn param_values(
    headers: &[ParamHeader],
    arguments: Option<&RawValue>,
) -> Vec<(String, String)> {
    let value = |header: &ParamHeader| {
        let raw = header.find(arguments).ok()??;
        Some((header.name.clone(), encode_value(&plain(raw)?).into_owned()))
    };
    headers.iter().filter_map(value).collect()
}

fn plain(raw: &RawValue) -> Option<Cow<'_, str>> {
    match raw.get().as_bytes().first()? {
        b'"' => text(raw),
        b'{' | b'[' => None,
        b't' | b'f' => Some(raw.get().into()),
        _ => Some(
            match Number::parse(raw.get()).and_then(|number| number.integer()) {
                Some(integer) => Cow::Owned(integer),
                None => raw.get().into(),
            },
        ),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderMismatch {
    #[error("header {0} is missing")]
    Missing(String),
    #[error("header {0} does not match the body")]
    Different(String),
    #[error("header {0} {1}")]
    Bad(String, BadHeader),
    #[error("the argument for header {0} occurs twice")]
    Ambiguous(String),
}

/// Compares the `Mcp-Param-*` headers of a call with its arguments. `get`
/// looks a header up, ignoring case.
pub fn check_params<'h>(
    headers: &[ParamHeader],
    arguments: Option<&RawValue>,
    mut get: impl FnMut(&str) -> Option<&'h str>,
) -> Result<(), HeaderMismatch> {
    for header in headers {
        let name = || header.name.clone();
        let value = header
            .find(arguments)
            .map_err(|Ambiguous| HeaderMismatch::Ambiguous(name()))?;
        match (get(&header.name), value) {
            (None, None) => {}
            (None, Some(_)) => return Err(HeaderMismatch::Missing(name())),
            (Some(_), None) => return Err(HeaderMismatch::Different(name())),
            (Some(text), Some(value)) => match matches(text, value.get()) {
                Ok(true) => {}
                Ok(false) => return Err(HeaderMismatch::Different(name())),
                Err(bad) => return Err(HeaderMismatch::Bad(name(), bad)),
            },
        }
    }
    Ok(())
}

struct Ambiguous;

impl ParamHeader {
    /// The argument at this header's path; null counts as absent.
    fn find<'a>(&self, arguments: Option<&'a RawValue>) -> Result<Option<&'a RawValue>, Ambiguous> {
        let mut value = arguments;
        for step in &self.path {
            let Some(holder) = value else { break };
            let mut found = None;
            let mut twice = false;
            each_member(holder, |key, raw| {
                if key.is(step) {
                    twice |= found.replace(raw).is_some();
                }
            });
            if twice {
                return Err(Ambiguous);
            }
            value = found;
        }
        Ok(value.filter(|raw| !is_null(raw)))
    }
}
