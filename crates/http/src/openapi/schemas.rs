//! Schemas of responses. `tests/it/g_openapi.rs` compares them with real
//! responses.

use serde_json::{Value, json};

pub(super) use gateway::record::shape::object;
use gateway::record::shape::{self, count, flag, maybe_text, text, time};

/// The format of times in responses.
const MOMENT: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$";

/// Schemas of errors, and of responses without a credential.
pub(super) fn plain() -> Value {
    let code = json!({"type": "string", "pattern": "^[A-Z]+(_[A-Z]+)*$"});
    let error = |details: Value| {
        let inner = object(
            &[("code", &code), ("message", &text())],
            &[("details", &details)],
        );
        object(&[("error", &inner)], &[])
    };
    let fields = list("FieldProblem");
    json!({
        "Error": error(json!({})),
        "Invalid": error(fields),
        "FieldProblem": object(&[("field", &text()), ("message", &text())], &[]),
        "Health": object(&[("status", &json!({"enum": ["ok", "degraded"]})), ("version", &text()),
            ("console", &json!({"enum": ["embedded", "missing"]}))],
            &[("reasons", &json!({"type": "array", "items": {"type": "string"},
                "description": "Why the status is `degraded`"}))]),
        "ConsoleSession": object(&[("id", &text()), ("created_at", &moment()),
            ("last_used_at", &moment()), ("expires_at", &moment()), ("agent", &text()),
            ("current", &flag())], &[]),
        "NewToken": object(&[("token", &text())], &[]),
        "Ready": object(&[("status", &json!({"const": "ready"}))], &[]),
        "Document": {"type": "object", "required": ["openapi", "info", "paths", "components"]},
        "JsonSchema": {"type": "object", "required": ["$schema", "properties"]},
    })
}

fn moment() -> Value {
    json!({"type": "string", "format": "date-time", "pattern": MOMENT})
}

/// Schemas of `/api/mcp`.
pub(super) fn servers() -> Value {
    let took = json!({"type": ["number", "null"], "description": "Milliseconds"});
    let status = json!({"enum": ["disconnected", "connecting", "connected", "error"]});
    let names = json!({"type": "array", "items": {"type": "string"}});
    let problems = list("Problem");
    let (text, maybe_text, count, time) = (text(), maybe_text(), count(), time());
    let problem = [("server", &text), ("line", &count), ("column", &count)];
    let mut listed = shape::server(&named("ServerConfig"), &named("Problem"));
    listed["properties"]["tools"] = list("ServerTool");
    json!({
        "Server": shape::server(&named("ServerConfig"), &named("Problem")),
        "ListedServer": listed,
        "ResourceContents": {"type": "object", "required": ["contents"],
            "properties": {"contents": {"type": "array", "items": {"type": "object"}}}},
        "PromptMessages": {"type": "object", "required": ["messages"],
            "properties": {"messages": {"type": "array", "items": {"type": "object"}}}},
        "ServerConfig": shape::config(),
        "Problem": shape::problem(),
        "ServerTool": upstream(&["name", "key"]),
        "ServerResource": {"type": "object", "anyOf": [{"required": ["uri"]}, {"required": ["uriTemplate"]}]},
        "ServerPrompt": upstream(&["name"]),
        "LogLine": shape::log_line(),
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
        "Source": object(&[("path", &text), ("kind", &text), ("error", &maybe_text),
            ("problems", &problems), ("servers", &list("DefinitionReport"))], &[]),
        "DefinitionReport": object(&[("name", &text), ("shadowedBy", &maybe_text),
            ("problems", &problems)], &[]),
        "Plan": object(&[("added", &names), ("removed", &names), ("restarted", &names),
            ("kept", &names), ("problems", &list("Fault"))], &[]),
        "Fault": object(&[("file", &text), ("field", &text), ("message", &text)], &problem),
    })
}

/// An item of a server's list; that server decides its other fields.
fn upstream(fields: &[&str]) -> Value {
    let named: serde_json::Map<String, Value> = fields
        .iter()
        .map(|name| ((*name).to_owned(), text()))
        .collect();
    json!({"type": "object", "required": fields, "properties": named})
}

/// Schemas of `/api/v1`.
pub(super) fn records() -> Value {
    let moment = moment();
    let maybe_moment =
        json!({"type": ["string", "null"], "format": "date-time", "pattern": MOMENT});
    let names = json!({"type": "array", "items": {"type": "string"}});
    let (text, maybe_text, flag) = (text(), maybe_text(), flag());
    let id = json!({"type": "integer", "minimum": 1});
    let items = |of: &str| object(&[("items", &list(of)), ("total", &count())], &[]);
    let (status, key) = (json!({"enum": [0, 1]}), named("Key"));
    let exposes = object(&[("resources", &names), ("prompts", &names)], &[]);
    let record = [
        ("id", &id),
        ("mcp_instance_id", &text),
        ("name", &text),
        ("user_id", &text),
        ("key", &key),
        ("created_at", &moment),
        ("updated_at", &moment),
    ];
    let patterns = object(&[("allow", &names), ("deny", &names)], &[]);
    let filter = json!({"anyOf": [patterns, {"type": "null"}]});
    let more = [
        ("status", &flag),
        ("exposes", &exposes),
        ("filter", &filter),
    ];
    let entry = [&record[..], &more].concat();
    let old = [&record[..], &[("status", &status)]].concat();
    let mut old = object(&old, &[("api_key", &text)]);
    old["additionalProperties"] = true.into();
    let missing = json!({"enum": ["server", "tool", "closed", null],
        "description": "Why the tool cannot be had, where that is known"});
    json!({
        "Catalog": object(&[("items", &list("BindableTool")), ("total", &count()),
            ("servers", &list("BindableServer"))], &[]),
        "BindableServer": object(&[("name", &text), ("connected", &flag), ("tools", &count())], &[]),
        "BindableTool": object(&[("server", &text), ("tool", &text), ("key", &text),
            ("title", &maybe_text), ("description", &maybe_text), ("inputSchema", &json!({}))], &[]),
        "Tool": object(&[("id", &id), ("name", &text), ("description", &maybe_text),
            ("server", &text), ("tool", &text), ("missing", &missing), ("user_id", &text),
            ("created_at", &moment), ("updated_at", &moment)], &[]),
        "Tools": items("Tool"),
        "Key": object(&[("hint", &text), ("created_at", &moment),
            ("expires_at", &maybe_moment), ("last_used_at", &maybe_moment)], &[]),
        "Entry": object(&entry, &[]),
        "OpenedEntry": object(&entry, &[("api_key", &text), ("url", &text)]),
        "Entries": items("Entry"),
        "Binding": object(&[("tool_id", &id), ("status", &flag), ("name", &text),
            ("description", &maybe_text), ("server", &text), ("tool", &text),
            ("missing", &missing), ("created_at", &moment)], &[]),
        "Bindings": items("Binding"),
        "EntryTool": object(&[("tool_id", &json!({"type": ["integer", "null"],
            "description": "null where the entry's filter gives it"})),
            ("status", &flag), ("name", &text), ("description", &maybe_text), ("server", &text),
            ("tool", &text), ("missing", &missing), ("created_at", &maybe_moment)], &[]),
        "EntryTools": items("EntryTool"),
        "Bound": {"anyOf": [named("Binding"), named("Bindings")]},
        "OldRecord": old,
        "OldRecords": items("OldRecord"),
    })
}

pub(super) fn list(of: &str) -> Value {
    json!({"type": "array", "items": named(of)})
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
