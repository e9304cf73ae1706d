//! `/api/v1/mcp_v2`: the entries.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header;
use serde_json::{Value, json};

use super::bodies::{BodyFields, JsonBody};
use super::idempotency::{CreateRequest, IdempotencyKey};
use super::resource::{RecordContext, RestRecord, Stored, stored_by};
use super::targets::Targets;
use super::{ENDPOINT, answers, refuse, values};
use crate::error::{ApiError, FieldProblem};
use crate::extract::Path;
use store::{ApiKey, Entry, EntryChange, EntryId, KeyDigest, NewEntry, Timestamp};

impl RestRecord for Entry {
    const ROUTE: &'static str = "mcp_v2";
    type Id = EntryId;
    type New = NewEntry;
    type Change = EntryChange;

    stored_by!(entries, entry, create_entry, update_entry, delete_entry, *);

    fn id(text: &str) -> Result<EntryId, ApiError> {
        // The text is not repeated: it may be a key.
        let missing = || ApiError::not_found("there is no such entry: its id is a number");
        values::number(text).map(EntryId).ok_or_else(missing)
    }

    fn not_found(id: &EntryId) -> ApiError {
        ApiError::not_found(format!("there is no entry {id}"))
    }

    fn answer(self, key: Option<&ApiKey>, _: &mut Targets) -> Value {
        let mut answer = json!({
            "id": self.id.0,
            "mcp_instance_id": self.id.to_string(),
            "name": self.name,
            "user_id": self.owner,
            "status": self.enabled,
            "exposes": self.exposes,
            "filter": self.filter,
            "key": answers::key(&self.key),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        });
        if let Some(key) = key.map(ApiKey::expose) {
            answer["api_key"] = key.into();
            answer["url"] = format!("{ENDPOINT}{key}").into();
        }
        answer
    }

    fn location(&self) -> Option<String> {
        Some(format!("/api/v1/mcp_v2/{}", self.id))
    }

    fn key(&self) -> Option<(&KeyDigest, Timestamp)> {
        Some((&self.key.digest, self.created_at))
    }

    fn read_new(
        context: &RecordContext,
        key: &mut ApiKey,
        mut fields: BodyFields,
    ) -> Result<(NewEntry, Vec<FieldProblem>), ApiError> {
        let owner = context.principal.owner();
        let allow_missing = values::allow_missing(&mut fields);
        let expires_at = fields.optional("expires_at", values::moment);
        let mut problems = Vec::new();
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
            bindings: Vec::new(),
        };
        fields.done()?;
        let targets = context.records.targets();
        let (exposes, filter) = (Some(&new.exposes), new.filter.as_ref());
        problems.extend(targets.check_entry(&owner, exposes, filter, allow_missing));
        Ok((new, problems))
    }

    async fn read_change(
        context: &RecordContext,
        id: &EntryId,
        mut fields: BodyFields,
    ) -> Result<EntryChange, ApiError> {
        let allow_missing = values::allow_missing(&mut fields);
        let change = EntryChange {
            name: fields.change("name", values::entry_name),
            enabled: fields.change("status", values::status),
            exposes: values::exposes(&mut fields),
            filter: values::filter(&mut fields),
            // A time in the past closes the entry.
            expires_at: fields.removable("expires_at", values::moment),
        };
        fields.done()?;
        let (exposes, filter) = (change.exposes.as_ref(), change.filter.as_ref());
        if (exposes.is_some() || filter.is_some())
            && let Some(Entry { owner, .. }) = Entry::find(context, id).await?
        {
            let targets = context.records.targets();
            let filter = filter.and_then(Option::as_ref);
            refuse(targets.check_entry(&owner, exposes, filter, allow_missing))?;
        }
        Ok(change)
    }
}

/// Creates the entry with its bindings, or nothing (SPEC E4, E5).
pub(crate) async fn create_bound(
    context: RecordContext,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let owner = context.principal.owner();
    let request = CreateRequest::new("mcp_v2/with_bindings", &owner, key.as_deref(), &body);
    let mut fields = BodyFields::read(&body)?;
    let bindings = values::bindings(&mut fields).unwrap_or_else(|| {
        fields.wrong("bindings", "is missing");
        Vec::new()
    });
    let mut problems = context.may_bind(&bindings).await?;
    let mut key = context.records.keys.make(&request)?;
    let (mut new, more) = Entry::read_new(&context, &mut key, fields)?;
    new.bindings = bindings;
    problems.extend(more);
    context
        .create::<Entry>(&request, key, (new, problems))
        .await
}

/// Replaces the key. The new key does not take over the old one's expiry.
pub(crate) async fn rotate(
    context: RecordContext,
    Path(id): Path,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let id = Entry::id(&id)?;
    let mut fields = BodyFields::read_or_none(&body)?;
    let expires_at = fields.optional("expires_at", values::future);
    fields.done()?;
    let key = ApiKey::random()?;
    let new = key.record(expires_at);
    let store = &context.records.store;
    let rotated = store.replace_key(&context.whose, id, new).await?;
    let entry = rotated.ok_or_else(|| Entry::not_found(&id))?;
    let answer = entry.answer(Some(&key), &mut context.records.targets());
    let headers = [(header::CACHE_CONTROL, "no-store")];
    Ok((headers, Json(answer)).into_response())
}
