//! The servers: their definitions, their state, and edits of both (SPEC G1,
//! G2). The gateway does the work; this file translates it to HTTP.

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::error::{ApiError, Code, FieldProblem};
use super::extract::{Path, Query};
use super::json::JsonBody;
use super::tag::{IfMatch, Tags};
use config::body::{ServerChange, merge_patch, parse_replacement};
use config::{Problem, ServerSpec};
use fleet::catalog::{Catalog, CatalogItem};
use fleet::log::LogLine;
use fleet::registry::{DesiredServer, EditBasis, RegistryError, SourceError, UpdateError};
use gateway::record::ServerDetails;
use gateway::servers::{ManagedServer, ServerManager};
use store::{StoreError, StoreErrorKind, UniqueField};
use wire::object;

#[derive(Clone)]
pub struct ServersApi {
    pub managing: ServerManager,
    pub tags: Tags,
}

/// A handler's argument: the state, and the server in the path.
type OneServer = (State<ServersApi>, Path);
type Answer<T> = Result<Json<T>, ApiError>;
type RawList = Vec<Arc<RawValue>>;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    include: Option<String>,
}

/// A record and, if the request includes them, its tools.
#[derive(Serialize)]
pub(super) struct ServerListItem {
    #[serde(flatten)]
    record: ServerDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<RawList>,
}

pub(super) async fn list(
    State(servers): State<ServersApi>,
    Query(query): Query<ListQuery>,
) -> Answer<Vec<ServerListItem>> {
    let with_tools = match query.include.as_deref() {
        None => false,
        Some("tools") => true,
        Some(_) => return Err(ApiError::invalid_field("include", "must be \"tools\"")),
    };
    let listed = |record: ServerDetails| {
        let server = servers.managing.find(record.name()).ok();
        let tools = server.filter(|_| with_tools);
        ServerListItem {
            tools: tools.map(|wanted| shown_tools(&servers, &wanted)),
            record,
        }
    };
    let records = servers.managing.list().into_iter();
    Ok(Json(records.map(listed).collect()))
}

pub(super) async fn create(
    State(servers): State<ServersApi>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let made = servers.managing.create(&body).await?;
    let place = format!("/api/mcp/servers/{}", made.wanted.id);
    let headers = [(header::LOCATION, place)];
    Ok((StatusCode::CREATED, headers, servers.tagged(made)).into_response())
}

pub(super) async fn show((State(servers), Path(server)): OneServer) -> Result<Response, ApiError> {
    Ok(servers.tagged(servers.managing.show(&server)?))
}

pub(super) async fn replace(
    server: OneServer,
    if_match: IfMatch,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let read = move |current: &_| parse_replacement(current, &body);
    update(server, if_match, EditBasis::AsTold, read).await
}

pub(super) async fn change(
    server: OneServer,
    if_match: IfMatch,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let read = move |current: &_| merge_patch(current, &body);
    update(server, if_match, EditBasis::Newest, read).await
}

/// `If-Match` is compared when the edit is written, not when the request
/// arrives.
async fn update(
    (State(servers), Path(server)): OneServer,
    if_match: IfMatch,
    basis: EditBasis,
    read: impl Fn(&ServerSpec) -> Result<ServerChange, Vec<Problem>> + Send + Sync + 'static,
) -> Result<Response, ApiError> {
    let basis = if if_match.given() {
        EditBasis::Newest
    } else {
        basis
    };
    let stale = Arc::new(OnceLock::new());
    let (found, tags) = (stale.clone(), servers.tags.clone());
    let checked = move |current: &ServerSpec| {
        if if_match.fits(&tags.of(current)) {
            return read(current);
        }
        let now = json!({
            "config": config::view::masked_config(current),
            "etag": tags.of(current),
        });
        let _ = found.set(now);
        Err(Vec::new())
    };
    let updated = servers.managing.update(&server, basis, checked).await;
    if let Some(now) = stale.get() {
        let text = "the definition was changed meanwhile; `details` has it as it is now";
        return Err(ApiError::conflict(text).with_details(now.clone()));
    }
    Ok(servers.tagged(updated?))
}

pub(super) async fn remove(
    (State(servers), Path(server)): OneServer,
) -> Result<StatusCode, ApiError> {
    servers.managing.remove(&server).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn start((State(servers), Path(server)): OneServer) -> Answer<ServerDetails> {
    Ok(Json(servers.managing.start(&server).await?))
}

pub(super) async fn stop((State(servers), Path(server)): OneServer) -> Answer<ServerDetails> {
    Ok(Json(servers.managing.stop(&server).await?))
}

pub(super) async fn restart((State(servers), Path(server)): OneServer) -> Answer<ServerDetails> {
    Ok(Json(servers.managing.restart(&server).await?))
}

pub(super) async fn tools((State(servers), Path(server)): OneServer) -> Answer<RawList> {
    let wanted = servers.managing.find(&server)?;
    Ok(Json(shown_tools(&servers, &wanted)))
}

/// Its tools as the server lists them, each with its key.
fn shown_tools(servers: &ServersApi, wanted: &DesiredServer) -> RawList {
    let catalog = servers.managing.catalog(wanted);
    let with_key = |tool: &CatalogItem| -> Arc<RawValue> {
        let mut shown = tool.raw.clone();
        let key = json!(format!("{}:{}", wanted.name, tool.key));
        let flags = json!(["invisible_chars"]);
        for (name, value) in [("key", Some(key)), ("flags", tool.hides.then_some(flags))] {
            if let Some(Ok(value)) = value.map(|value| serde_json::value::to_raw_value(&value)) {
                shown = object::set_member(&shown, name, &value).into();
            }
        }
        shown
    };
    catalog.tools.iter().map(with_key).collect()
}

/// Resources, then templates, which have `uriTemplate` where resources have
/// `uri`.
pub(super) async fn resources((State(servers), Path(server)): OneServer) -> Answer<RawList> {
    let catalog = servers.catalog(&server)?;
    let items = catalog.resources.iter().chain(&catalog.templates);
    Ok(raw(items))
}

pub(super) async fn prompts((State(servers), Path(server)): OneServer) -> Answer<RawList> {
    Ok(raw(&servers.catalog(&server)?.prompts))
}

fn raw<'a>(items: impl IntoIterator<Item = &'a CatalogItem>) -> Json<RawList> {
    Json(items.into_iter().map(|item| item.raw.clone()).collect())
}

