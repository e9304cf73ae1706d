//! Reads and rewrites the members of one JSON object without parsing their
//! values.

mod edit;
mod members;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

pub(crate) use edit::MAX_MEMBERS;
pub use edit::Object;
pub(super) use edit::push_text;
use members::Elements;
pub(super) use members::Members;

/// A member's name as it was written, quotes and escapes included.
#[derive(Clone, Copy)]
pub struct MemberName<'a> {
    written: &'a str,
    escaped: bool,
}

impl<'a> MemberName<'a> {
    fn inner(self) -> &'a str {
        &self.written[1..self.written.len() - 1]
    }

    /// The JSON string as it stood in the text.
    pub fn written(self) -> &'a str {
        self.written
    }

    /// Compares after unescaping: `"\u006eame"` is `name` to every peer.
    pub fn is(self, name: &str) -> bool {
        if self.escaped {
            self.decoded() == name
        } else {
            self.inner() == name
        }
    }

    pub(super) fn equals(self, other: MemberName<'_>) -> bool {
        if self.escaped || other.escaped {
            self.decoded() == other.decoded()
        } else {
            self.written == other.written
        }
    }

    /// The name itself. A lone surrogate has none; its spelling is used.
    pub fn decoded(self) -> Cow<'a, str> {
        let decoded = self.escaped.then(|| unquote(self.written)).flatten();
        decoded.unwrap_or(Cow::Borrowed(self.inner()))
    }
}

/// Calls `visit` for each member in order; false if `raw` is not an object.
pub fn each_member<'a>(
    raw: &'a RawValue,
    mut visit: impl FnMut(MemberName<'a>, &'a RawValue),
) -> bool {
    let Some(members) = Members::of(raw.get()) else {
        return false;
    };
    for (key, value) in members {
        if let Some(value) = parse_part(value) {
            visit(key, value);
        }
    }
    true
}

/// As [`each_member`], as text. `json` must be valid.
pub(super) fn each_json_member<'a>(json: &'a str, mut visit: impl FnMut(MemberName<'a>, &'a str)) {
    for (key, value) in Members::of(json).into_iter().flatten() {
        visit(key, value);
    }
}

/// Parses a value found inside valid JSON.
pub fn parse_part(json: &str) -> Option<&RawValue> {
    serde_json::from_str(json).ok()
}

/// Several top-level members in one pass.
///
/// A member written twice counts as absent: peers disagree on which one
/// holds, so neither may decide anything here.
pub fn pick<'a, const N: usize>(raw: &'a RawValue, names: [&str; N]) -> [Option<&'a RawValue>; N] {
    find_members(raw.get(), names).map(|found| found.and_then(parse_part))
}

/// As [`pick`], as text, for members whose own members are read next.
/// `json` must be valid.
pub fn find_members<'a, const N: usize>(json: &'a str, names: [&str; N]) -> [Option<&'a str>; N] {
    let mut found = Found::new(names);
    if let Some(mut members) = Members::of(json) {
        found.fill(&mut members);
    }
    found.once()
}

/// The values of members that are looked for.
pub(super) struct Found<'a, 'n, const N: usize> {
    names: [&'n str; N],
    values: [Option<&'a str>; N],
    twice: [bool; N],
}

impl<'a, 'n, const N: usize> Found<'a, 'n, N> {
    pub(super) fn new(names: [&'n str; N]) -> Self {
        Self {
            names,
            values: [None; N],
            twice: [false; N],
        }
    }

    pub(super) fn fill(&mut self, members: &mut Members<'a>) {
        while let Some(name) = members.name() {
            self.put(name, members.value());
        }
    }

    pub(super) fn put(&mut self, name: MemberName<'_>, value: &'a str) {
        if let Some(at) = self.names.iter().position(|wanted| name.is(wanted)) {
            self.twice[at] |= self.values[at].replace(value).is_some();
        }
    }

    /// Without those written twice.
    pub(super) fn once(self) -> [Option<&'a str>; N] {
        let mut values = self.values;
        for (value, twice) in values.iter_mut().zip(self.twice) {
            *value = value.filter(|_| !twice);
        }
        values
    }
}

/// One member of a member; see [`pick`] for members written twice.
pub fn inner_member<'a>(raw: &'a RawValue, outer: &str, inner: &str) -> Option<&'a RawValue> {
    let [outer] = find_members(raw.get(), [outer]);
    let [inner] = find_members(outer?, [inner]);
    inner.and_then(parse_part)
}

/// One top-level member; see [`pick`] for members written twice.
pub fn member<'a>(raw: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let [value] = pick(raw, [name]);
    value
}

