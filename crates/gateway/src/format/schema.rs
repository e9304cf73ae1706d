//! The schema of a tool's arguments, as models' APIs accept it. The parts that
//! they refuse, and their replacements:
//!
//! - a top level that is not an object with `properties`, or that has `oneOf`,
//!   `anyOf`, `allOf`, `enum`, `const` or `not` beside them (OpenAI; Anthropic
//!   the first three): alternatives are merged, and a note describes the
//!   arguments that only some of them require;
//! - `$ref`, `$defs` (Anthropic in places, and many models do not follow
//!   them): the target replaces the reference; a reference into itself or to
//!   another document is cut off;
//! - an array without `items`, a schema that is `true` (OpenAI);
//! - older drafts than 2020-12 (Anthropic): lists of `items`, bounds that are
//!   exclusive by a flag, `required` as a flag, types that do not exist.
//!
//! The result may allow more than the original, never less: a call's arguments
//! are checked against the original. So keywords that forbid more when a schema
//! below them allows more are removed (`not`, `if`, `contains`, "not
//! evaluated"), and "one of" becomes "any of", which OpenAI prefers anyway. One
//! exception: an argument that only some alternatives at the top define is
//! shown as they define it, because a model could not use less.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::pointed;
use super::top::flat;

/// The maximum depth and number of schemas that are followed: references can
/// expand a small schema into a huge one.
const DEPTH: usize = 40;
const SCHEMAS: usize = 4000;
/// Keywords that allow and forbid nothing.
const ABOUT: [&str; 7] = [
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
];
/// Bytes that a result may have more than its original, and required names at
/// one place: the rest is left out, which allows more.
const COPIED: usize = 1 << 20;
pub(super) const REQUIRED: usize = 300;

pub struct Parameters {
    pub schema: Map<String, Value>,
    /// Rules that the schema cannot express, for the description.
    pub note: Option<String>,
}

pub fn parameters(original: Option<&RawValue>) -> Parameters {
    let size = original.map_or(0, |raw| raw.get().len());
    let original = original.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let original: Value = original.unwrap_or(Value::Null);
    let mut rewriter = SchemaRewriter {
        root: &original,
        within: Vec::new(),
        depth: 0,
        left: SCHEMAS,
        room: size + COPIED,
    };
    let mut note = None;
    let schema = flat(rewriter.schema(&original), &mut note);
    Parameters { schema, note }
}

struct SchemaRewriter<'a> {
    root: &'a Value,
    /// The references that are being followed.
    within: Vec<&'a str>,
    depth: usize,
    left: usize,
    /// Bytes that may still be written.
    room: usize,
}

impl<'a> SchemaRewriter<'a> {
    fn schema(&mut self, schema: &'a Value) -> Map<String, Value> {
        let Value::Object(schema) = schema else {
            return match schema {
                Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
                _ => Map::new(),
            };
        };
        if self.left == 0 || self.depth >= DEPTH {
            return self.brief(schema);
        }
        self.left -= 1;
        self.depth += 1;
        let mut out = match schema.get("$ref") {
            Some(Value::String(target)) => self.followed(target),
            _ => Map::new(),
        };
        for (keyword, value) in schema {
            if self.counts(schema, keyword) {
                self.keyword(schema, keyword, value, &mut out);
            }
        }
        only_one(&mut out);
        if is_array(&out) && !out.contains_key("items") {
            out.insert("items".into(), json!({}));
        }
        self.depth -= 1;
        out
    }

    /// Beside a reference, older drafts read only descriptions.
    fn counts(&self, schema: &Map<String, Value>, keyword: &str) -> bool {
        let old = || {
            let dialect = self.root.get("$schema").and_then(Value::as_str);
            dialect.is_some_and(|dialect| dialect.contains("draft-0"))
        };
        ABOUT.contains(&keyword) || !schema.contains_key("$ref") || !old()
    }

    fn followed(&mut self, target: &'a str) -> Map<String, Value> {
        let Some(found) = pointed(self.root, target) else {
            return Map::new();
        };
        if self.within.contains(&target) {
            let found = found.as_object();
            return found.map(|found| self.brief(found)).unwrap_or_default();
        }
        self.within.push(target);
        let out = self.schema(found);
        self.within.pop();
        out
    }

