use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{Key, each_member_of, quote, raw};

/// Most members of an object we edit. Those have a handful; a message made of
/// nothing but members would cost many times its size to hold apart.
pub const MAX_MEMBERS: usize = 1024;

/// The members of an object, to be changed in place and written again. What
/// is not touched keeps its spelling and its place.
pub struct Object<'a> {
    // Both are JSON text; the keys keep their quotes.
    members: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Object<'a> {
    pub fn new() -> Self {
        Self {
            members: Vec::new(),
        }
    }

    /// None if `raw` is not an object, or one wider than [`MAX_MEMBERS`].
    pub fn read(raw: &'a RawValue) -> Option<Self> {
        Self::read_text(raw.get())
    }

    fn read_text(json: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        let mut count = 0;
        let is_object = each_member_of(json, |key, value| {
            count += 1;
            if count <= MAX_MEMBERS {
                members.push((Cow::Borrowed(key.0), Cow::Borrowed(value.get())));
            }
        });
        (is_object && count <= MAX_MEMBERS).then_some(Self { members })
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A name that occurs twice, if one does.
    pub fn duplicate(&self) -> Option<Cow<'_, str>> {
        let names = || self.members.iter().map(|(key, _)| Key(key).decoded());
        if self.members.len() <= 16 {
            let again = |(at, name): &(usize, Cow<'_, str>)| names().take(*at).any(|n| n == *name);
            return names().enumerate().find(again).map(|(_, name)| name);
        }
        let mut seen = HashSet::with_capacity(self.members.len());
        names().find(|name| !seen.insert(name.clone()))
    }

    /// The JSON text of a member, the first if it is written twice.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.members.iter().find(|(key, _)| Key(key).is(name))?;
        Some(value)
    }

    /// An object inside this one, opened apart: None if there is no such
    /// member or it is null, Some(None) if it cannot be edited.
    pub(in crate::wire) fn open(&self, name: &str) -> Option<Option<Object<'a>>> {
        let (_, value) = self.members.iter().find(|(key, _)| Key(key).is(name))?;
        match value {
            Cow::Borrowed("null") => None,
            Cow::Borrowed(json) => Some(Self::read_text(json)),
            Cow::Owned(_) => Some(None),
        }
    }

    /// Replaces a member where it stands, or adds it at the end. `json` must
    /// be JSON text. Of a member written twice only the first stays.
    pub(in crate::wire) fn set(&mut self, name: &str, json: impl Into<Cow<'a, str>>) {
        let mut json = Some(json.into());
        self.members.retain_mut(|(key, value)| {
            if !Key(key).is(name) {
                return true;
            }
            match json.take() {
                Some(json) => {
                    *value = json;
                    true
                }
                None => false,
            }
        });
        if let Some(json) = json {
            self.members.push((Cow::Owned(quote(name)), json));
        }
    }

    /// As [`Object::set`], for a value known to be JSON by its type.
    pub fn set_raw(&mut self, name: &str, value: &'a RawValue) {
        self.set(name, value.get());
    }

    pub fn remove(&mut self, name: &str) -> bool {
        self.retain(|key| !key.is(name))
    }

    /// Keeps the members `keep` wants; true if any went.
    pub fn retain(&mut self, mut keep: impl FnMut(Key<'_>) -> bool) -> bool {
        let before = self.members.len();
        self.members.retain(|(key, _)| keep(Key(key)));
        self.members.len() != before
    }

    pub(in crate::wire) fn to_text(&self) -> String {
        let size: usize = self
            .members
            .iter()
            .map(|(k, v)| k.len() + v.len() + 2)
            .sum();
        let mut text = String::with_capacity(size + 2);
        let mut lead = '{';
        for (key, value) in &self.members {
            text.push(lead);
            text.push_str(key);
            text.push(':');
            text.push_str(value);
            lead = ',';
        }
        if self.members.is_empty() {
            text.push('{');
        }
        text.push('}');
        text
    }

    pub fn into_raw(self) -> Box<RawValue> {
        raw(self.to_text())
    }
}

impl Default for Object<'_> {
    fn default() -> Self {
        Self::new()
    }
}
