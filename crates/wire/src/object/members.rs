use std::ops::Range;

use super::MemberName;
use crate::scan::{after_space, after_value, string_end};

/// Walks over the members of an object, values as they are written. The text
/// must be valid JSON already, so that finding a member's end takes no parser.
#[derive(Clone)]
pub(crate) struct Members<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Members<'a> {
    /// None if it is not an object.
    pub(crate) fn of(json: &'a str) -> Option<Members<'a>> {
        json.starts_with('{').then_some(Members { json, at: 1 })
    }

    /// The name of the next member, whose value must be read next; `None` at the
    /// end of the object.
    pub(crate) fn name(&mut self) -> Option<MemberName<'a>> {
        let bytes = self.json.as_bytes();
        let mut name = after_space(bytes, self.at);
        if bytes.get(name) == Some(&b',') {
            name = after_space(bytes, name + 1);
        }
        self.at = name;
        if bytes.get(name) != Some(&b'"') {
            return None;
        }
        let (name_end, escaped) = string_end(bytes, name + 1);
        let colon = after_space(bytes, name_end);
        self.at = after_space(bytes, colon + 1);
        let written = self.json.get(name..name_end)?;
        Some(MemberName { written, escaped })
    }

    /// The value after a name.
    pub(crate) fn value(&mut self) -> &'a str {
        let start = self.at;
        self.at = after_value(self.json.as_bytes(), start);
        self.json.get(start..self.at).unwrap_or_default()
    }

    /// The value after a name: if it is an object, `walk` walks over all its
    /// members, so that its text is passed only once.
    pub(crate) fn object<T>(
        &mut self,
        walk: impl FnOnce(&mut Members<'a>) -> T,
    ) -> (&'a str, Option<T>) {
        let start = self.at;
        if self.json.as_bytes().get(start) != Some(&b'{') {
            return (self.value(), None);
        }
        let mut inner = Members {
            json: self.json,
            at: start + 1,
        };
        let walked = walk(&mut inner);
        self.at = inner.at + 1;
        let text = self.json.get(start..self.at).unwrap_or_default();
        (text, Some(walked))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (MemberName<'a>, &'a str);

    fn next(&mut self) -> Option<(MemberName<'a>, &'a str)> {
        let name = self.name()?;
        Some((name, self.value()))
    }
}

/// Walks over the places of an array's elements, in valid JSON.
pub(super) struct Elements<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Elements<'a> {
    /// None if it is not an array.
    pub(super) fn of(json: &'a str) -> Option<Elements<'a>> {
        json.starts_with('[').then_some(Elements { json, at: 1 })
    }
}

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.json.as_bytes();
        let mut start = after_space(bytes, self.at);
        if bytes.get(start) == Some(&b',') {
            start = after_space(bytes, start + 1);
        }
        if bytes.get(start).is_none_or(|byte| *byte == b']') {
            return None;
        }
        self.at = after_value(bytes, start);
        Some(start..self.at)
    }
}
