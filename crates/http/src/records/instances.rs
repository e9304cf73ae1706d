//! `/api/v1/mcp`: the API from before entries (SPEC E9). Its records carry
//! whatever fields they came with; no tool is served by them. A record is
//! named by its key, which is never repeated in an answer, or by its id.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::answers::{InstanceAnswer, Items, OURS, created, made};
use super::bodies::{Fields, Given};
use super::once::{Asked, IdempotencyKey};
use super::{Paging, RecordsApi, values};
use crate::Principal;
use crate::error::ApiError;
use crate::extract::{Path, Query};
use store::{ApiKey, EntryId, InstanceChange, InstanceName, NewInstance};

pub(crate) async fn create(
    State(records): State<RecordsApi>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let owner = principal.owner();
    let asked = Asked::new("mcp", &owner, key.as_deref(), &body);
    let mut fields = Fields::read(&body)?;
    for name in OURS {
        if fields.take(name).is_some() {
            fields.wrong(name, "is given out by Portway, not taken");
        }
    }
    let owner = owner_in(&mut fields, &principal).unwrap_or_else(|| owner.clone());
    let given = fields.optional("api_key", values::given_key);
    if given.is_some() && !matches!(principal, Principal::Admin) {
        fields.wrong("api_key", NOT_THEIRS);
    }
    let key = match given {
        Some(key) => key,
        None => records.keys.make(&asked)?,
    };
    let new = NewInstance {
        owner,
        name: fields.required("name", values::entry_name),
        enabled: fields.optional("status", values::status).unwrap_or(true),
        key: key.record(None),
        extra: fields.rest(),
    };
    fields.done()?;
    let (instance, replayed) = made(records.store.create_instance(new, asked.once()).await?)?;
    let key = match replayed {
        false => Some(key),
        // The one that the request itself names is no secret to its sender.
        true if key.digest().matches(&instance.key.digest) => Some(key),
        true => records
            .keys
            .again(&asked, instance.created_at, &instance.key.digest),
    };
    let answer = InstanceAnswer::from(instance).with_key(key.as_ref());
    Ok(created(answer, None, replayed))
}

pub(crate) async fn list(
    State(records): State<RecordsApi>,
    principal: Principal,
    Query(paging): Query<Paging>,
) -> Result<Json<Items<InstanceAnswer>>, ApiError> {
    let (whose, page) = paging.read(&principal)?;
    let listed = records.store.instances(&whose, page).await?;
    Ok(Json(Items::of(listed, InstanceAnswer::from)))
}

pub(crate) async fn show(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(name): Path,
) -> Result<Json<InstanceAnswer>, ApiError> {
    let whose = principal.whose()?;
    let found = records.store.instance(&whose, &named(&name)).await?;
    Ok(Json(found.ok_or_else(no_instance)?.into()))
}

/// Changes what is mentioned, as this API always did under `PUT`. A client
/// may send back what it was answered: that changes nothing.
pub(crate) async fn change(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(name): Path,
    Given(body): Given,
) -> Result<Json<InstanceAnswer>, ApiError> {
    let mut fields = Fields::read(&body)?;
    for name in OURS {
        fields.take(name);
    }
    let (whose, name) = (principal.whose()?, named(&name));
    let owner = owner_in(&mut fields, &principal);
    let key = fields.change("api_key", values::given_key);
    if let Some(key) = &key
        && !matches!(principal, Principal::Admin)
    {
        let found = records.store.instance(&whose, &name).await?;
        let found = found.ok_or_else(no_instance)?;
        if !found.key.digest.matches(&key.digest()) {
            fields.wrong("api_key", NOT_THEIRS);
        }
    }
    let change = InstanceChange {
        owner,
        key: key.map(|key| key.record(None)),
        name: fields.change("name", values::entry_name),
        enabled: fields.change("status", values::status),
        extra: fields.rest(),
    };
    fields.done()?;
    let changed = records.store.update_instance(&whose, &name, change).await?;
    Ok(Json(changed.ok_or_else(no_instance)?.into()))
}

pub(crate) async fn remove(
    State(records): State<RecordsApi>,
    principal: Principal,
    Path(name): Path,
) -> Result<StatusCode, ApiError> {
    let whose = principal.whose()?;
    match records.store.delete_instance(&whose, &named(&name)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_instance()),
    }
}

const NOT_THEIRS: &str = "only the admin can choose a key; leave it out";

/// The owner that a body names: any for the admin, oneself for a user.
fn owner_in(fields: &mut Fields, principal: &Principal) -> Option<Arc<str>> {
    let named = fields.optional("user_id", values::user_id)?;
    let theirs = match principal.whose() {
        Ok(whose) => whose.includes(&named),
        Err(_) => false,
    };
    if !theirs {
        fields.wrong("user_id", "only the admin can name another user");
    }
    Some(named)
}

/// What a path names a record by: its key, or its id.
fn named(text: &str) -> InstanceName {
    InstanceName {
        key: ApiKey::given(text).digest(),
        id: values::number(text).map(EntryId),
    }
}

fn no_instance() -> ApiError {
    ApiError::not_found("there is no MCP instance with this key or id")
}
