//! The members of a JSON object as they were written, blanks aside. None of
//! Portway's own code, which is what is judged here.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member: its name with quotes and escapes, its value without blanks.
pub(super) type Member = (String, String);

struct Collect;

impl<'a> Visitor<'a> for Collect {
    type Value = Vec<(&'a RawValue, &'a RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(all)
    }
}

#[track_caller]
fn read(object: &str) -> Vec<(&RawValue, &RawValue)> {
    let read = serde_json::Deserializer::from_str(object).deserialize_map(Collect);
    read.unwrap_or_else(|error| panic!("{error}: {object}"))
}

#[track_caller]
pub(super) fn members(object: &str) -> Vec<Member> {
    let one = |(key, value): (&RawValue, &RawValue)| (key.get().into(), squeezed(value.get()));
    read(object).into_iter().map(one).collect()
}

/// One value as it stands in the text.
#[track_caller]
pub(super) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let quoted = format!("\"{name}\"");
    let found = read(object)
        .into_iter()
        .find(|(key, _)| key.get() == quoted);
    found.map(|(_, value)| value.get())
}

/// The members but for `names`, and those of the member `inner` but for
/// `inner_names`; an `inner` that has nothing else counts as absent.
pub(super) fn without(
    object: &str,
    names: &[&str],
    inner: &str,
    inner_names: &[&str],
) -> Vec<Member> {
    let named = |key: &str, names: &[&str]| names.contains(&key.trim_matches('"'));
    let mut all = members(object);
    all.retain(|(key, _)| !named(key, names));
    for (key, value) in &mut all {
        if named(key, &[inner]) {
            let mut inside = members(value);
            inside.retain(|(key, _)| !named(key, inner_names));
            let inside: Vec<_> = inside.iter().map(|(k, v)| format!("{k}:{v}")).collect();
            *value = format!("{{{}}}", inside.join(","));
        }
    }
    all.retain(|(key, value)| !(named(key, &[inner]) && value == "{}"));
    all
}

/// The first difference, in words.
pub(super) fn differ(expected: &[Member], got: &[Member]) -> Option<String> {
    let pairs = expected.iter().zip(got);
    let differing = pairs.into_iter().find(|(expected, got)| expected != got);
    match differing {
        Some((expected, got)) => Some(format!("{expected:?} became {got:?}")),
        None if expected.len() != got.len() => {
            Some(format!("{} members became {}", expected.len(), got.len()))
        }
        None => None,
    }
}

/// Blanks outside strings removed, the slow and obvious way.
pub(super) fn squeezed(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::new(), false, false);
    for c in json.chars() {
        if quoted {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            quoted = c == '"';
        }
        out.push(c);
    }
    out
}
