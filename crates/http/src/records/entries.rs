//! `/api/v1/mcp_v2`: the entries.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::answers::{EntryAnswer, Items, created, made};
use super::bodies::{Fields, Given};
use super::once::{Asked, IdempotencyKey};
use super::{Paging, RecordsApi, entry_id, no_entry, refuse, values};
use crate::Principal;
use crate::error::{ApiError, FieldProblem};
use crate::extract::{Path, Query};
use store::{ApiKey, Entry, EntryChange, NewBinding, NewEntry, Timestamp};

pub(crate) async fn create(
    State(records): State<RecordsApi>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let owner = principal.owner();
    let asked = Asked::new("mcp_v2", &owner, key.as_deref(), &body);
    let (fields, bindings) = (Fields::read(&body)?, (Vec::new(), Vec::new()));
    make(&records, &owner, &asked, fields, bindings).await
}

/// The entry with its bindings, or nothing of it (SPEC E4, E5).
pub(crate) async fn create_bound(
    State(records): State<RecordsApi>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let owner = principal.owner();
    let asked = Asked::new("mcp_v2/with_bindings", &owner, key.as_deref(), &body);
    let mut fields = Fields::read(&body)?;
    let bindings = match fields.take("bindings") {
        Some(list) => values::bindings(&mut fields, "bindings", list),
        None => {
            fields.wrong("bindings", "is missing");
            Vec::new()
        }
    };
    let problems = records.may_bind(&principal, &bindings).await?;
    make(&records, &owner, &asked, fields, (bindings, problems)).await
}

async fn make(
    records: &RecordsApi,
    owner: &Arc<str>,
    asked: &Asked<'_>,
    mut fields: Fields,
    (bindings, mut problems): (Vec<NewBinding>, Vec<FieldProblem>),
) -> Result<Response, ApiError> {
    let key = records.keys.make(asked)?;
    let allow_missing = values::allow_missing(&mut fields);
    let expires_at = fields.optional("expires_at", values::moment);
    if expires_at.is_some_and(|at| at <= Timestamp::now()) {
        problems.push(FieldProblem::new("expires_at", values::PAST));
    }
    let new = NewEntry {
        owner: owner.clone(),
        name: fields.required("name", values::entry_name),
        enabled: fields.optional("status", values::status).unwrap_or(true),
        key: key.record(expires_at),
        exposes: values::exposes(&mut fields).unwrap_or_default(),
        filter: values::filter(&mut fields).flatten(),
        bindings,
    };
    fields.done()?;
    let targets = records.targets();
    problems.extend(targets.check_exposes(owner, &new.exposes, allow_missing));
    let filter = new.filter.iter();
    problems.extend(filter.flat_map(|filter| targets.check_filter(owner, filter)));
    records.refuse_new(asked, problems).await?;
    let (entry, replayed) = made(records.store.create_entry(new, asked.once()).await?)?;
    let key = match replayed {
        false => Some(key),
        // One that was rotated since is not ours to know any more.
        true => records
            .keys
            .again(asked, entry.created_at, &entry.key.digest),
    };
    let place = format!("/api/v1/mcp_v2/{}", entry.id);
    let answer = EntryAnswer::from(entry).with_key(key.as_ref());
    Ok(created(answer, Some(place), replayed))
}

pub(crate) async fn list(
    State(records): State<RecordsApi>,
    principal: Principal,
    Query(paging): Query<Paging>,
) -> Result<Json<Items<EntryAnswer>>, ApiError> {
    let (whose, page) = paging.read(&principal)?;
    let listed = records.store.entries(&whose, page).await?;
    Ok(Json(Items::of(listed, EntryAnswer::from)))
}

pub(crate) async fn show(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
) -> Result<Json<EntryAnswer>, ApiError> {
    let id = entry_id(&id)?;
    let found = records.store.entry(&principal.whose()?, id).await?;
    Ok(Json(found.ok_or_else(|| no_entry(id))?.into()))
}

pub(crate) async fn change(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
    Given(body): Given,
) -> Result<Json<EntryAnswer>, ApiError> {
    let id = entry_id(&id)?;
    let mut fields = Fields::read(&body)?;
    let allow_missing = values::allow_missing(&mut fields);
    let change = EntryChange {
        name: fields.change("name", values::entry_name),
        enabled: fields.change("status", values::status),
        exposes: values::exposes(&mut fields),
        filter: values::filter(&mut fields),
        // A moment in the past is a way to close it.
        expires_at: fields.removable("expires_at", values::moment),
    };
    fields.done()?;
    let whose = principal.whose()?;
    if (change.exposes.is_some() || change.filter.is_some())
        && let Some(Entry { owner, .. }) = records.store.entry(&whose, id).await?
    {
        let targets = records.targets();
        let exposes = change.exposes.iter();
        let mut problems: Vec<FieldProblem> = exposes
            .flat_map(|exposes| targets.check_exposes(&owner, exposes, allow_missing))
            .collect();
        let filter = change.filter.iter().flatten();
        problems.extend(filter.flat_map(|filter| targets.check_filter(&owner, filter)));
        refuse(problems)?;
    }
    let changed = records.store.update_entry(&whose, id, change).await?;
    Ok(Json(changed.ok_or_else(|| no_entry(id))?.into()))
}

pub(crate) async fn remove(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
) -> Result<StatusCode, ApiError> {
    let id = entry_id(&id)?;
    match records.store.delete_entry(&principal.whose()?, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_entry(id)),
    }
}

/// A new key in the place of the old one. When it expires is a matter of the
/// key: what is not said anew is over.
pub(crate) async fn rotate(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(id): Path,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let id = entry_id(&id)?;
    let mut fields = Fields::read_or_none(&body)?;
    let expires_at = fields.optional("expires_at", values::future);
    fields.done()?;
    let key = ApiKey::random()?;
    let whose = principal.whose()?;
    let new = key.record(expires_at);
    let rotated = records.store.replace_key(&whose, id, new).await?;
    let entry = rotated.ok_or_else(|| no_entry(id))?;
    let answer = EntryAnswer::from(entry).with_key(Some(&key));
    let headers = [(header::CACHE_CONTROL, "no-store")];
    Ok((headers, Json(answer)).into_response())
}
