//! `/api/v1/tools`: the tools that their owner can bind.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::answers::{Items, ToolAnswer, created, made};
use super::bodies::{Fields, Given};
use super::once::{Asked, IdempotencyKey};
use super::{Paging, Records, no_tool, tool_id, values};
use crate::gateway::control;
use crate::http::Principal;
use crate::http::error::{ApiError, FieldProblem};
use crate::http::extract::{Path, Query};
use crate::store::{ADMIN, NewTool, ToolChange};

pub(super) async fn create(
    State(records): State<Records>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let owner = principal.owner();
    let asked = Asked::new("tools", &owner, key.as_deref(), &body);
    let new = new_tool(owner.clone(), Fields::read(&body)?)?;
    records.may_stand_for(&owner, &new.server)?;
    let (tool, replayed) = made(records.store.create_tool(new, asked.once()).await?)?;
    let place = format!("/api/v1/tools/{}", tool.id);
    Ok(created(ToolAnswer::from(tool), Some(place), replayed))
}

pub(super) async fn list(
    State(records): State<Records>,
    principal: Principal,
    Query(paging): Query<Paging>,
) -> Result<Json<Items<ToolAnswer>>, ApiError> {
    let (whose, page) = paging.read(&principal)?;
    let listed = records.store.tools(&whose, page).await?;
    Ok(Json(Items::of(listed, ToolAnswer::from)))
}

pub(super) async fn show(
    State(records): State<Records>,
    principal: Principal,
    Path(id): Path,
) -> Result<Json<ToolAnswer>, ApiError> {
    let id = tool_id(&id)?;
    let found = records.store.tool(&principal.whose()?, id).await?;
    Ok(Json(found.ok_or_else(|| no_tool(id))?.into()))
}

pub(super) async fn change(
    State(records): State<Records>,
    principal: Principal,
    Path(id): Path,
    Given(body): Given,
) -> Result<Json<ToolAnswer>, ApiError> {
    let id = tool_id(&id)?;
    let change = tool_change(Fields::read(&body)?)?;
    let whose = principal.whose()?;
    if let Some(server) = &change.server
        && let Some(tool) = records.store.tool(&whose, id).await?
    {
        records.may_stand_for(&tool.owner, server)?;
    }
    let changed = records.store.update_tool(&whose, id, change).await?;
    Ok(Json(changed.ok_or_else(|| no_tool(id))?.into()))
}

pub(super) async fn remove(
    State(records): State<Records>,
    principal: Principal,
    Path(id): Path,
) -> Result<StatusCode, ApiError> {
    let id = tool_id(&id)?;
    match records.store.delete_tool(&principal.whose()?, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_tool(id)),
    }
}

impl Records {
    /// Portway's own tools are the admin's to hand out. A server that only
    /// has their name is as any other.
    fn may_stand_for(&self, owner: &str, server: &str) -> Result<(), ApiError> {
        let own = server == control::NAME && !self.desired.borrow().contains_key(server);
        if !own || owner == ADMIN {
            return Ok(());
        }
        let text = "is Portway itself: only the admin can make tools of its own management";
        Err(ApiError::validation(vec![FieldProblem::new(
            "server", text,
        )]))
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
