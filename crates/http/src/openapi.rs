//! The API as an OpenAPI document (SPEC G5).

mod requests;
mod schemas;
mod table;
mod tools;

use std::sync::LazyLock;

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::records::BY_KEY;
use schemas::{list, named};
use table::{OPERATIONS, Operation};

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

pub fn router() -> Router {
    Router::new().route("/api/openapi.json", get(show))
}

async fn show() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths
            .entry(operation.path)
            .or_insert_with(|| json!({"parameters": parameters(operation.path)}));
        path[operation.method] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portway",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}, {"console": []}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "console": {"type": "apiKey", "in": "cookie", "name": "portway_session"},
            },
        },
    })
}

/// Those that stand in a path.
fn parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    names.map(requests::in_path).collect()
}

/// Where the key in the path, or nothing at all, is the credential.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | BY_KEY) || path.contains("mcp_v2/server/")
}

/// Whether MCP says what is answered, not we.
fn is_mcp(operation: &Operation) -> bool {
    let ends = ["/mcp", "/sse", "/messages", "/server/{api_key}"];
    let ours = operation.path.starts_with("/api/v1/mcp") && operation.path.len() < 13;
    !ours && ends.iter().any(|end| operation.path.ends_with(end))
}

/// Whether it lists what a filter or an entry lets through.
fn is_filtered(operation: &Operation) -> bool {
    let ids = [
        "formattedTools",
        "listResources",
        "listTemplates",
        "listPrompts",
    ];
    ids.contains(&operation.id)
}

/// The statuses of an operation that does not come to anything.
fn failures(operation: &Operation, asked: bool) -> Vec<&'static str> {
    let mut statuses = vec![
        "400", "403", "408", "413", "414", "415", "429", "431", "500", "503",
    ];
    let changes = operation.method != "get";
    // What a server answers, or does not.
    let relayed = matches!(operation.gives, "ResourceContents" | "PromptMessages");
    let conditions: [(bool, &'static str); 6] = [
        (!is_open(operation.path), "401"),
        (
            operation.path.contains('{')
                || operation.takes.contains("Bound")
                || is_filtered(operation)
                || relayed,
            "404",
        ),
        // The filter that applies by default may not be what it should be.
        (changes || is_filtered(operation) || relayed, "409"),
        (asked || !operation.takes.is_empty(), "422"),
        (relayed, "502"),
        (changes, "507"),
    ];
    let met = conditions.iter().filter(|(met, _)| *met);
    statuses.extend(met.map(|(_, status)| *status));
    if operation.id.starts_with("create") && !statuses.contains(&"404") {
        // What an Idempotency-Key made may be gone.
        statuses.push("404");
    }
    statuses.sort_unstable();
    statuses
}

fn described(operation: &Operation) -> Value {
    let good = match operation.gives {
        "" => json!({"description": operation.does}),
        shape => answer(operation.does, &shaped(shape)),
    };
    let asked = requests::beside(operation.id);
    let mut responses = json!({operation.status: good});
    if is_mcp(operation) {
        responses["default"] = json!({"description": "What went wrong"});
    } else {
        for status in failures(operation, !asked.is_empty()) {
            let shape = if status == "422" { "Invalid" } else { "Error" };
            responses[status] = answer("What went wrong", &named(shape));
        }
    }
    if operation.id == "formattedTools" {
        responses["304"] = json!({"description": "The list is the one that If-None-Match names"});
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.does,
        "responses": responses,
    });
    if !operation.takes.is_empty() {
        described["requestBody"] = json!({
            "required": operation.takes != "NewKey",
            "content": {"application/json": {"schema": shaped(operation.takes)}},
        });
    }
    if !asked.is_empty() {
        described["parameters"] = asked.into();
    }
    if is_open(operation.path) {
        described["security"] = json!([]);
    }
    described
}

fn answer(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn shaped(shape: &str) -> Value {
    match shape.strip_suffix("[]") {
        Some(of) => list(of),
        None => named(shape),
    }
}

fn schemas() -> Value {
    let rooms = [
        requests::schemas(),
        schemas::plain(),
        schemas::servers(),
        schemas::records(),
        tools::schemas(),
    ];
    let mut all = Map::new();
    for room in rooms {
        if let Value::Object(room) = room {
            all.extend(room);
        }
    }
    Value::Object(all)
}
