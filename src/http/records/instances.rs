//! `/api/v1/mcp`: the API from before entries (SPEC E9). Its records carry
//! whatever fields they came with; no tool is served by them. A record is
//! named by its key, which is never repeated in an answer.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;

use super::answers::{InstanceAnswer, Items, OURS, created, made};
use super::bodies::{Fields, Given};
use super::once::{Asked, IdempotencyKey};
use super::{Paging, Records, values};
use crate::http::Principal;
use crate::http::error::ApiError;
use crate::http::extract::{Path, Query};
use crate::store::{ApiKey, InstanceChange, KeyDigest, NewInstance};

pub(super) async fn create(
    State(records): State<Records>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    Given(body): Given,
) -> Result<Response, ApiError> {
    let owner = principal.owner();
    let asked = Asked::new("mcp", &owner, key.as_deref(), &body);
    let mut fields = Fields::read(&body)?;
    let key = records.keys.make(&asked)?;
    for name in OURS {
        if fields.take(name).is_some() {
            fields.wrong(name, "is given out by Portway, not taken");
        }
    }
    let new = NewInstance {
        owner: owner.clone(),
        name: fields.required("name", values::entry_name),
        enabled: fields.optional("status", values::status).unwrap_or(true),
        key: key.record(None),
        extra: fields.rest(),
    };
    fields.done()?;
    let (instance, replayed) = made(records.store.create_instance(new, asked.once()).await?)?;
    let key = match replayed {
        false => Some(key),
        true => records
            .keys
            .again(&asked, instance.created_at, &instance.key.digest),
    };
    let answer = InstanceAnswer::from(instance).with_key(key.as_ref());
    Ok(created(answer, None, replayed))
}

pub(super) async fn list(
    State(records): State<Records>,
    principal: Principal,
    Query(paging): Query<Paging>,
) -> Result<Json<Items<InstanceAnswer>>, ApiError> {
    let page = paging.page()?;
    let listed = records.store.instances(&principal.whose()?, page).await?;
    Ok(Json(Items::of(listed, InstanceAnswer::from)))
}

pub(super) async fn show(
    State(records): State<Records>,
    principal: Principal,
    Path(key): Path,
) -> Result<Json<InstanceAnswer>, ApiError> {
    let (whose, key) = (principal.whose()?, digest(&key));
    let found = records.store.instance(&whose, &key).await?;
    Ok(Json(found.ok_or_else(no_instance)?.into()))
}

/// Changes what is mentioned, as this API always did under `PUT`.
pub(super) async fn change(
    State(records): State<Records>,
    principal: Principal,
    Path(key): Path,
    Given(body): Given,
) -> Result<Json<InstanceAnswer>, ApiError> {
    let mut fields = Fields::read(&body)?;
    let same_key = |given: &Value| given.as_str() == Some(&key);
    for name in OURS {
        // Who sends back what was answered may do so.
        let given = fields.take(name);
        if name == "api_key" && given.is_some_and(|given| !same_key(&given)) {
            fields.wrong(name, "cannot be changed");
        }
    }
    let name = fields.change("name", values::entry_name);
    let enabled = fields.change("status", values::status);
    let extra = fields.rest();
    fields.done()?;
    let (whose, key) = (principal.whose()?, digest(&key));
    let change = InstanceChange {
        name,
        enabled,
        extra,
    };
    let changed = records.store.update_instance(&whose, &key, change).await?;
    Ok(Json(changed.ok_or_else(no_instance)?.into()))
}

pub(super) async fn remove(
    State(records): State<Records>,
    principal: Principal,
    Path(key): Path,
) -> Result<StatusCode, ApiError> {
    let whose = principal.whose()?;
    match records.store.delete_instance(&whose, &digest(&key)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_instance()),
    }
}

fn digest(key: &str) -> KeyDigest {
    ApiKey::given(key).digest()
}

fn no_instance() -> ApiError {
    ApiError::not_found("there is no MCP instance with this key")
}
