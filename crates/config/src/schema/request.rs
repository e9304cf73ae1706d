//! The schemas of a server in a request (SPEC G5). Leniencies of files are
//! errors here, and `null` counts as absent.

use serde_json::{Map, Value, json};

use super::super::check::FRAMING;
use super::super::definition::foreign_fields;
use super::super::spec::TransportKind;
use super::{fields, words};

/// Letters and digits of all languages: classes that every validator knows. The
/// reader also accepts the other alphabetic characters of Unicode, such as the
/// vowel signs of Hindi and Thai, for which few validators have a class.
const NAME: &str = r"^[\p{L}\p{N}]([\p{L}\p{N} _.-]{0,62}[\p{L}\p{N}_.-])?$";
const UUID: &str = "^[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){4}[0-9A-Fa-f]{8}$";

const NO_NUL: &str = r"^[^\x00]*$";
const NOT_BLANK: &str = r"^[^\x00]*[^\s\x00][^\x00]*$";

/// The name of a server.
pub fn name() -> Value {
    json!({"type": "string", "pattern": NAME, "not": {"pattern": UUID}})
}

/// The body of a registration.
pub fn registration() -> Value {
    let kinds = kinds().map(|mut kind| {
        kind["required"] = ["name"]
            .into_iter()
            .chain(required(&kind))
            .map(Value::from)
            .collect();
        kind["properties"]["name"] = name();
        kind
    });
    json!({ "anyOf": kinds })
}

/// The body of a replacement.
pub fn replacement() -> Value {
    json!({ "anyOf": kinds() })
}

/// The body of a change: its result must be a complete definition again, which
/// depends on the current one.
pub fn patch() -> Value {
    let mut properties = properties();
    for map in ["env", "environment", "headers"] {
        properties[map]["additionalProperties"] =
            or_null(properties[map]["additionalProperties"].take());
    }
    closed(properties)
}

/// The arguments of a tool that registers a server: each field in its usual
/// spelling, and nothing at the root that a model's vendor might refuse. The
/// reader checks whether the fields fit together.
pub fn argument() -> Value {
    let mut usual = usual();
    for (_, schema) in &mut usual {
        *schema = given(schema);
    }
    usual["command"] = json!({
        "description": "The program to start, for a server that runs here. It runs with Portway's rights.",
        "type": "string",
    });
    usual["autoStart"]["default"] = true.into();
    let name = called("Name of the server: letters, digits, spaces, `_`, `.` and `-`.");
    usual.shift_insert(0, "name".into(), name);
    let mut schema = closed(Value::Object(usual));
    schema["required"] = json!(["name"]);
    schema
}

/// The arguments of a tool that changes a server: `null` removes a field.
pub fn argument_change() -> Value {
    let mut usual = usual();
    usual.shift_remove("autoStart");
    for map in ["env", "headers"] {
        usual[map]["additionalProperties"] = or_null(usual[map]["additionalProperties"].take());
    }
    usual["command"] = json!({"description": "The program to start.", "type": "string"});
    usual.shift_insert(0, "name".into(), called("A new name."));
    closed(Value::Object(usual))
}

/// A name, described in keywords that every validator supports.
fn called(description: &str) -> Value {
    json!({"description": description, "type": "string", "minLength": 1, "maxLength": 64})
}

/// The fields without their alternative spellings.
fn usual() -> Map<String, Value> {
    let mut usual = match properties() {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    usual.retain(|field, _| !matches!(field.as_str(), "transport" | "environment" | "disabled"));
    usual["type"]["enum"] = json!(["stdio", "http", "sse"]);
    usual
}

/// Three schemas instead of one, because some fields exclude each other.
fn kinds() -> [Value; 3] {
    let stdio = kind(TransportKind::Stdio, "command");
    let plain = kind(TransportKind::Http, "url");
    let mut old = kind(TransportKind::Sse, "url");
    old["anyOf"] = ["type", "transport"]
        .map(|field| json!({"properties": {field: {"enum": ["sse"]}}, "required": [field]}))
        .into_iter()
        .collect();
    [stdio, plain, old]
}

fn kind(kind: TransportKind, essential: &str) -> Value {
    let mut properties = properties();
    for field in ["type", "transport"] {
        properties[field]["enum"] = words(&[kind]).into();
        properties[field] = or_null(properties[field].take());
    }
    for field in foreign_fields(kind) {
        properties[*field] = json!({"type": "null"});
    }
    properties[essential] = given(&properties[essential]);
    let mut schema = closed(properties);
    schema["required"] = json!([essential]);
    schema["allOf"] = contradictions();
    schema
}

fn required(kind: &Value) -> impl Iterator<Item = &str> {
    let names = kind["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str)
}

fn contradictions() -> Value {
    let both = |one: &str, first: Value, other: &str, second: Value| json!({"not": {"required": [one, other], "properties": {one: first, other: second}}});
    let is = |value: bool| json!({"const": value});
    let map = || json!({"type": "object"});
    let more_than = |n: usize| json!({"type": "array", "minItems": n});
    json!([
        both("enabled", is(true), "disabled", is(true)),
        both("enabled", is(false), "disabled", is(false)),
        both("env", map(), "environment", map()),
        both("command", more_than(2), "args", more_than(1)),
    ])
}

/// Every field that a request may have, `null` included.
fn properties() -> Value {
    let text = json!({"type": "string", "pattern": NO_NUL});
    let program = json!({"type": "string", "pattern": NOT_BLANK});
    let mut all = fields();
    all["command"]["anyOf"] = json!([
        program,
        {"type": "array", "prefixItems": [program], "items": text, "minItems": 1},
    ]);
    all["args"]["items"] = text.clone();
    all["cwd"]["pattern"] = NO_NUL.into();
    for field in ["env", "environment"] {
        let names = json!({"pattern": r"^[^=\x00]+$"});
        all[field] = map(&all[field], names, text.clone());
    }
    let names = json!({"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "not": {"enum": FRAMING}});
    let line = json!({"type": "string", "pattern": r"^[\t -~]*$"});
    all["headers"] = map(&all["headers"], names, line);
    all["autoStart"] = json!({"description": "Connect it now.", "type": "boolean"});
    let mut nullable = Map::new();
    if let Value::Object(all) = all {
        nullable.extend(
            all.into_iter()
                .map(|(name, schema)| (name, or_null(schema))),
        );
    }
    nullable.insert("name".into(), or_null(name()));
    Value::Object(nullable)
}

fn map(of: &Value, names: Value, values: Value) -> Value {
    json!({
        "description": of["description"],
        "type": "object",
        "propertyNames": names,
        "additionalProperties": values,
    })
}

fn closed(properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// The same, and `null`.
fn or_null(mut schema: Value) -> Value {
    if let Some(kind) = schema.get("type").and_then(Value::as_str) {
        schema["type"] = json!([kind, "null"]);
    } else if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        if !words.contains(&Value::Null) {
            words.push(Value::Null);
        }
    } else if let Some(ways) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        ways.push(json!({"type": "null"}));
    }
    schema
}

/// The same without `null`.
fn given(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(kind) = schema["type"].get(0).cloned() {
        schema["type"] = kind;
    } else if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    } else if let Some(ways) = schema["anyOf"].as_array_mut() {
        ways.pop();
    }
    schema
}
