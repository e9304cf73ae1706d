//! `/api/mcp/tools`: tools and calls for programs that speak no MCP, in the
//! shapes that their models' APIs take (SPEC D10).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::error::ApiError;
use super::extract::{Path, Query};
use super::json::JsonBody;
use super::mcp::{McpApi, McpEndpoint};
use super::principal::{Principal, not_here};
use super::tag::is_known;
use gateway::Caller;
use gateway::format::{self, Format};
use store::{EntryId, Grant, Store};

mod body;

use body::CallBody;

/// The most entries of the same name that an error lists.
const LISTED: usize = 5;

#[derive(Clone)]
pub struct ToolsApi {
    pub mcp: McpApi,
    pub store: Arc<Store>,
}

#[derive(Deserialize)]
pub(super) struct ToolsQuery {
    pub format: Option<String>,
    pub filter: Option<String>,
    pub entry: Option<String>,
}

impl ToolsQuery {
    fn format(&self) -> Result<Format, ApiError> {
        let Some(name) = &self.format else {
            return Ok(Format::default());
        };
        Format::find(name).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            ApiError::invalid_field("format", format!("must be one of {names}"))
        })
    }
}

impl ToolsApi {
    /// The caller whose tools are requested.
    pub(super) fn caller(
        &self,
        principal: &Principal,
        asked: ToolsQuery,
    ) -> Result<Caller, ApiError> {
        let ToolsQuery { filter, entry, .. } = asked;
        match (principal, entry) {
            (Principal::User(_), _) => Err(not_here()),
            (Principal::Entry(_), Some(_)) => Err(ApiError::forbidden(
                "entry: only the admin may name one; a key shows its own",
            )
            .with_field("entry")),
            (Principal::Entry(grant), None) => self.mcp.narrowed(grant.clone(), filter),
            (Principal::Admin, Some(entry)) => self.mcp.narrowed(self.entry(&entry)?, filter),
            (Principal::Admin, None) => {
                let mcp = &self.mcp;
                mcp.caller(Some(principal), McpEndpoint::Everything, filter)
            }
        }
    }

    /// An entry by its number, or by its name if only one enabled entry has it.
    fn entry(&self, given: &str) -> Result<Arc<Grant>, ApiError> {
        if given.trim().is_empty() {
            return Err(ApiError::invalid_field(
                "entry",
                "must be the number or the name of an entry",
            ));
        }
        // A number is never a name: a deleted entry must not select another one.
        let named = if given.bytes().all(|byte| byte.is_ascii_digit()) {
            let id = given.parse().ok().map(EntryId);
            Vec::from_iter(id.and_then(|id| self.store.grant_of(id)))
        } else {
            self.store.grants_named(given)
        };
        match &*named {
            [grant] => Ok(grant.clone()),
            [] => Err(ApiError::not_found(format!(
                "there is no entry {given:?} that is switched on"
            ))),
            several => {
                let numbers = several.iter().take(LISTED);
                let numbers = numbers.map(|one| one.entry.0.to_string());
                let numbers = numbers.collect::<Vec<_>>().join(", ");
                let text =
                    format!("entry: several are called {given:?}; give a number, as {numbers}");
                Err(ApiError::conflict(text).with_field("entry"))
            }
        }
    }
}

pub(super) async fn list(
    State(tools): State<ToolsApi>,
    principal: Principal,
    Query(asked): Query<ToolsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let format = asked.format()?;
    let caller = tools.caller(&principal, asked)?;
    let list = tools.mcp.gateway.view(&caller).tools_as(format);
    let tag = HeaderValue::from_maybe_shared(list.tag).map_err(ApiError::internal)?;
    let mut response = if is_known(&headers, tag.to_str().unwrap_or_default()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json(Body::from(list.body))
    };
    let own = response.headers_mut();
    own.insert(header::ETAG, tag);
    // May be cached, but must be revalidated each time.
    let cache = HeaderValue::from_static("private, no-cache");
    own.insert(header::CACHE_CONTROL, cache);
    Ok(response)
}

pub(super) async fn call(
    State(tools): State<ToolsApi>,
    Path(name): Path,
    principal: Principal,
    Query(asked): Query<ToolsQuery>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let format = asked.format()?;
    let caller = tools.caller(&principal, asked)?;
    let ask = CallBody::read(&body)?;
    let gateway = &tools.mcp.gateway;
    let view = gateway.view(&caller);
    if let Some((field, said)) = &ask.named {
        let tool = |name: &str| view.tool_called(name).map(|(name, _)| name);
        let meant = tool(&name);
        if *said != name && meant.is_some() && tool(said) != meant {
            return Err(ApiError::invalid_field(
                field,
                "is another tool than the one in the address",
            ));
        }
    }
    let arguments = ask.arguments.as_deref().map_err(String::as_str);
    let outcome = gateway.call_tool(view.clone(), &caller, &name, format, arguments);
    let outcome = match (outcome.await, format) {
        (Some(outcome), _) => outcome,
        (None, Format::Mcp) => {
            return Err(ApiError::not_found(format!("there is no tool {name:?}")));
        }
        // Models invent tools, and call tools that have just been removed:
        // their loop must continue.
        (None, _) => view.unknown_tool(&name),
    };
    let answer = format::answer(format, &outcome, ask.id.as_deref());
    Ok(json(Body::from(answer)))
}

fn json(body: Body) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}
