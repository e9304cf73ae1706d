//! The shapes that the document names. The test beside it holds them against
//! what is really answered.

use serde_json::{Value, json};

pub(super) fn schemas() -> Value {
    let text = json!({"type": "string"});
    let maybe_text = json!({"type": ["string", "null"]});
    let named_so = json!({"type": "string", "minLength": 1});
    let tool = json!({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$"});
    let count = json!({"type": "integer", "minimum": 0});
    let time = json!({"type": "integer", "description": "Milliseconds since the epoch"});
    let took = json!({"type": ["number", "null"], "description": "Milliseconds"});
    let status = json!({"enum": ["disconnected", "connecting", "connected", "error"]});
    json!({
        "Object": {"type": "object"},
        "Message": {"type": ["object", "array"], "description": "JSON-RPC, as MCP defines it"},
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": text, "message": text, "details": {}},
            }},
        },
        "Health": object(&[("status", &text), ("version", &text),
            ("console", &json!({"enum": ["embedded", "missing"]}))], &[]),
        "Ready": object(&[("status", &text)], &[]),
        "Definition": {"type": "object", "description": "Fields as in .mcp.json"},
        "NewServer": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": text, "autoStart": {"type": "boolean", "default": true}},
        },
        "NewTool": takes(&[("name", &tool), ("server", &named_so), ("tool", &named_so)]),
        "NewEntry": takes(&[("name", &named_so)]),
        "NewBoundEntry": takes(&[("name", &named_so), ("bindings", &list("Binding"))]),
        "Binding": takes(&[("tool_id", &json!({"type": "integer", "minimum": 1}))]),
        "Switch": takes(&[("status", &json!({"type": "boolean"}))]),
        "Candidate": {
            "type": "object",
            "description": "The text of a file, a whole .mcp.json, or one server as in a registration",
        },
        "Server": object(&[
            ("id", &json!({"type": "string", "format": "uuid"})),
            ("name", &text),
            ("transport", &json!({"enum": ["stdio", "http", "sse", null]})),
            ("status", &status),
            ("state", &json!({"enum": ["stopped", "running", "error"]})),
            ("since", &time),
            ("error", &maybe_text),
            ("enabled", &json!({"type": "boolean"})),
            ("toolCount", &count),
            ("config", &json!({"type": ["object", "null"]})),
            ("source", &text),
            ("era", &json!({"enum": ["legacy", "modern", null]})),
            ("protocolVersion", &maybe_text),
            ("serverInfo", &json!({"type": ["object", "null"]})),
            ("instructions", &maybe_text),
            ("pid", &json!({"type": ["integer", "null"]})),
            ("containment", &maybe_text),
            ("restarts", &count),
        ], &[
            ("shadows", &json!({"type": "array", "items": text})),
            ("problems", &json!({"type": "array", "items": {"type": "object"}})),
        ]),
        "LogLine": object(&[("seq", &count), ("at", &time), ("stream", &text), ("text", &text)], &[]),
        "Process": object(&[("pid", &count), ("ppid", &count), ("command", &text),
            ("rssBytes", &count), ("startedAt", &time)], &[]),
        "Processes": object(&[("processes", &list("Process"))], &[]),
        "Moment": object(&[("at", &time), ("state", &status), ("reason", &maybe_text)], &[]),
        "Call": object(&[
            ("id", &count), ("server", &text), ("tool", &text),
            ("entry", &json!({"type": ["integer", "null"]})),
            ("principal", &text), ("at", &time),
        ], &[
            ("durationMs", &json!({"type": "number"})),
            ("outcome", &json!({"enum": ["ok", "tool_error", "error", "cancelled"]})),
            ("error", &text),
        ]),
        "Second": object(&[("at", &time), ("calls", &count), ("errors", &count),
            ("p50", &took), ("p95", &took), ("p99", &took)], &[]),
        "Activity": object(&[("inFlight", &list("Call")), ("recent", &list("Call")),
            ("perSecond", &list("Second")), ("dropped", &count)], &[]),
    })
}

pub(super) fn list(of: &str) -> Value {
    json!({"type": "array", "items": named(of)})
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// What a body must have; it may have more.
fn takes(fields: &[(&str, &Value)]) -> Value {
    let mut schema = object(fields, &[]);
    schema["additionalProperties"] = true.into();
    schema
}

fn object(always: &[(&str, &Value)], sometimes: &[(&str, &Value)]) -> Value {
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
