//! The parameters of operations: in the path, in the query, in headers.

use serde_json::{Value, json};

use gateway::format::Format;

const ID: &str = "^[0-9]{1,18}$";

pub(super) fn in_path(name: &str) -> Value {
    let schema = match name {
        "id" | "tool_id" => json!({"type": "string", "pattern": ID}),
        _ => json!({"type": "string", "minLength": 1}),
    };
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

fn query(name: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "schema": schema})
}

fn header(name: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "schema": schema})
}

fn number(name: &str, most: u64) -> Value {
    query(
        name,
        json!({"type": "integer", "minimum": 0, "maximum": most}),
    )
}

pub(crate) fn from() -> Value {
    number("from", u64::MAX)
}

pub(crate) fn limit() -> Value {
    number("limit", u64::MAX)
}

pub(crate) fn skip() -> Value {
    number("skip", i64::MAX as u64)
}

pub(crate) fn page_limit() -> Value {
    number("limit", 1000)
}

pub(crate) fn user_id() -> Value {
    let description = "Whose records; for the admin, or one's own id";
    query(
        "user_id",
        json!({"type": "string", "description": description}),
    )
}

pub(crate) fn server() -> Value {
    query("server", json!({"type": "string"}))
}

pub(crate) fn search() -> Value {
    query("search", json!({"type": "string"}))
}

pub(crate) fn include() -> Value {
    query("include", json!({"enum": ["tools"]}))
}

pub(crate) fn include_disabled() -> Value {
    query("include_disabled", json!({"type": "boolean"}))
}

pub(crate) fn format() -> Value {
    let formats = Format::ALL.map(Format::name);
    query("format", json!({"enum": formats, "default": "mcp"}))
}

pub(crate) fn filter() -> Value {
    query("filter", json!({"type": "string", "minLength": 1}))
}

pub(crate) fn entry() -> Value {
    let description = "The entry's number, or its name where no other has it";
    let schema = json!({"type": "string", "pattern": r"\S", "description": description});
    query("entry", schema)
}

pub(crate) fn uri() -> Value {
    let mut uri = query("uri", json!({"type": "string"}));
    uri["required"] = json!(true);
    uri
}

pub(crate) fn idempotency_key() -> Value {
    let schema = json!({"type": "string", "pattern": "^[!-~]{1,255}$"});
    header("Idempotency-Key", schema)
}

pub(crate) fn if_match() -> Value {
    header("If-Match", json!({"type": "string", "pattern": "^[!-~]+$"}))
}

pub(crate) fn if_none_match() -> Value {
    header("If-None-Match", json!({"type": "string"}))
}
