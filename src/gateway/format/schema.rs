//! The schema of a tool's arguments, as models' APIs take it. What they
//! refuse, and what becomes of it:
//!
//! - a top level that is not an object with `properties`, or that has `oneOf`,
//!   `anyOf`, `allOf`, `enum`, `const` or `not` beside them (OpenAI; Anthropic
//!   the first three): alternatives are laid over each other, and what only
//!   some of them require is said in words;
//! - `$ref`, `$defs` (Anthropic in places, and many models do not follow
//!   them): what is referred to stands where the reference was; one that leads
//!   back into itself ends there, as does one to another document;
//! - an array without `items`, a schema that is `true` (OpenAI);
//! - older drafts than 2020-12 (Anthropic): lists of `items`, bounds that are
//!   exclusive by a flag, `required` as a flag, types that do not exist.
//!
//! The outcome may allow more than the original, never less: arguments are
//! held against the original when they come. So what would forbid more where
//! something below it allows more goes (`not`, `if`, `contains`, "not
//! evaluated"), and "one of" becomes "any of", which is also what OpenAI would
//! rather have. Only an argument that some alternatives at the top say nothing
//! about is shown as the others have it: a model could not use less.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::pointed;

/// How deep schemas are followed, and how many of them: references can make
/// much of little.
const DEPTH: usize = 40;
const SCHEMAS: usize = 4000;
/// Keywords that allow and forbid nothing.
const ABOUT: [&str; 7] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// Characters of what is said in words.
const NOTE: usize = 300;

pub struct Parameters {
    pub schema: Map<String, Value>,
    /// What the schema cannot say, for the description.
    pub note: Option<String>,
}

pub fn parameters(original: Option<&RawValue>) -> Parameters {
    let original = original.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let original: Value = original.unwrap_or(Value::Null);
    let mut walk = Walk {
        root: &original,
        within: Vec::new(),
        depth: 0,
        left: SCHEMAS,
    };
    let mut note = None;
    let schema = flat(walk.schema(&original), &mut note);
    Parameters { schema, note }
}

struct Walk<'a> {
    root: &'a Value,
    /// The references that are being followed.
    within: Vec<&'a str>,
    depth: usize,
    left: usize,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value) -> Map<String, Value> {
        let Value::Object(schema) = schema else {
            return match schema {
                Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
                _ => Map::new(),
            };
        };
        if self.left == 0 || self.depth >= DEPTH {
            return brief(schema);
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

    /// Beside a reference older drafts read descriptions alone.
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
            return found.as_object().map(brief).unwrap_or_default();
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
                    each.insert(name.clone(), self.schema(schema).into());
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
            _ => match plain(schema, keyword, value) {
                Some(value) => value,
                None => return,
            },
        };
        beside(out, keyword, spelled);
    }

    fn each(&mut self, schemas: &'a [Value]) -> Value {
        let each = schemas.iter().map(|schema| self.schema(schema).into());
        Value::Array(each.collect())
    }
}

