//! The tools of an entry: its owner changes them, and clients with its key read
//! them (SPEC E11).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;

use super::answers::{BoundAnswer, EntryToolAnswer, Items, filtered};
use super::bodies::{BodyFields, JsonBody};
use super::resource::{RecordContext, RestRecord};
use super::{RecordsApi, refuse, values};
use crate::Principal;
use crate::authenticator::grant_of;
use crate::error::{ApiError, FieldProblem};
use crate::extract::{Path, Query};
use gateway::Caller;
use store::{BoundTool, Entry, EntryId, Grant, NewBinding, OwnerScope, ToolId, ToolRecord};

pub(crate) async fn list(
    context: RecordContext,
    Path(id): Path,
) -> Result<Json<Items<BoundAnswer>>, ApiError> {
    let bound = context.bound(Entry::id(&id)?).await?;
    let mut targets = context.records.targets();
    let shown = |bound| BoundAnswer::new(bound, &mut targets);
    Ok(Json(Items::all(bound, shown)))
}

/// One binding, or a list of them: each is created or has its status set, all
/// or none. A repeat changes nothing, so it needs no `Idempotency-Key`.
pub(crate) async fn create(
    context: RecordContext,
    Path(id): Path,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let id = Entry::id(&id)?;
    let mut fields = BodyFields::read(&body)?;
    let list = values::bindings(&mut fields);
    let listed = list.is_some();
    let new = list.unwrap_or_else(|| Vec::from_iter(values::binding(&mut fields)));
    fields.done()?;
    refuse(context.may_bind(&new).await?)?;
    let RecordContext { records, whose, .. } = context;
    let bound = records.store.bind(&whose, id, &new).await?;
    let bound = bound.ok_or_else(|| Entry::not_found(&id))?;
    let mut targets = records.targets();
    let shown = |bound| BoundAnswer::new(bound, &mut targets);
    let mut answer: Vec<BoundAnswer> = bound.into_iter().map(shown).collect();
    Ok(match (listed, answer.pop()) {
        (false, Some(only)) => (StatusCode::CREATED, Json(only)).into_response(),
        (_, last) => {
            let all = Items::all(answer.into_iter().chain(last), |bound| bound);
            (StatusCode::CREATED, Json(all)).into_response()
        }
    })
}

pub(crate) async fn change(
    context: RecordContext,
    Path((id, tool)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Json<BoundAnswer>, ApiError> {
    let (id, tool) = (Entry::id(&id)?, ToolRecord::id(&tool)?);
    let mut fields = BodyFields::read(&body)?;
    let enabled = fields.required("status", values::status);
    fields.done()?;
    let binding = NewBinding { tool, enabled };
    let RecordContext { records, whose, .. } = context;
    let changed = records.store.update_binding(&whose, id, binding).await?;
    let changed = changed.ok_or_else(|| no_binding(id, tool))?;
    Ok(Json(BoundAnswer::new(changed, &mut records.targets())))
}

pub(crate) async fn remove(
    context: RecordContext,
    Path((id, tool)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let (id, tool) = (Entry::id(&id)?, ToolRecord::id(&tool)?);
    let RecordContext { records, whose, .. } = context;
    if records.store.unbind(&whose, id, tool).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_binding(id, tool))
    }
}

#[derive(Deserialize)]
pub(crate) struct BindingsQuery {
    include_disabled: Option<bool>,
}

pub(crate) async fn tools(
    context: RecordContext,
    Path(id): Path,
    Query(query): Query<BindingsQuery>,
) -> Result<Json<Items<EntryToolAnswer>>, ApiError> {
    let id = Entry::id(&id)?;
    let bound = context.bound(id).await?;
    let grant = context.records.store.grant_of(id);
    Ok(Json(context.records.tools_of(query, bound, grant)))
}

/// No principal: the key in the path is the credential. All wrong keys get the
/// same response, also those that are not text.
pub(crate) async fn tools_by_key(
    State(records): State<RecordsApi>,
    key: Result<Path, ApiError>,
    Query(query): Query<BindingsQuery>,
) -> Result<Json<Items<EntryToolAnswer>>, ApiError> {
    let refused = || ApiError::not_found("there is no entry with this key");
    let Path(key) = key.map_err(|_| refused())?;
    let grant = grant_of(&records.store, &key).await?;
    let grant = grant.ok_or_else(refused)?;
    let everyone = OwnerScope::Everyone;
    let bound = records.store.bindings(&everyone, grant.entry).await?;
    let bound = bound.ok_or_else(refused)?;
    Ok(Json(records.tools_of(query, bound, Some(grant))))
}

impl RecordsApi {
    /// The requested bindings, and the tools that the entry's filter gives now.
    fn tools_of(
        &self,
        query: BindingsQuery,
        bound: Vec<BoundTool>,
        grant: Option<Arc<Grant>>,
    ) -> Items<EntryToolAnswer> {
        let all = query.include_disabled.unwrap_or(false);
        let mut targets = self.targets();
        let bound = bound.into_iter().filter(|one| all || one.binding.enabled);
        let bound = bound.map(|one| BoundAnswer::new(one, &mut targets));
        let mut tools: Vec<EntryToolAnswer> = bound.map(EntryToolAnswer::Bound).collect();
        if let Some(grant) = grant.filter(|grant| grant.filter.is_some()) {
            let view = self.gateway.view(&Caller::entry(grant));
            let given = view.tools_named_by_key().into_iter();
            tools.extend(given.map(|(name, target)| filtered(name, target)));
        }
        Items::all(tools, |tool| tool)
    }
}

impl RecordContext {
    /// Problems that keep a user from binding these now: a server may have been
    /// closed to users since the record was made.
    pub(super) async fn may_bind(&self, new: &[NewBinding]) -> Result<Vec<FieldProblem>, ApiError> {
        if matches!(self.principal, Principal::Admin) {
            return Ok(Vec::new());
        }
        let targets = self.records.targets();
        let mut problems = Vec::new();
        for (at, binding) in new.iter().enumerate() {
            // The store refuses a tool that does not exist.
            if let Some(tool) = ToolRecord::find(self, &binding.tool).await?
                && let Some(message) = targets.closed(&tool.owner, &tool.server)
            {
                let field = format!("bindings[{at}].tool_id");
                problems.push(FieldProblem::new(field, message));
            }
        }
        Ok(problems)
    }

    async fn bound(&self, id: EntryId) -> Result<Vec<BoundTool>, ApiError> {
        let bound = self.records.store.bindings(&self.whose, id).await?;
        bound.ok_or_else(|| Entry::not_found(&id))
    }
}

fn no_binding(entry: EntryId, tool: ToolId) -> ApiError {
    ApiError::not_found(format!("there is no entry {entry} with a tool {tool}"))
}
