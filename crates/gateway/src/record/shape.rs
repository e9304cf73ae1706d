//! The JSON Schemas of a server as the API shows it, for the API's document and
//! Portway's own tools.

use serde_json::{Value, json};

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn maybe_text() -> Value {
    json!({"type": ["string", "null"]})
}

pub fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub fn time() -> Value {
    json!({"type": "integer", "minimum": 0, "description": "Milliseconds since the epoch"})
}

pub fn flag() -> Value {
    json!({"type": "boolean"})
}

/// A record; `config` and `problem` are the schemas of those members, or
/// references to them.
pub fn server(config: &Value, problem: &Value) -> Value {
    let names = json!({"type": "array", "items": {"type": "string"}});
    let problems = json!({"type": "array", "items": problem});
    let warnings = json!({"type": "array", "items": {"type": "string"}, "description":
        "Of a start, stop or restart: it is in force, but the store could not record it yet"});
    let transport = json!({"enum": ["stdio", "http", "sse", null]});
    let status = json!({"enum": ["disconnected", "connecting", "connected", "error"]});
    let isolation = json!({"enum": ["shared", "principal", "session", null]});
    let retry_at = json!({"type": ["integer", "null"], "minimum": 0, "description":
        "When it is tried again by itself: milliseconds since the epoch"});
    let (text, maybe_text, count) = (text(), maybe_text(), count());
    object(
        &[
            ("id", &json!({"type": "string", "format": "uuid"})),
            ("name", &text),
            ("transport", &transport),
            ("status", &status),
            ("state", &json!({"enum": ["stopped", "running", "error"]})),
            ("since", &time()),
            ("error", &maybe_text),
            ("enabled", &flag()),
            ("toolCount", &count),
            ("config", &json!({"anyOf": [config, {"type": "null"}]})),
            ("source", &text),
            ("era", &json!({"enum": ["legacy", "modern", null]})),
            ("protocolVersion", &maybe_text),
            ("serverInfo", &json!({"type": ["object", "null"]})),
            ("instructions", &maybe_text),
            ("pid", &json!({"type": ["integer", "null"]})),
            ("containment", &maybe_text),
            ("isolation", &isolation),
            ("restarts", &count),
            ("retryAt", &retry_at),
        ],
        &[
            ("shadows", &names),
            ("problems", &problems),
            ("warnings", &warnings),
            ("containmentGaps", &names),
        ],
    )
}

/// A definition as the API shows it: all fields, with masked secrets.
pub fn config() -> Value {
    let kind = json!({"enum": ["stdio", "http", "sse"]});
    let isolation = json!({"enum": ["auto", "shared", "principal", "session"]});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let args = json!({"type": "array", "items": {"type": "string"}});
    object(
        &[
            ("type", &kind),
            ("transport", &kind),
            ("enabled", &flag()),
            ("timeout", &count()),
            ("era", &json!({"enum": ["auto", "legacy", "modern"]})),
            ("isolation", &isolation),
        ],
        &[
            ("command", &text()),
            ("args", &args),
            ("env", &texts),
            ("cwd", &text()),
            ("containment", &text()),
            ("privileges", &json!({"enum": ["drop", "keep"]})),
            ("url", &text()),
            ("headers", &texts),
        ],
    )
}

pub fn problem() -> Value {
    let (text, count) = (text(), count());
    object(
        &[("field", &text), ("message", &text)],
        &[("server", &text), ("line", &count), ("column", &count)],
    )
}

pub fn log_line() -> Value {
    let text = text();
    object(
        &[
            ("seq", &count()),
            ("at", &time()),
            ("stream", &text),
            ("text", &text),
        ],
        &[],
    )
}

/// An object with these members and no others.
pub fn object(always: &[(&str, &Value)], sometimes: &[(&str, &Value)]) -> Value {
    let required: Vec<_> = always.iter().map(|(name, _)| *name).collect();
    let all = always.iter().chain(sometimes);
    let properties: serde_json::Map<String, Value> = all
        .map(|(name, schema)| ((*name).to_owned(), (*schema).clone()))
        .collect();
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}
