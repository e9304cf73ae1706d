use std::ops::Range;

use super::MemberName;
use crate::scan::{after_space, after_value, string_end};

/// Walks over the members of an object, values as they are written. The text
/// must be valid JSON already, so that finding a member's end takes no parser.
pub(crate) struct Members<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Members<'a> {
    /// None if it is not an object.
    pub(crate) fn of(json: &'a str) -> Option<Members<'a>> {
        json.starts_with('{').then_some(Members { json, at: 1 })
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (MemberName<'a>, &'a str);

    fn next(&mut self) -> Option<(MemberName<'a>, &'a str)> {
        let bytes = self.json.as_bytes();
        let mut name = after_space(bytes, self.at);
        if bytes.get(name) == Some(&b',') {
            name = after_space(bytes, name + 1);
        }
        if bytes.get(name) != Some(&b'"') {
            return None;
        }
        let (name_end, escaped) = string_end(bytes, name + 1);
        let colon = after_space(bytes, name_end);
        let value = after_space(bytes, colon + 1);
        self.at = after_value(bytes, value);
        let written = self.json.get(name..name_end)?;
        let key = MemberName { written, escaped };
        Some((key, self.json.get(value..self.at)?))
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