/// `raw` with one member replaced where it stood, or added at the end.
/// A value that is not an object is returned unchanged.
pub fn set_member(raw: &RawValue, name: &str, value: &RawValue) -> Box<RawValue> {
    match Object::read(raw) {
        Some(mut object) => {
            object.set(name, value);
            object.into_raw()
        }
        None => raw.to_owned(),
    }
}

/// As [`set_member`], as text. Both must be valid JSON.
pub fn set_json_member(json: &str, name: &str, value: &str) -> String {
    match Object::read_json(json) {
        Some(mut object) => {
            object.set_json(name, value);
            object.to_json()
        }
        None => json.to_owned(),
    }
}

/// `raw` without the named members; borrowed when it has none of them.
pub fn remove_members<'a>(raw: &'a RawValue, names: &[&str]) -> Cow<'a, RawValue> {
    if let Some(mut object) = Object::read(raw)
        && object.retain(|name| !names.contains(&name))
    {
        return Cow::Owned(object.into_raw());
    }
    Cow::Borrowed(raw)
}

/// Calls `visit` for each element in order; false if `raw` is not an array.
/// Nothing is collected: an array of a million ones is no heavier than its text.
pub fn each_element<'a>(raw: &'a RawValue, visit: impl FnMut(&'a RawValue)) -> bool {
    raw.get().starts_with('[')
        && serde_json::Deserializer::from_str(raw.get())
            .deserialize_seq(EachElement(visit))
            .is_ok()
}

struct EachElement<F>(F);

impl<'a, F: FnMut(&'a RawValue)> Visitor<'a> for EachElement<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

/// An array with some elements replaced, all around them as it was written;
/// borrowed if `map` gives every element back, or it is not an array. `array`
/// must be valid JSON.
pub fn map_elements<'a>(
    array: &'a str,
    mut map: impl FnMut(&'a str) -> Cow<'a, str>,
) -> Cow<'a, str> {
    let mut out = String::new();
    let mut copied = 0;
    for place in Elements::of(array).into_iter().flatten() {
        if let Cow::Owned(new) = map(&array[place.clone()]) {
            out.push_str(&array[copied..place.start]);
            out.push_str(&new);
            copied = place.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(array);
    }
    out.push_str(&array[copied..]);
    Cow::Owned(out)
}

/// `{}`.
pub fn empty() -> &'static RawValue {
    static EMPTY: std::sync::OnceLock<Box<RawValue>> = std::sync::OnceLock::new();
    EMPTY.get_or_init(|| raw("{}".into()))
}

/// The byte range in `whole` of a value that was found in it.
pub fn range_in(whole: &RawValue, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr() as usize - whole.get().as_ptr() as usize;
    start..start + part.get().len()
}

pub fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

pub fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// The text of a JSON string; None for anything else and for lone surrogates.
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    unquote(raw.get())
}

/// As [`text`], of JSON text.
pub fn unquote(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(json).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// The text as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_quoted(text, &mut out);
    String::from_utf8(out).expect("serde_json writes UTF-8")
}

pub(super) fn push_quoted(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string always serialises into memory");
}

/// Text that is valid JSON, or assembled of it. Parsing it keeps a mistake in
/// this crate from reaching a peer.
pub fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("assembled from valid JSON")
}