    fn keyword(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        value: &'a Value,
        out: &mut Map<String, Value>,
    ) {
        let spelled = match (keyword, value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                let mut each = Map::new();
                for (name, schema) in named {
                    if self.fits(name.len()) {
                        each.insert(name.clone(), self.schema(schema).into());
                    }
                }
                each.into()
            }
            ("items", Value::Array(each)) => {
                let each = self.each(each);
                out.insert("prefixItems".into(), each);
                match schema.get("additionalItems") {
                    Some(more) => self.schema(more).into(),
                    None => json!({}),
                }
            }
            ("oneOf", Value::Array(each)) => {
                if !each.is_empty() && !schema.contains_key("anyOf") {
                    let each = self.each(each);
                    out.insert("anyOf".into(), each);
                }
                return;
            }
            ("prefixItems" | "allOf" | "anyOf", Value::Array(each)) => {
                if each.is_empty() {
                    return;
                }
                self.each(each)
            }
            ("additionalProperties", Value::Bool(_)) => value.clone(),
            ("additionalProperties" | "items" | "propertyNames", value) => {
                self.schema(value).into()
            }
            // Looked at before it is copied.
            _ if !self.fits(keyword.len() + weight(value)) => return,
            _ => match plain(schema, keyword, value) {
                Some(value) => value,
                None => return,
            },
        };
        beside(out, keyword, spelled);
    }

    /// Whether so much may still be written; if so, it is taken as written.
    fn fits(&mut self, bytes: usize) -> bool {
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }

    /// The short form of a schema that is not followed any further.
    fn brief(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut out = Map::new();
        if let Some(kind) = schema.get("type").and_then(types) {
            out.insert("type".into(), kind);
        }
        if let Some(Value::String(text)) = schema.get("description")
            && self.fits(text.len())
        {
            out.insert("description".into(), text.as_str().into());
        }
        if is_array(&out) {
            out.insert("items".into(), json!({}));
        }
        out
    }

    fn each(&mut self, schemas: &'a [Value]) -> Value {
        let each = schemas.iter().map(|schema| self.schema(schema).into());
        Value::Array(each.collect())
    }
}

/// Sets a keyword; lists from a reference are extended, not replaced.
fn beside(out: &mut Map<String, Value>, keyword: &str, value: Value) {
    match (out.get_mut(keyword), value) {
        (Some(Value::Object(known)), Value::Object(more)) if keyword == "properties" => {
            known.extend(more);
        }
        (Some(Value::Array(known)), Value::Array(mut more)) if keyword == "required" => {
            more.retain(|name| !known.contains(name));
            known.extend(more);
        }
        (_, value) => {
            out.insert(keyword.to_owned(), value);
        }
    }
}

/// A keyword that holds no schema, in the words of 2020-12; `None` where it
/// has none there.
fn plain(schema: &Map<String, Value>, keyword: &str, value: &Value) -> Option<Value> {
    match (keyword, value) {
        (
            "$schema"
            | "$id"
            | "$ref"
            | "$defs"
            | "definitions"
            | "$anchor"
            | "$dynamicAnchor"
            | "$dynamicRef"
            | "$recursiveRef"
            | "$recursiveAnchor"
            | "$comment"
            | "$vocabulary"
            | "additionalItems"
            | "dependencies"
            | "x-mcp-header"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "contains"
            | "minContains"
            | "maxContains",
            _,
        ) => None,
        // Their values have the wrong type.
        (
            "properties" | "patternProperties" | "dependentSchemas" | "prefixItems" | "allOf"
            | "anyOf" | "oneOf",
            _,
        ) => None,
        ("type", value) => types(value),
        ("required", Value::Array(names)) if names.len() <= REQUIRED => {
            let mut unique: Vec<&Value> = Vec::new();
            for name in names.iter().filter(|name| name.is_string()) {
                if !unique.contains(&name) {
                    unique.push(name);
                }
            }
            Some(json!(unique))
        }
        ("enum", Value::Array(values)) if !values.is_empty() => Some(value.clone()),
        ("required" | "enum", _) => None,
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(flag)) => {
            let minimum = keyword == "exclusiveMinimum";
            let bound = schema.get(if minimum { "minimum" } else { "maximum" });
            bound.filter(|_| *flag).cloned()
        }
        _ => Some(value.clone()),
    }
}

fn types(value: &Value) -> Option<Value> {
    let known = |value: &&Value| {
        let names = [
            "null", "boolean", "object", "array", "number", "string", "integer",
        ];
        value.as_str().is_some_and(|name| names.contains(&name))
    };
    match value {
        Value::Array(names) => {
            let names: Vec<&Value> = names.iter().filter(known).collect();
            (!names.is_empty()).then(|| json!(names))
        }
        name => Some(name).filter(known).cloned(),
    }
}

fn is_array(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

/// The approximate size of a value when it is written, hardly more: a value
/// that occurs only once always fits.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(each) => each.iter().map(weight).sum::<usize>() + each.len() + 2,
        Value::Object(each) => {
            let each = each
                .iter()
                .map(|(name, value)| name.len() + weight(value) + 4);
            each.sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// `allOf` with one element is how older generators describe a reference.
fn only_one(schema: &mut Map<String, Value>) {
    let single = matches!(schema.get("allOf"), Some(Value::Array(each)) if each.len() == 1);
    let about = |key: &String| key == "allOf" || ABOUT.contains(&key.as_str());
    if !single || !schema.keys().all(about) {
        return;
    }
    if let Some(Value::Array(mut each)) = schema.remove("allOf")
        && let Some(Value::Object(inner)) = each.pop()
    {
        for (keyword, value) in inner {
            schema.entry(keyword).or_insert(value);
        }
    }
}
