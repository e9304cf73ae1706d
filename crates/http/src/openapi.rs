//! The API as an OpenAPI document (SPEC G5).

pub(super) mod parameters;
mod requests;
mod schemas;
mod tools;

use std::sync::LazyLock;

use axum::Json;
use serde_json::{Map, Value, json};

use super::api::{AccessRule, MCP, OPERATIONS, Operation};
use schemas::{list, named};

static DOCUMENT: LazyLock<Value> = LazyLock::new(made);

pub(super) async fn document() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

fn made() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths
            .entry(operation.path)
            .or_insert_with(|| json!({"parameters": in_path(operation.path)}));
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

/// The parameters in a path.
fn in_path(path: &str) -> Vec<Value> {
    let names = path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    names.map(parameters::in_path).collect()
}

impl Operation {
    fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|it| it()["name"] == name)
    }

    fn needs_credential(&self) -> bool {
        !matches!(self.access, AccessRule::Public | AccessRule::KeyInPath)
    }

    /// Whether its response is the response of a server.
    fn is_relayed(&self) -> bool {
        matches!(self.response, "ResourceContents" | "PromptMessages")
    }
}

/// The error statuses of an operation.
fn failures(operation: &Operation) -> Vec<&'static str> {
    let mut statuses = vec![
        "400", "403", "408", "413", "414", "415", "429", "431", "500", "503",
    ];
    let changes = operation.method != "get";
    let relayed = operation.is_relayed();
    let filtered = operation.has_parameter("filter");
    let in_path = operation.path.contains('{');
    // A repeated create may name a record that has been deleted since.
    let creates = operation.id.starts_with("create");
    let conditions: [(bool, &'static str); 6] = [
        (operation.needs_credential(), "401"),
        (in_path || creates || filtered || relayed, "404"),
        // The default filter may be invalid.
        (changes || filtered || relayed, "409"),
        (
            !operation.parameters.is_empty() || !operation.request.is_empty(),
            "422",
        ),
        (relayed, "502"),
        (changes, "507"),
    ];
    let met = conditions.iter().filter(|(met, _)| *met);
    statuses.extend(met.map(|(_, status)| *status));
    statuses.sort_unstable();
    statuses
}

fn described(operation: &Operation) -> Value {
    let success = match operation.response {
        "" | MCP => json!({"description": operation.summary}),
        shape => answer(operation.summary, &shaped(shape)),
    };
    let mut responses = json!({operation.status: success});
    if operation.response == MCP {
        responses["default"] = json!({"description": "What went wrong"});
    } else {
        for status in failures(operation) {
            let shape = if status == "422" { "Invalid" } else { "Error" };
            responses[status] = answer("What went wrong", &named(shape));
        }
    }
    if operation.has_parameter("If-None-Match") {
        responses["304"] = json!({"description": "The list is the one that If-None-Match names"});
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": responses,
    });
    if !operation.request.is_empty() {
        described["requestBody"] = json!({
            "required": operation.request != "NewKey",
            "content": {"application/json": {"schema": shaped(operation.request)}},
        });
    }
    if !operation.parameters.is_empty() {
        let parameters = operation.parameters.iter().map(|it| it());
        described["parameters"] = parameters.collect();
    }
    if !operation.needs_credential() {
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
