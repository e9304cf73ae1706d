use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use super::members::Members;
use super::{MemberName, quote, raw};

/// Most members of an object that is edited. Ordinary objects have a handful;
/// a message of nothing but members would need many times its size in memory.
pub(crate) const MAX_MEMBERS: usize = 1024;

/// The members of an object, to be changed in place and written again.
/// Unchanged members keep their spelling and their position.
#[derive(Default)]
pub struct Object<'a> {
    members: Vec<(OutputName<'a>, MemberValue<'a>)>,
}

enum OutputName<'a> {
    /// As found.
    Written(MemberName<'a>),
    /// As given.
    Plain(&'a str),
}

impl OutputName<'_> {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Written(key) => key.is(name),
            Self::Plain(text) => *text == name,
        }
    }

    fn decoded(&self) -> Cow<'_, str> {
        match self {
            Self::Written(key) => key.decoded(),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }
}

enum MemberValue<'a> {
    Json(Cow<'a, str>),
    Text(&'a str),
    Number(u64),
    Object(Object<'a>),
}

impl<'a> Object<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// None if `raw` is not an object, or one wider than `MAX_MEMBERS`.
    pub fn read(raw: &'a RawValue) -> Option<Self> {
        Self::read_json(raw.get())
    }

    /// As [`Object::read`]; `json` must be valid.
    pub fn read_json(json: &'a str) -> Option<Self> {
        Self::of(Members::of(json)?)
    }

    pub(crate) fn of(all: Members<'a>) -> Option<Self> {
        let mut members = Vec::with_capacity(8);
        for (key, value) in all {
            if members.len() == MAX_MEMBERS {
                return None;
            }
            members.push((
                OutputName::Written(key),
                MemberValue::Json(Cow::Borrowed(value)),
            ));
        }
        Some(Self { members })
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A name that occurs twice, if one does.
    pub fn duplicate(&self) -> Option<Cow<'_, str>> {
        let names = || self.members.iter().map(|(name, _)| name.decoded());
        if self.members.len() <= 16 {
            let again = |(at, name): &(usize, Cow<'_, str>)| names().take(*at).any(|n| n == *name);
            return names().enumerate().find(again).map(|(_, name)| name);
        }
        let mut seen = HashSet::with_capacity(self.members.len());
        names().find(|name| !seen.insert(name.clone()))
    }

    pub fn contains(&self, name: &str) -> bool {
        self.members.iter().any(|(known, _)| known.is(name))
    }

    /// The JSON of a member that was read; none if it occurs twice, or was
    /// changed.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let mut found = self.members.iter().filter(|(known, _)| known.is(name));
        match (found.next()?, found.next()) {
            ((_, MemberValue::Json(Cow::Borrowed(json))), None) => Some(json),
            _ => None,
        }
    }

    /// An object inside this one, opened apart: None if there is no such
    /// member or it is null, Some(None) if it cannot be edited. Put it back
    /// with [`Object::set_object`].
    pub fn open(&self, name: &str) -> Option<Option<Object<'a>>> {
        let (_, value) = self.members.iter().find(|(known, _)| known.is(name))?;
        match value {
            MemberValue::Json(Cow::Borrowed("null")) => None,
            MemberValue::Json(Cow::Borrowed(json)) => Some(Self::read_json(json)),
            _ => Some(None),
        }
    }

    /// Replaces a member where it stands, or adds it at the end. Of a member
    /// written twice only the first stays.
    pub fn set(&mut self, name: &'a str, value: &'a RawValue) {
        self.put(name, MemberValue::Json(Cow::Borrowed(value.get())));
    }

    pub(crate) fn set_text(&mut self, name: &'a str, text: &'a str) {
        self.put(name, MemberValue::Text(text));
    }

    pub(crate) fn set_number(&mut self, name: &'a str, number: u64) {
        self.put(name, MemberValue::Number(number));
    }

    pub fn set_object(&mut self, name: &'a str, object: Object<'a>) {
        self.put(name, MemberValue::Object(object));
    }

    /// As [`Object::set`]; `json` must be valid JSON.
    pub fn set_json(&mut self, name: &'a str, json: impl Into<Cow<'a, str>>) {
        self.put(name, MemberValue::Json(json.into()));
    }

    fn put(&mut self, name: &'a str, part: MemberValue<'a>) {
        let mut part = Some(part);
        self.members.retain_mut(|(known, value)| {
            if !known.is(name) {
                return true;
            }
            match part.take() {
                Some(part) => *value = part,
                None => return false,
            }
            true
        });
        if let Some(part) = part {
            self.members.push((OutputName::Plain(name), part));
        }
    }

    pub fn remove(&mut self, name: &str) -> bool {
        self.retain(|known| known != name)
    }

    /// Keeps the members that `keep` accepts; true if any was removed.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) -> bool {
        let before = self.members.len();
        self.members.retain(|(name, _)| keep(&name.decoded()));
        self.members.len() != before
    }

    pub fn into_raw(self) -> Box<RawValue> {
        raw(self.to_json())
    }

    pub fn to_json(&self) -> String {
        // Exact but for escapes, so that boxing it later need not copy.
        let mut out = String::with_capacity(self.size());
        self.write(&mut out);
        debug_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&out).is_ok());
        out
    }

    pub(crate) fn size(&self) -> usize {
        let members: usize = self.members.iter().map(size).sum();
        (members + 1).max(2)
    }

    pub(crate) fn write(&self, out: &mut String) {
        out.push('{');
        for (at, (name, value)) in self.members.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            match name {
                OutputName::Written(key) => out.push_str(key.written()),
                OutputName::Plain(text) => push_text(text, out),
            }
            out.push(':');
            match value {
                MemberValue::Json(json) => out.push_str(json),
                MemberValue::Text(text) => push_text(text, out),
                MemberValue::Number(number) => {
                    write!(out, "{number}").expect("writing into memory")
                }
                MemberValue::Object(object) => object.write(out),
            }
        }
        out.push('}');
    }
}

/// A member, its colon and its comma.
fn size((name, value): &(OutputName<'_>, MemberValue<'_>)) -> usize {
    let name = match name {
        OutputName::Written(key) => key.written().len(),
        OutputName::Plain(text) => text.len() + 2,
    };
    let value = match value {
        MemberValue::Json(json) => json.len(),
        MemberValue::Text(text) => text.len() + 2,
        MemberValue::Number(number) => number.checked_ilog10().unwrap_or(0) as usize + 1,
        MemberValue::Object(object) => object.size(),
    };
    name + value + 2
}

pub(crate) fn push_text(text: &str, out: &mut String) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if !text.bytes().all(plain) {
        return out.push_str(&quote(text));
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}