#[derive(Deserialize)]
pub(super) struct LogQuery {
    /// The first line number to return.
    from: Option<u64>,
    limit: Option<usize>,
}

pub(super) async fn logs(
    (State(servers), Path(server)): OneServer,
    Query(LogQuery { from, limit }): Query<LogQuery>,
) -> Answer<Vec<LogLine>> {
    Ok(Json(servers.managing.logs(&server, from, limit)?))
}

impl ServersApi {
    /// A record, with the tag of its definition.
    fn tagged(&self, managed: ManagedServer) -> Response {
        let spec = managed.wanted.spec.as_ref().ok();
        let tag = spec.map(|spec| [(header::ETAG, self.tags.of(spec))]);
        (tag, Json(managed.record)).into_response()
    }

    fn catalog(&self, server: &str) -> Result<Arc<Catalog>, ApiError> {
        let wanted = self.managing.find(server)?;
        Ok(self.managing.catalog(&wanted))
    }
}

/// Problems with a body: 400 if it is not JSON, 422 for a wrong field.
pub(super) fn invalid(problems: Vec<Problem>) -> ApiError {
    if let [only] = problems.as_slice()
        && only.field.is_empty()
    {
        return ApiError::bad_request(only.message.clone());
    }
    let fields = problems
        .into_iter()
        .map(|problem| FieldProblem::new(problem.field, problem.message));
    ApiError::validation(fields.collect())
}

impl From<UpdateError> for ApiError {
    fn from(error: UpdateError) -> ApiError {
        match error {
            UpdateError::Problems(problems) => invalid(problems),
            UpdateError::Registry(error) => error.into(),
        }
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> ApiError {
        let text = error.to_string();
        match error {
            RegistryError::NameTaken(_) => ApiError::conflict(text).with_field("name"),
            RegistryError::Broken(_) | RegistryError::Stale(_) => ApiError::conflict(text),
            RegistryError::NotFound(_) => ApiError::not_found(text),
            RegistryError::Closed => ApiError::unavailable(text),
            RegistryError::Source(error) => error.into(),
            RegistryError::Store(error) => error.into(),
        }
    }
}

impl From<SourceError> for ApiError {
    fn from(error: SourceError) -> ApiError {
        let text = error.to_string();
        match error {
            SourceError::Gone { .. } => ApiError::not_found(text),
            SourceError::Full { .. } => ApiError::new(Code::StorageFull, text),
            SourceError::Passing { .. } => ApiError::unavailable(text),
            SourceError::Store(error) => error.into(),
            _ => ApiError::conflict(text),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        match &error.kind {
            StoreErrorKind::Full => ApiError::new(Code::StorageFull, error.to_string()),
            StoreErrorKind::Unavailable(_) => ApiError::unavailable(error.to_string()),
            StoreErrorKind::Io { .. } => {
                let (operation, reason) = (&error.operation, error.kind.in_public());
                ApiError::unavailable(format!("cannot {operation}: {reason}")).with_cause(&error)
            }
            StoreErrorKind::Conflict(taken) => {
                let field = match taken {
                    UniqueField::Key => "api_key",
                    UniqueField::ServerName => "name",
                };
                ApiError::conflict(error.to_string()).with_field(field)
            }
            StoreErrorKind::Refused { clash: true, .. } => ApiError::conflict(error.to_string()),
            StoreErrorKind::Quota { what, limit } => {
                let details = serde_json::json!({"quota": what, "limit": limit});
                ApiError::new(Code::QuotaExceeded, error.to_string()).with_details(details)
            }
            StoreErrorKind::NoSuchTool(id) => {
                ApiError::not_found(error.to_string()).with_details(json!({"tool_id": id}))
            }
            StoreErrorKind::SameName(_) => ApiError::invalid_field("name", error.kind.to_string()),
            StoreErrorKind::Unfit(_) | StoreErrorKind::Refused { .. } => {
                ApiError::new(Code::ValidationError, error.to_string())
            }
            StoreErrorKind::OnceReused => {
                ApiError::invalid_field("Idempotency-Key", error.kind.to_string())
            }
            _ => ApiError::internal(error),
        }
    }
}