/// Sets a keyword; what a reference has brought of lists stays.
fn beside(out: &mut Map<String, Value>, keyword: &str, value: Value) {
    match (out.get_mut(keyword), value) {
        (Some(Value::Object(known)), Value::Object(more)) if keyword == "properties" => {
            known.extend(more);
        }
        (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => {
            let new: Vec<Value> = more
                .into_iter()
                .filter(|name| !known.contains(name))
                .collect();
            known.extend(new);
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
        // With something else below them than there must be.
        (
            "properties" | "patternProperties" | "dependentSchemas" | "prefixItems" | "allOf"
            | "anyOf" | "oneOf",
            _,
        ) => None,
        ("type", value) => types(value),
        ("required", Value::Array(names)) => {
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
            let bound = schema.get(if keyword == "exclusiveMinimum" {
                "minimum"
            } else {
                "maximum"
            });
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

/// What is left of a schema that is not followed any further.
fn brief(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(kind) = schema.get("type").and_then(types) {
        out.insert("type".into(), kind);
    }
    if let Some(text @ Value::String(_)) = schema.get("description") {
        out.insert("description".into(), text.clone());
    }
    if is_array(&out) {
        out.insert("items".into(), json!({}));
    }
    out
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

/// The top level: one object, whatever alternatives it had.
fn flat(mut schema: Map<String, Value>, note: &mut Option<String>) -> Map<String, Value> {
    for (keyword, all) in [("allOf", true), ("anyOf", false)] {
        if let Some(Value::Array(variants)) = schema.remove(keyword) {
            let variants = variants.into_iter().filter_map(|one| match one {
                Value::Object(one) => Some(flat(one, note)),
                _ => None,
            });
            let variants: Vec<_> = variants.collect();
            match all {
                true => add(&mut schema, variants),
                false => overlay(&mut schema, variants, note),
            }
        }
    }
    for keyword in ["enum", "const", "not", "type"] {
        schema.remove(keyword);
    }
    let properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut out = Map::new();
    out.insert("type".into(), "object".into());
    out.insert("properties".into(), properties.into());
    out.extend(schema);
    out
}

/// All of them hold.
fn add(schema: &mut Map<String, Value>, variants: Vec<Map<String, Value>>) {
    for mut variant in variants {
        for name in required(&variant) {
            require(schema, name);
        }
        for (name, value) in take_properties(&mut variant) {
            let properties = properties(schema);
            properties.entry(name).or_insert(value);
        }
        variant.remove("required");
        variant.remove("type");
        variant.remove("additionalProperties");
        for (keyword, value) in variant {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// One of them holds.
fn overlay(
    schema: &mut Map<String, Value>,
    variants: Vec<Map<String, Value>>,
    note: &mut Option<String>,
) {
    let sets: Vec<Vec<String>> = variants.iter().map(required).collect();
    if let Some((first, rest)) = sets.split_first() {
        for name in first {
            if rest.iter().all(|set| set.contains(name)) {
                require(schema, name.clone());
            }
        }
    }
    *note = note.take().or_else(|| in_words(&sets));
    for mut variant in variants {
        for (name, value) in take_properties(&mut variant) {
            either(properties(schema), name, value);
        }
    }
}

/// An argument that is one thing here and another there may be either.
fn either(properties: &mut Map<String, Value>, name: String, value: Value) {
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, value);
        return;
    };
    if *known == value || value == json!({}) {
        return;
    }
    match known {
        Value::Object(map) if map.len() == 1 && map.contains_key("anyOf") => {
            if let Some(Value::Array(each)) = map.get_mut("anyOf")
                && !each.contains(&value)
            {
                each.push(value);
            }
        }
        known => *known = json!({"anyOf": [known.take(), value]}),
    }
}

fn in_words(sets: &[Vec<String>]) -> Option<String> {
    let differ = sets.iter().any(|set| set != &sets[0]);
    if !differ {
        return None;
    }
    let sets = sets.iter().map(|set| match set.as_slice() {
        [] => "none of these".to_owned(),
        set => set.join(" and "),
    });
    let mut sets: Vec<String> = sets.collect();
    sets.dedup();
    let text = format!("Needs one of: {}.", sets.join("; "));
    (text.chars().count() <= NOTE).then_some(text)
}

fn required(schema: &Map<String, Value>) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn require(schema: &mut Map<String, Value>, name: String) {
    let names = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(names) = names
        && !names.iter().any(|known| *known == name)
    {
        names.push(name.into());
    }
}

/// Its own, to be added to. What is added to must not forbid the additions.
fn properties(schema: &mut Map<String, Value>) -> &mut Map<String, Value> {
    schema.remove("additionalProperties");
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        *properties = json!({});
    }
    properties.as_object_mut().expect("made an object above")
}

fn take_properties(schema: &mut Map<String, Value>) -> Map<String, Value> {
    match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    }
}
