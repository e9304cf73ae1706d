//! Checks arguments against a tool's own schema before they are sent, so that a
//! model gets the error at once. Not a validator: the server validates after
//! it, so only certain errors are refused. Keywords that cannot be checked one
//! by one (`not`, `if`, "exactly one of") and patterns, which are JavaScript
//! regular expressions, are ignored.

use std::fmt;

use serde_json::{Map, Value};

/// Problems reported at once.
const MAX_PROBLEMS: usize = 5;
/// Schemas visited, and their depth: references may go round in circles.
const STEPS: usize = 20_000;
const DEPTH: usize = 64;
/// Characters of the allowed values that are listed.
const LISTED: usize = 200;

/// The problems of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidArguments(Vec<String>);

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

pub fn check(schema: &Value, arguments: &Value) -> Result<(), InvalidArguments> {
    let mut check = ArgumentCheck {
        root: schema,
        steps: STEPS,
        wrong: Vec::new(),
    };
    check.value(schema, arguments, &ArgumentPath::Top, 0);
    if check.wrong.is_empty() {
        return Ok(());
    }
    Err(InvalidArguments(check.wrong))
}

/// The target of a reference within one document.
pub(super) fn pointed<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    let path = target.strip_prefix('#')?;
    root.pointer(path)
}

/// The path of a value in the arguments.
enum ArgumentPath<'a> {
    Top,
    Member(&'a ArgumentPath<'a>, &'a str),
    Element(&'a ArgumentPath<'a>, usize),
}

impl fmt::Display for ArgumentPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentPath::Top => f.write_str("arguments"),
            ArgumentPath::Member(ArgumentPath::Top, name) => write!(f, "{name}"),
            ArgumentPath::Member(outer, name) => write!(f, "{outer}.{name}"),
            ArgumentPath::Element(outer, number) => write!(f, "{outer}[{number}]"),
        }
    }
}

/// The keyword of a bound, its words, and whether a number breaks it.
type Bound<'a> = (&'a str, &'static str, fn(&f64, &f64) -> bool);

struct ArgumentCheck<'a> {
    root: &'a Value,
    steps: usize,
    wrong: Vec<String>,
}

