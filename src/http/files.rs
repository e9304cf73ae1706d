//! The files behind the servers: what they say, and what a change of them
//! would do.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value};

use super::error::{ApiError, FieldProblem};
use crate::config;
use crate::registry::{Plan, Registry, SourceReport};

pub fn router(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/api/mcp/sources", get(sources))
        .route("/api/mcp/plan", post(plan))
        .route("/api/mcp/schema", get(schema))
        .with_state(registry)
}

async fn sources(State(registry): State<Arc<Registry>>) -> Json<Vec<SourceReport>> {
    Json(registry.loaded().await.reports())
}

async fn schema() -> Json<Value> {
    Json(config::schema::schema())
}

/// Takes a candidate for the whole `.mcp.json` (an object with `mcpServers`,
/// or `{"file": "its text"}`), or one server as in a registration.
async fn plan(State(registry): State<Arc<Registry>>, body: Bytes) -> Result<Json<Plan>, ApiError> {
    let text = std::str::from_utf8(&body)
        .map_err(|_| ApiError::bad_request("the body is not UTF-8 text"))?;
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        ApiError::bad_request(format!("the body is not a JSON object: {error}"))
    })?;
    let loaded = registry.loaded().await;
    let candidate = match fields.get("file") {
        Some(Value::String(file)) => registry.files().with_mcp(&loaded, file),
        Some(_) => {
            let problem = FieldProblem::new("file", "must be the text of the file");
            return Err(ApiError::validation(vec![problem]));
        }
        None if fields.contains_key("mcpServers") => registry.files().with_mcp(&loaded, text),
        None => {
            let body = config::body::parse_body(&body).map_err(super::servers::invalid)?;
            let with = registry
                .files()
                .with_server(&loaded, body.name.as_str(), &body.spec);
            return with
                .map(|with| Json(Plan::between(&loaded, &with)))
                .map_err(|error| ApiError::conflict(error.to_string()));
        }
    };
    match candidate {
        Ok(candidate) => Ok(Json(Plan::between(&loaded, &candidate))),
        Err(problem) => {
            let problem = FieldProblem::new("file", problem.to_string());
            Err(ApiError::validation(vec![problem]))
        }
    }
}
