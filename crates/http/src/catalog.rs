//! `/api/mcp/resources` and `/api/mcp/prompts`: resources and prompts for
//! programs that speak no MCP, of all servers or of one (SPEC I1).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header;
use http::request::Parts;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::error::{ApiError, Code};
use super::extract::{Path, Query};
use super::json::Json;
use super::mcp::{McpEndpoint, ServerInPath};
use super::principal::Principal;
use super::tools::ToolsApi;
use fleet::catalog::ListKind;
use gateway::{AskError, Caller, Gateway};

/// A handler's argument: the client, restricted to the server in the path or to
/// the filter and entry in the query.
pub(super) struct CatalogCaller {
    gateway: Arc<Gateway>,
    caller: Caller,
}

impl FromRequestParts<ToolsApi> for CatalogCaller {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        tools: &ToolsApi,
    ) -> Result<CatalogCaller, ApiError> {
        let principal = Principal::from_request_parts(parts, tools).await?;
        let Path(path) = Path::<ServerInPath>::from_request_parts(parts, tools).await?;
        let caller = match path.server {
            Some(server) => {
                let endpoint = McpEndpoint::Server(server);
                tools.mcp.caller(Some(&principal), endpoint, None)
            }
            None => {
                let Query(query) = Query::from_request_parts(parts, tools).await?;
                tools.caller(&principal, query)
            }
        };
        Ok(CatalogCaller {
            gateway: tools.mcp.gateway.clone(),
            caller: caller?,
        })
    }
}

pub(super) async fn resources(asking: CatalogCaller) -> Response {
    asking.listed(ListKind::Resources)
}

pub(super) async fn templates(asking: CatalogCaller) -> Response {
    asking.listed(ListKind::Templates)
}

pub(super) async fn prompts(asking: CatalogCaller) -> Response {
    asking.listed(ListKind::Prompts)
}

#[derive(Deserialize)]
pub(super) struct ReadQuery {
    uri: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadBody {
    uri: String,
}

pub(super) async fn read(
    asking: CatalogCaller,
    Query(query): Query<ReadQuery>,
) -> Result<Response, ApiError> {
    let missing = || ApiError::invalid_field("uri", "is missing: the URI of the resource");
    let uri = query.uri.ok_or_else(missing)?;
    asking.answer("resources/read", json!({"uri": uri})).await
}

pub(super) async fn read_posted(
    asking: CatalogCaller,
    Json(body): Json<ReadBody>,
) -> Result<Response, ApiError> {
    asking
        .answer("resources/read", json!({"uri": body.uri}))
        .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptBody {
    name: String,
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

pub(super) async fn prompt(
    asking: CatalogCaller,
    Json(body): Json<PromptBody>,
) -> Result<Response, ApiError> {
    let params = json!({"name": body.name, "arguments": body.arguments});
    asking.answer("prompts/get", params).await
}

impl CatalogCaller {
    fn listed(&self, kind: ListKind) -> Response {
        let view = self.gateway.view(&self.caller);
        axum::Json(view.listed(kind)).into_response()
    }

    async fn answer(&self, method: &str, mut params: Value) -> Result<Response, ApiError> {
        // Progress restarts the time limit.
        params["_meta"] = json!({"progressToken": 1});
        let params = to_raw_value(&params).map_err(ApiError::internal)?;
        let result = self.gateway.ask(&self.caller, method, &params).await?;
        let body = Box::<str>::from(result).into_string();
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }
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
