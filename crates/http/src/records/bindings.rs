//! The tools of an entry: for its owner to change, and for whoever holds its
//! key to read (SPEC E11).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;

use super::answers::{BoundAnswer, EntryToolAnswer, FilteredAnswer, Items};
use super::bodies::{Fields, Given};
use super::{RecordsApi, entry_id, no_entry, refuse, tool_id, values};
use crate::Principal;
use crate::error::{ApiError, FieldProblem};
use crate::extract::{Path, Query};
use gateway::Caller;
use store::{
    ApiKey, BoundTool, EntryId, Grant, GrantLookup, NewBinding, OwnerScope, Timestamp, ToolId,
};

pub(crate) async fn list(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
) -> Result<Json<Items<BoundAnswer>>, ApiError> {
    let bound = records.bound(&principal.whose()?, entry_id(&id)?).await?;
    let mut targets = records.targets();
    let shown = |bound| BoundAnswer::new(bound, &mut targets);
    Ok(Json(Items::all(bound, shown)))
}

/// One binding, or a list of them: each is made or has its status set, all
/// or none. To say it twice changes nothing, so it needs no key of its own.
pub(crate) async fn create(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let id = entry_id(&id)?;
    let mut fields = Fields::read(&body)?;
    let (listed, new) = match fields.take("bindings") {
        Some(list) => (true, values::bindings(&mut fields, "bindings", list)),
        None => (false, values::binding(&mut fields).into_iter().collect()),
    };
    fields.done()?;
    refuse(records.may_bind(&principal, &new).await?)?;
    let bound = records.store.bind(&principal.whose()?, id, &new).await?;
    let bound = bound.ok_or_else(|| no_entry(id))?;
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
    State(records): State<RecordsApi>,
    principal: Principal,
    Path((id, tool)): Path<(String, String)>,
    Given(body): Given,
) -> Result<Json<BoundAnswer>, ApiError> {
    let (id, tool) = (entry_id(&id)?, tool_id(&tool)?);
    let mut fields = Fields::read(&body)?;
    let enabled = fields.required("status", values::status);
    fields.done()?;
    let binding = NewBinding { tool, enabled };
    let whose = principal.whose()?;
    let changed = records.store.update_binding(&whose, id, binding).await?;
    let changed = changed.ok_or_else(|| no_binding(id, tool))?;
    Ok(Json(BoundAnswer::new(changed, &mut records.targets())))
}

pub(crate) async fn remove(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path((id, tool)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let (id, tool) = (entry_id(&id)?, tool_id(&tool)?);
    match records.store.unbind(&principal.whose()?, id, tool).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_binding(id, tool)),
    }
}

#[derive(Deserialize)]
pub(crate) struct Which {
    include_disabled: Option<bool>,
}

pub(crate) async fn tools(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
    Query(which): Query<Which>,
) -> Result<Json<Items<EntryToolAnswer>>, ApiError> {
    let id = entry_id(&id)?;
    let bound = records.bound(&principal.whose()?, id).await?;
    let grant = records.store.grant_of(id);
    Ok(Json(records.tools_of(which, bound, grant)))
}

/// No principal: the key in the path opens this and nothing else. Whatever
/// opens nothing is refused in the same words, also what is no text.
pub(crate) async fn tools_by_key(
    State(records): State<RecordsApi>,
    key: Result<Path, ApiError>,
    Query(which): Query<Which>,
) -> Result<Json<Items<EntryToolAnswer>>, ApiError> {
    let refused = || ApiError::not_found("there is no entry with this key");
    let Path(key) = key.map_err(|_| refused())?;
    let key = ApiKey::given(&key).digest();
    let grant = match records.store.grant(&key) {
        GrantLookup::Yes(grant) => Some(grant),
        GrantLookup::No => None,
        GrantLookup::Ask => records.store.ask(&key).await?,
    };
    let grant = grant.ok_or_else(refused)?;
    grant.touch(Timestamp::now());
    let bound = records
        .store
        .bindings(&OwnerScope::Everyone, grant.entry)
        .await?;
    let bound = bound.ok_or_else(refused)?;
    Ok(Json(records.tools_of(which, bound, Some(grant))))
}

impl RecordsApi {
    /// The bindings that are asked for, and what the entry's filter gives now.
    fn tools_of(
        &self,
        which: Which,
        bound: Vec<BoundTool>,
        grant: Option<Arc<Grant>>,
    ) -> Items<EntryToolAnswer> {
        let all = which.include_disabled.unwrap_or(false);
        let mut targets = self.targets();
        let bound = bound.into_iter().filter(|one| all || one.binding.enabled);
        let bound = bound.map(|one| BoundAnswer::new(one, &mut targets));
        let mut tools: Vec<EntryToolAnswer> = bound.map(EntryToolAnswer::Bound).collect();
        if let Some(grant) = grant.filter(|grant| grant.filter.is_some()) {
            let view = self.gateway.view(&Caller::entry(grant));
            let given = view.tools_named_by_key().into_iter();
            let given = given.map(|(name, target)| FilteredAnswer::new(name, target));
            tools.extend(given.map(EntryToolAnswer::Filtered));
        }
        Items::all(tools, |tool| tool)
    }

    /// Whether a user may bind these now: a server may have been closed to
    /// users since the record was made.
    pub(crate) async fn may_bind(
        &self,
        principal: &Principal,
        new: &[NewBinding],
    ) -> Result<Vec<FieldProblem>, ApiError> {
        if matches!(principal, Principal::Admin) {
            return Ok(Vec::new());
        }
        let (whose, targets) = (principal.whose()?, self.targets());
        let mut problems = Vec::new();
        for (at, binding) in new.iter().enumerate() {
            // One that is not there is the store's to refuse.
            if let Some(tool) = self.store.tool(&whose, binding.tool).await?
                && let Some(message) = targets.closed(&tool.owner, &tool.server)
            {
                let field = format!("bindings[{at}].tool_id");
                problems.push(FieldProblem::new(field, message));
            }
        }
        Ok(problems)
    }

    async fn bound(&self, whose: &OwnerScope, id: EntryId) -> Result<Vec<BoundTool>, ApiError> {
        let bound = self.store.bindings(whose, id).await?;
        bound.ok_or_else(|| no_entry(id))
    }
}

fn no_binding(entry: EntryId, tool: ToolId) -> ApiError {
    ApiError::not_found(format!("there is no entry {entry} with a tool {tool}"))
}