impl<'a> ArgumentCheck<'a> {
    fn say(&mut self, path: &ArgumentPath<'_>, what: impl fmt::Display) {
        if self.wrong.len() < MAX_PROBLEMS {
            self.wrong.push(format!("{path}: {what}"));
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, path: &ArgumentPath<'_>, depth: usize) {
        if *schema == Value::Bool(false) {
            return self.say(path, "is not allowed");
        }
        let Value::Object(schema) = schema else {
            return;
        };
        // Below an `$id`, references have another base.
        let elsewhere = depth > 0 && schema.contains_key("$id");
        if self.steps == 0 || depth >= DEPTH || elsewhere {
            return;
        }
        self.steps -= 1;
        // Older drafts ignore the keywords beside a reference.
        if let Some(target) = schema.get("$ref") {
            let found = target.as_str().and_then(|to| pointed(self.root, to));
            if let Some(found) = found {
                self.value(found, value, path, depth + 1);
            }
            return;
        }
        if !self.kind(schema, value, path) {
            return;
        }
        match value {
            Value::Object(members) => self.object(schema, members, path, depth),
            Value::Array(elements) => self.array(schema, elements, path, depth),
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.number(schema, number, path);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.variants(schema, value, path, depth);
    }

    /// Checks the type and the allowed values; false ends the check.
    fn kind(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        path: &ArgumentPath<'_>,
    ) -> bool {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|name| is(name, value)) {
            let wanted = types.join(" or ");
            self.say(path, format!("must be {wanted}, not {}", name_of(value)));
            return false;
        }
        let allowed = schema.get("enum").and_then(Value::as_array);
        let only = schema.get("const").map(std::slice::from_ref);
        for allowed in [allowed.map(Vec::as_slice), only].into_iter().flatten() {
            if !allowed.iter().any(|one| equal(one, value)) {
                self.say(path, listed(allowed));
                return false;
            }
        }
        true
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        path: &ArgumentPath<'_>,
        depth: usize,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        for name in names.filter(|name| !members.contains_key(*name)) {
            self.say(&ArgumentPath::Member(path, name), "is missing");
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.contains_key("patternProperties");
        let others = schema.get("additionalProperties").filter(|_| !patterns);
        for (name, value) in members {
            let path = ArgumentPath::Member(path, name);
            match (properties.and_then(|known| known.get(name)), others) {
                (Some(its), _) => self.value(its, value, &path, depth + 1),
                (None, Some(Value::Bool(false))) => self.say(&path, "is not an argument"),
                (None, Some(others)) => self.value(others, value, &path, depth + 1),
                (None, None) => {}
            }
        }
        let bounds = ["minProperties", "maxProperties"];
        self.count(schema, members.len(), bounds, "members", path);
    }

    fn array(
        &mut self,
        schema: &'a Map<String, Value>,
        elements: &[Value],
        path: &ArgumentPath<'_>,
        depth: usize,
    ) {
        let items = schema.get("items");
        let (first, rest) = match items {
            Some(Value::Array(first)) => (Some(first), schema.get("additionalItems")),
            _ => (schema.get("prefixItems").and_then(Value::as_array), items),
        };
        for (number, element) in elements.iter().enumerate() {
            if let Some(its) = first.and_then(|first| first.get(number)).or(rest) {
                let path = ArgumentPath::Element(path, number);
                self.value(its, element, &path, depth + 1);
            }
        }
        let bounds = ["minItems", "maxItems"];
        self.count(schema, elements.len(), bounds, "elements", path);
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, path: &ArgumentPath<'_>) {
        let bounds = ["minLength", "maxLength"];
        if bounds.iter().any(|bound| schema.contains_key(*bound)) {
            self.count(schema, text.chars().count(), bounds, "characters", path);
        }
    }

    fn count(
        &mut self,
        schema: &Map<String, Value>,
        count: usize,
        [least, most]: [&str; 2],
        of: &str,
        path: &ArgumentPath<'_>,
    ) {
        let bounds: [Bound<'_>; 2] = [
            (least, "have at least", f64::lt),
            (most, "have at most", f64::gt),
        ];
        self.bounds(schema, count as f64, &bounds, &format!(" {of}"), path);
    }

    fn number(&mut self, schema: &Map<String, Value>, number: f64, path: &ArgumentPath<'_>) {
        let bounds: [Bound<'_>; 4] = [
            ("minimum", "be at least", f64::lt),
            ("maximum", "be at most", f64::gt),
            ("exclusiveMinimum", "be more than", f64::le),
            ("exclusiveMaximum", "be less than", f64::ge),
        ];
        self.bounds(schema, number, &bounds, "", path);
    }

    fn bounds(
        &mut self,
        schema: &Map<String, Value>,
        number: f64,
        bounds: &[Bound<'_>],
        unit: &str,
        path: &ArgumentPath<'_>,
    ) {
        for (keyword, must, breaks) in bounds {
            let bound = schema.get(*keyword).and_then(Value::as_f64);
            if let Some(bound) = bound.filter(|bound| breaks(&number, bound)) {
                self.say(path, format!("must {must} {bound}{unit}"));
            }
        }
    }

    fn variants(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &ArgumentPath<'_>,
        depth: usize,
    ) {
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        for all in list("allOf").into_iter().flatten() {
            self.value(all, value, path, depth + 1);
        }
        for any in ["anyOf", "oneOf"].into_iter().filter_map(list) {
            self.any(any, value, path, depth);
        }
    }

    fn any(&mut self, variants: &'a [Value], value: &Value, path: &ArgumentPath<'_>, depth: usize) {
        let before = self.wrong.len();
        let full = before >= MAX_PROBLEMS;
        let mut closest: Option<Vec<String>> = None;
        for variant in variants {
            let kept = std::mem::take(&mut self.wrong);
            self.value(variant, value, path, depth + 1);
            let wrong = std::mem::replace(&mut self.wrong, kept);
            if wrong.is_empty() {
                return;
            }
            if closest.as_ref().is_none_or(|best| wrong.len() < best.len()) {
                closest = Some(wrong);
            }
        }
        if let Some(closest) = closest.filter(|_| !full) {
            let forms = variants.len();
            let text = format!("fits none of its {forms} forms ({})", closest.join("; "));
            self.say(path, text);
        }
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // In JSON Schema, 1.0 is an integer.
        "integer" => value.as_number().is_some_and(|number| {
            number.is_i64()
                || number.is_u64()
                || number.as_f64().is_none_or(|float| float.fract() == 0.0)
        }),
        _ => true,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Equality as schemas define it: 1 equals 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(name, value)| b.get(name).is_some_and(|other| equal(value, other));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => one == other,
    }
}

fn listed(allowed: &[Value]) -> String {
    let all: Vec<String> = allowed.iter().map(Value::to_string).collect();
    let text = all.join(", ");
    let text = match text.char_indices().nth(LISTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match allowed.len() {
        1 => format!("must be {text}"),
        _ => format!("must be one of {text}"),
    }
}
