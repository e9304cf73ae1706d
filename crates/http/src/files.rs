//! The configuration files of the servers: their content, and the effect of a
//! change.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value};

use super::error::ApiError;
use super::json::JsonBody;
use super::servers::invalid;
use config::ServerSpec;
use config::body::{parse_body, parse_replacement};
use fleet::registry::{ConfigPlan, LoadedSources, Registry, SourceReport};

pub(super) async fn sources(State(registry): State<Arc<Registry>>) -> Json<Vec<SourceReport>> {
    Json(registry.reports().await)
}

pub(super) async fn schema() -> Json<Value> {
    Json(config::schema::schema())
}

/// Takes a candidate for the whole `.mcp.json` (an object with `mcpServers`,
/// or `{"file": "its text"}`), or one server as in a registration.
pub(super) async fn plan(
    State(registry): State<Arc<Registry>>,
    JsonBody(body): JsonBody,
) -> Result<Json<ConfigPlan>, ApiError> {
    let text = std::str::from_utf8(&body)
        .map_err(|_| ApiError::bad_request("the body is not UTF-8 text"))?;
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        ApiError::bad_request(format!("the body is not a JSON object: {error}"))
    })?;
    let loaded = registry.loaded().await;
    let candidate = match fields.get("file") {
        Some(Value::String(file)) => whole(&registry, &loaded, file)?,
        Some(_) => {
            return Err(ApiError::invalid_field(
                "file",
                "must be the text of the file",
            ));
        }
        None if fields.contains_key("mcpServers") => whole(&registry, &loaded, text)?,
        None => {
            let (name, spec) = server(&registry, &fields, &body)?;
            let with = registry.files().with_server(&loaded, &name, &spec);
            with.map_err(ApiError::from)?
        }
    };
    Ok(Json(ConfigPlan::between(&loaded, &candidate)))
}

fn whole(
    registry: &Registry,
    loaded: &LoadedSources,
    text: &str,
) -> Result<LoadedSources, ApiError> {
    let source = registry.files().mcp();
    let candidate = registry.files().with_file(loaded, &source, text.as_bytes());
    match candidate.problem(&source) {
        Some(problem) => Err(ApiError::invalid_field("file", problem.to_string())),
        None => Ok(candidate),
    }
}

/// An existing server is read as a replacement, in which masked values stand
/// for the stored ones.
fn server(
    registry: &Registry,
    fields: &Map<String, Value>,
    body: &[u8],
) -> Result<(String, ServerSpec), ApiError> {
    let name = fields.get("name").and_then(Value::as_str);
    let wanted = name.and_then(|name| registry.desired().get(name).cloned());
    let known = wanted.as_ref().and_then(|wanted| wanted.spec.as_ref().ok());
    let (name, spec) = match known.zip(name) {
        Some((current, name)) => {
            let change = parse_replacement(current, body).map_err(invalid)?;
            (name.to_owned(), change.spec)
        }
        None => {
            let body = parse_body(body).map_err(invalid)?;
            (body.name.to_string(), body.spec)
        }
    };
    Ok((name, spec))
}
