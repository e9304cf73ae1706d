//! `/api/mcp/resources` and `/api/mcp/prompts`: resources and prompts for
//! programs that speak no MCP, of all servers or of one (SPEC I1).

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::error::{ApiError, Code};
use super::extract::{Path, Query};
use super::json::Json;
use super::mcp::Place;
use super::principal::Principal;
use super::tools::{Asked, Tools};
use fleet::catalog::Kind;
use gateway::{AskError, Caller};

/// The paths of this room that the key of an entry opens.
const RESOURCES: &str = "/api/mcp/resources";
const TEMPLATES: &str = "/api/mcp/resources/templates";
const READ: &str = "/api/mcp/resources/read";
const PROMPTS: &str = "/api/mcp/prompts";
const PROMPT: &str = "/api/mcp/prompts/get";

pub fn router(tools: Tools) -> Router {
    let server_read = get(read_at_server).post(read_posted_at_server);
    Router::new()
        .route(RESOURCES, get(resources))
        .route(TEMPLATES, get(templates))
        .route(READ, get(read).post(read_posted))
        .route(PROMPTS, get(prompts))
        .route(PROMPT, post(prompt))
        .route(
            "/api/mcp/servers/{server}/resources/templates",
            get(templates_at_server),
        )
        .route("/api/mcp/servers/{server}/resources/read", server_read)
        .route(
            "/api/mcp/servers/{server}/prompts/get",
            post(prompt_at_server),
        )
        .with_state(tools)
}

/// Whether a path, as the router spells it, is one that the key of an entry
/// opens.
pub(super) fn is_catalog(matched: &str) -> bool {
    matches!(matched, RESOURCES | TEMPLATES | READ | PROMPTS | PROMPT)
}

/// Whose resources or prompts are asked for.
#[derive(Deserialize)]
struct Whose {
    filter: Option<String>,
    entry: Option<String>,
}

impl Whose {
    fn caller(self, tools: &Tools, principal: &Principal) -> Result<Caller, ApiError> {
        let asked = Asked {
            format: None,
            filter: self.filter,
            entry: self.entry,
        };
        tools.caller(principal, asked)
    }
}

fn at_server(tools: &Tools, principal: &Principal, server: String) -> Result<Caller, ApiError> {
    tools
        .front
        .caller(Some(principal), Place::Server(server), None)
}

async fn resources(
    State(tools): State<Tools>,
    principal: Principal,
    Query(whose): Query<Whose>,
) -> Result<Response, ApiError> {
    let caller = whose.caller(&tools, &principal)?;
    Ok(listed(&tools, &caller, Kind::Resources))
}

async fn templates(
    State(tools): State<Tools>,
    principal: Principal,
    Query(whose): Query<Whose>,
) -> Result<Response, ApiError> {
    let caller = whose.caller(&tools, &principal)?;
    Ok(listed(&tools, &caller, Kind::Templates))
}

async fn prompts(
    State(tools): State<Tools>,
    principal: Principal,
    Query(whose): Query<Whose>,
) -> Result<Response, ApiError> {
    let caller = whose.caller(&tools, &principal)?;
    Ok(listed(&tools, &caller, Kind::Prompts))
}

async fn templates_at_server(
    State(tools): State<Tools>,
    principal: Principal,
    Path(server): Path,
) -> Result<Response, ApiError> {
    let caller = at_server(&tools, &principal, server)?;
    Ok(listed(&tools, &caller, Kind::Templates))
}

fn listed(tools: &Tools, caller: &Caller, kind: Kind) -> Response {
    let view = tools.front.gateway.view(caller);
    axum::Json(view.listed(kind)).into_response()
}

#[derive(Deserialize)]
struct InQuery {
    uri: Option<String>,
}

impl InQuery {
    fn uri(self) -> Result<String, ApiError> {
        self.uri
            .ok_or_else(|| ApiError::invalid_field("uri", "is missing: the URI of the resource"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    uri: String,
}

async fn read(
    State(tools): State<Tools>,
    principal: Principal,
    Query(whose): Query<Whose>,
    Query(asked): Query<InQuery>,
) -> Result<Response, ApiError> {
    let caller = whose.caller(&tools, &principal)?;
    read_one(&tools, &caller, &asked.uri()?).await
}

async fn read_posted(
    State(tools): State<Tools>,
    principal: Principal,
    Query(whose): Query<Whose>,
    Json(asked): Json<Resource>,
) -> Result<Response, ApiError> {
    let caller = whose.caller(&tools, &principal)?;
    read_one(&tools, &caller, &asked.uri).await
}

async fn read_at_server(
    State(tools): State<Tools>,
    principal: Principal,
    Path(server): Path,
    Query(asked): Query<InQuery>,
) -> Result<Response, ApiError> {
    let caller = at_server(&tools, &principal, server)?;
    read_one(&tools, &caller, &asked.uri()?).await
}

async fn read_posted_at_server(
    State(tools): State<Tools>,
    principal: Principal,
    Path(server): Path,
    Json(asked): Json<Resource>,
) -> Result<Response, ApiError> {
    let caller = at_server(&tools, &principal, server)?;
    read_one(&tools, &caller, &asked.uri).await
}

async fn read_one(tools: &Tools, caller: &Caller, uri: &str) -> Result<Response, ApiError> {
    answer(tools, caller, "resources/read", json!({"uri": uri})).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    name: String,
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

async fn prompt(
    State(tools): State<Tools>,
    principal: Principal,
    Query(whose): Query<Whose>,
    Json(asked): Json<Prompt>,
) -> Result<Response, ApiError> {
    let caller = whose.caller(&tools, &principal)?;
    get_one(&tools, &caller, &asked).await
}

async fn prompt_at_server(
    State(tools): State<Tools>,
    principal: Principal,
    Path(server): Path,
    Json(asked): Json<Prompt>,
) -> Result<Response, ApiError> {
    let caller = at_server(&tools, &principal, server)?;
    get_one(&tools, &caller, &asked).await
}

async fn get_one(tools: &Tools, caller: &Caller, prompt: &Prompt) -> Result<Response, ApiError> {
    let params = json!({"name": prompt.name, "arguments": prompt.arguments});
    answer(tools, caller, "prompts/get", params).await
}

async fn answer(
    tools: &Tools,
    caller: &Caller,
    method: &str,
    mut params: Value,
) -> Result<Response, ApiError> {
    // Progress restarts the time limit.
    params["_meta"] = json!({"progressToken": 1});
    let params = to_raw_value(&params).map_err(ApiError::internal)?;
    let result = tools.front.gateway.ask(caller, method, &params).await?;
    let body = Box::<str>::from(result).into_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

impl From<AskError> for ApiError {
    fn from(why: AskError) -> ApiError {
        let (code, message) = match why {
            AskError::Missing(text) => (Code::NotFound, text),
            AskError::Invalid(text) => (Code::ValidationError, text),
            AskError::Asks(text) => (Code::Conflict, text),
            AskError::Away(text) => (Code::Unavailable, text),
            AskError::Failed(text) => (Code::BadGateway, text),
        };
        ApiError::new(code, message)
    }
}
