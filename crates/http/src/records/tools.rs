//! `/api/v1/tools`: the tools that their owner can bind.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::answers::{Items, ToolAnswer, created, made};
use super::bodies::{Fields, Given};
use super::once::{Asked, IdempotencyKey};
use super::{Paging, RecordsApi, no_tool, refuse, tool_id, values};
use crate::Principal;
use crate::error::ApiError;
use crate::extract::{Path, Query};
use store::{NewTool, ToolChange};

pub(crate) async fn create(
    State(records): State<RecordsApi>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let owner = principal.owner();
    let asked = Asked::new("tools", &owner, key.as_deref(), &body);
    let mut fields = Fields::read(&body)?;
    let allow_missing = values::allow_missing(&mut fields);
    let new = new_tool(owner.clone(), fields)?;
    let mut targets = records.targets();
    let problem = targets.check(&owner, (&new.server, &new.tool), allow_missing);
    let problems = problem.into_iter().collect();
    records.refuse_new(&asked, problems).await?;
    let (tool, replayed) = made(records.store.create_tool(new, asked.once()).await?)?;
    let place = format!("/api/v1/tools/{}", tool.id);
    let answer = ToolAnswer::new(tool, &mut targets);
    Ok(created(answer, Some(place), replayed))
}

pub(crate) async fn list(
    State(records): State<RecordsApi>,
    principal: Principal,
    Query(paging): Query<Paging>,
) -> Result<Json<Items<ToolAnswer>>, ApiError> {
    let (whose, page) = paging.read(&principal)?;
    let listed = records.store.tools(&whose, page).await?;
    let mut targets = records.targets();
    let shown = |tool| ToolAnswer::new(tool, &mut targets);
    Ok(Json(Items::of(listed, shown)))
}

pub(crate) async fn show(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
) -> Result<Json<ToolAnswer>, ApiError> {
    let id = tool_id(&id)?;
    let found = records.store.tool(&principal.whose()?, id).await?;
    let found = found.ok_or_else(|| no_tool(id))?;
    Ok(Json(ToolAnswer::new(found, &mut records.targets())))
}

pub(crate) async fn change(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
    Given(body): Given,
) -> Result<Json<ToolAnswer>, ApiError> {
    let id = tool_id(&id)?;
    let mut fields = Fields::read(&body)?;
    let allow_missing = values::allow_missing(&mut fields);
    let change = tool_change(fields)?;
    let whose = principal.whose()?;
    let mut targets = records.targets();
    if (change.server.is_some() || change.tool.is_some())
        && let Some(before) = records.store.tool(&whose, id).await?
    {
        let server = change.server.as_ref().unwrap_or(&before.server);
        let tool = change.tool.as_ref().unwrap_or(&before.tool);
        let problem = targets.check(&before.owner, (server, tool), allow_missing);
        refuse(problem.into_iter().collect())?;
    }
    let changed = records.store.update_tool(&whose, id, change).await?;
    let changed = changed.ok_or_else(|| no_tool(id))?;
    Ok(Json(ToolAnswer::new(changed, &mut targets)))
}

pub(crate) async fn remove(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
) -> Result<StatusCode, ApiError> {
    let id = tool_id(&id)?;
    match records.store.delete_tool(&principal.whose()?, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_tool(id)),
    }
}

fn new_tool(owner: Arc<str>, mut fields: Fields) -> Result<NewTool, ApiError> {
    let new = NewTool {
        owner,
        name: fields.required("name", values::tool_name),
        description: fields.optional("description", values::description),
        server: fields.required("server", values::server),
        tool: fields.required("tool", values::upstream_tool),
    };
    fields.done().map(|()| new)
}

fn tool_change(mut fields: Fields) -> Result<ToolChange, ApiError> {
    let change = ToolChange {
        name: fields.change("name", values::tool_name),
        description: fields.removable("description", values::description),
        server: fields.change("server", values::server),
        tool: fields.change("tool", values::upstream_tool),
    };
    fields.done().map(|()| change)
}
