//! The API as an OpenAPI document (SPEC G5).

mod schemas;
mod table;

use std::sync::LazyLock;

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use schemas::{list, named, schemas};
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
    names
        .map(|name| {
            let schema = json!({"type": "string"});
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        })
        .collect()
}

/// Those that stand behind it.
fn query(id: &str) -> &'static [&'static str] {
    match id {
        "serverLogs" => &["from", "limit"],
        "activity" => &["limit"],
        _ => &[],
    }
}

fn described(operation: &Operation) -> Value {
    let good = match operation.gives {
        "" => json!({"description": operation.does}),
        shape => json!({
            "description": operation.does,
            "content": {"application/json": {"schema": shaped(shape)}},
        }),
    };
    let failed = json!({
        "description": "What went wrong",
        "content": {"application/json": {"schema": named("Error")}},
    });
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.does,
        "responses": {operation.status: good, "default": failed},
    });
    if !operation.takes.is_empty() {
        described["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": shaped(operation.takes)}},
        });
    }
    let asked = query(operation.id).iter().map(|name| {
        let schema = json!({"type": "integer", "minimum": 0});
        json!({"name": name, "in": "query", "schema": schema})
    });
    let asked: Vec<Value> = asked.collect();
    if !asked.is_empty() {
        described["parameters"] = asked.into();
    }
    if matches!(operation.path, "/healthz" | "/readyz") {
        described["security"] = json!([]);
    }
    described
}

fn shaped(shape: &str) -> Value {
    match shape.strip_suffix("[]") {
        Some(of) => list(of),
        None => named(shape),
    }
}
