//! Walks JSON Schemas without interpreting them: knows which keywords hold
//! schemas and which hold data, and rewrites a few keywords.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use memchr::memmem;
use serde_json::value::RawValue;

use super::object::{
    MemberName, Object, each_element, each_member, is_object, member, quote, raw, text,
};

/// Schemas in messages are bounded by the message depth; this bounds others.
pub(super) const MAX_DEPTH: usize = 64;

/// The kind of value that a keyword has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum KeywordContent {
    /// A schema, or an array of them.
    Schemas,
    /// An object from names to schemas.
    Named,
    /// Data, which may look like a schema.
    Data,
    /// An unknown keyword.
    Unknown,
}

pub(super) fn keyword_content(keyword: &str) -> KeywordContent {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => KeywordContent::Named,
        "const" | "enum" | "default" | "examples" => KeywordContent::Data,
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => KeywordContent::Schemas,
        _ => KeywordContent::Unknown,
    }
}

/// Whether a legacy client needs this output schema, and the values under it,
/// wrapped: legacy knows only objects.
pub(crate) fn needs_wrapping(output_schema: &RawValue) -> bool {
    member(output_schema, "type").and_then(text).as_deref() != Some("object")
}

/// `S` as the one property `result` of an object. Pointers into `S` follow it
/// to its new place.
pub(crate) fn wrap_output_schema(schema: &RawValue) -> Box<RawValue> {
    let mut inner = Cow::Borrowed(schema);
    let mut outer = Object::new();
    // The dialect is named at the root of a document only.
    if let (Some(dialect), Some(mut rest)) = (member(schema, "$schema"), Object::read(schema)) {
        rest.remove("$schema");
        inner = Cow::Owned(rest.into_raw());
        outer.set("$schema", dialect);
    }
    let moved = move_pointers(&inner, "#/properties/result");
    outer.set_text("type", "object");
    outer.set_json("properties", format!(r#"{{"result":{}}}"#, moved.get()));
    outer.set_json("required", r#"["result"]"#);
    outer.into_raw()
}

/// `schema` with each `#` or `#/…` reference starting at `base` instead.
/// Anchors travel with the schema, and so does all below an `$id`.
fn move_pointers<'a>(schema: &'a RawValue, base: &str) -> Cow<'a, RawValue> {
    if !mentions(schema.get(), "$ref") && !mentions(schema.get(), "$dynamicRef") {
        return Cow::Borrowed(schema);
    }
    let rebase = |keyword: &MemberName<'_>, value: &RawValue| {
        if !keyword.is("$ref") && !keyword.is("$dynamicRef") {
            return KeywordEdit::Keep;
        }
        match text(value) {
            Some(target) if target == "#" || target.starts_with("#/") => {
                KeywordEdit::Replace(quote(&format!("{base}{}", &target[1..])))
            }
            _ => KeywordEdit::Keep,
        }
    };
    let mut out = String::with_capacity(schema.get().len() + 256);
    KeywordRewriter {
        edit: rebase,
        unknown: false,
        resources: false,
    }
    .schema(schema, 0, &mut out);
    Cow::Owned(raw(out))
}

/// `schema` without a keyword, wherever it stands as one.
pub(super) fn without_keyword<'a>(schema: &'a RawValue, keyword: &str) -> Cow<'a, RawValue> {
    if !mentions(schema.get(), keyword) {
        return Cow::Borrowed(schema);
    }
    let drop = |found: &MemberName<'_>, _: &RawValue| {
        if found.is(keyword) {
            KeywordEdit::Drop
        } else {
            KeywordEdit::Keep
        }
    };
    let mut out = String::with_capacity(schema.get().len());
    KeywordRewriter {
        edit: drop,
        unknown: true,
        resources: true,
    }
    .schema(schema, 0, &mut out);
    Cow::Owned(raw(out))
}

/// Cheap and one-sided: false means it certainly does not occur, not even
/// spelled with escapes.
pub fn mentions(json: &str, name: &str) -> bool {
    // A searcher is faster once it is made, which takes as long as a search of
    // a small value.
    let contains = |text: &str| {
        if json.len() < 4096 {
            json.contains(text)
        } else {
            memmem::find(json.as_bytes(), text.as_bytes()).is_some()
        }
    };
    contains(name) || contains("\\u")
}

enum KeywordEdit {
    Keep,
    Drop,
    Replace(String),
}

struct KeywordRewriter<F> {
    edit: F,
    /// Whether unknown keywords are rewritten like schemas.
    unknown: bool,
    /// Whether embedded resources, which have an `$id`, are rewritten.
    resources: bool,
}

impl<F: FnMut(&MemberName<'_>, &RawValue) -> KeywordEdit> KeywordRewriter<F> {
    fn schema(&mut self, schema: &RawValue, depth: usize, out: &mut String) {
        if depth > MAX_DEPTH || (!self.resources && is_resource(schema)) {
            out.push_str(schema.get());
        } else if is_object(schema) {
            self.members(schema, depth, out);
        } else if schema.get().starts_with('[') {
            out.push('[');
            let start = out.len();
            each_element(schema, |element| {
                if out.len() > start {
                    out.push(',');
                }
                self.schema(element, depth + 1, out);
            });
            out.push(']');
        } else {
            out.push_str(schema.get());
        }
    }

    fn members(&mut self, schema: &RawValue, depth: usize, out: &mut String) {
        out.push('{');
        let start = out.len();
        each_member(schema, |key, value| {
            let edit = (self.edit)(&key, value);
            if matches!(edit, KeywordEdit::Drop) {
                return;
            }
            open_member(key, start, out);
            match (edit, keyword_content(&key.decoded())) {
                (KeywordEdit::Replace(json), _) => out.push_str(&json),
                (_, KeywordContent::Named) => self.named(value, depth, out),
                (_, KeywordContent::Schemas) => self.schema(value, depth + 1, out),
                (_, KeywordContent::Unknown) if self.unknown => self.schema(value, depth + 1, out),
                _ => out.push_str(value.get()),
            }
        });
        out.push('}');
    }

    fn named(&mut self, schemas: &RawValue, depth: usize, out: &mut String) {
        if !is_object(schemas) {
            return out.push_str(schemas.get());
        }
        out.push('{');
        let start = out.len();
        each_member(schemas, |name, schema| {
            open_member(name, start, out);
            self.schema(schema, depth + 1, out);
        });
        out.push('}');
    }
}

fn open_member(key: MemberName<'_>, start: usize, out: &mut String) {
    if out.len() > start {
        out.push(',');
    }
    out.push_str(key.written());
    out.push(':');
}

fn is_resource(schema: &RawValue) -> bool {
    is_object(schema)
        && member(schema, "$id")
            .and_then(text)
            .is_some_and(|id| !id.is_empty() && !id.starts_with('#'))
}
