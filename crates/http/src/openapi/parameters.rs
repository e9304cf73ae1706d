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

macro_rules! parameters {
    ($($name:ident: $parameter:expr;)*) => {
        $(pub(crate) fn $name() -> Value {
            $parameter
        })*
    };
}

parameters! {
    from: number("from", u64::MAX);
    limit: number("limit", u64::MAX);
    skip: number("skip", i64::MAX as u64);
    page_limit: number("limit", 1000);
    user_id: query("user_id", json!({"type": "string",
        "description": "Whose records; for the admin, or one's own id"}));
    server: query("server", json!({"type": "string"}));
    search: query("search", json!({"type": "string"}));
    include: query("include", json!({"enum": ["tools"]}));
    include_disabled: query("include_disabled", json!({"type": "boolean"}));
    format: query("format", json!({"enum": Format::ALL.map(Format::name), "default": "mcp"}));
    filter: query("filter", json!({"type": "string", "minLength": 1}));
    entry: query("entry", json!({"type": "string", "pattern": r"\S",
        "description": "The entry's number, or its name where no other has it"}));
    uri: json!({"name": "uri", "in": "query", "schema": {"type": "string"}, "required": true});
    idempotency_key: header("Idempotency-Key", json!({"type": "string", "pattern": "^[!-~]{1,255}$"}));
    if_match: header("If-Match", json!({"type": "string", "pattern": "^[!-~]+$"}));
    if_none_match: header("If-None-Match", json!({"type": "string"}));
}
