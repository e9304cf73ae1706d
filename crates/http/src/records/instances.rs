//! `/api/v1/mcp`: the API from before entries (SPEC E9). Its records keep all
//! fields they came with; they serve no tools. A record is named by its key,
//! which no response repeats, or by its id.

use std::sync::Arc;

use serde_json::{Value, json};

use super::bodies::BodyFields;
use super::resource::{RecordContext, RestRecord, Stored, stored_by};
use super::targets::Targets;
use super::{answers, values};
use crate::Principal;
use crate::error::{ApiError, FieldProblem};
use store::{
    ApiKey, EntryId, Instance, InstanceChange, InstanceName, KeyDigest, NewInstance, Timestamp,
};

/// The members that Portway sets; a client cannot set one of these names.
pub(crate) const OURS: [&str; 5] = ["id", "mcp_instance_id", "key", "created_at", "updated_at"];

const NOT_THEIRS: &str = "only the admin can choose a key; leave it out";

impl RestRecord for Instance {
    const ROUTE: &'static str = "mcp";
    type Id = InstanceName;
    type New = NewInstance;
    type Change = InstanceChange;

    stored_by!(
        instances, instance, create_instance, update_instance, delete_instance
    );

    fn id(text: &str) -> Result<InstanceName, ApiError> {
        Ok(InstanceName {
            key: ApiKey::given(text).digest(),
            id: values::number(text).map(EntryId),
        })
    }

    fn not_found(_: &InstanceName) -> ApiError {
        ApiError::not_found("there is no MCP instance with this key or id")
    }

    /// `status` as a number, and all other fields that the record came with.
    fn answer(self, key: Option<&ApiKey>, _: &mut Targets) -> Value {
        let mut answer = json!({
            "id": self.id.0,
            "mcp_instance_id": self.id.to_string(),
            "name": self.name,
            "user_id": self.owner,
            "status": u8::from(self.enabled),
            "key": answers::key(&self.key),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        });
        if let Some(key) = key {
            answer["api_key"] = key.expose().into();
        }
        if let Value::Object(members) = &mut answer {
            members.extend(self.extra);
        }
        answer
    }

    fn key(&self) -> Option<(&KeyDigest, Timestamp)> {
        Some((&self.key.digest, self.created_at))
    }

    fn read_new(
        context: &RecordContext,
        key: &mut ApiKey,
        mut fields: BodyFields,
    ) -> Result<(NewInstance, Vec<FieldProblem>), ApiError> {
        for name in OURS {
            if fields.take(name).is_some() {
                fields.wrong(name, "is given out by Portway, not taken");
            }
        }
        let owner = owner_in(&mut fields, context);
        if let Some(chosen) = fields.optional("api_key", values::given_key) {
            *key = chosen;
            if !matches!(context.principal, Principal::Admin) {
                fields.wrong("api_key", NOT_THEIRS);
            }
        }
        let new = NewInstance {
            owner: owner.unwrap_or_else(|| context.principal.owner()),
            name: fields.required("name", values::entry_name),
            enabled: fields.optional("status", values::status).unwrap_or(true),
            key: key.record(None),
            extra: fields.rest(),
        };
        fields.done()?;
        Ok((new, Vec::new()))
    }

    /// Changes the fields in the body, as this API always did under `PUT`. A
    /// client may send back a response of ours: that changes nothing.
    async fn read_change(
        context: &RecordContext,
        id: &InstanceName,
        mut fields: BodyFields,
    ) -> Result<InstanceChange, ApiError> {
        for name in OURS {
            fields.take(name);
        }
        let owner = owner_in(&mut fields, context);
        let key = fields.change("api_key", values::given_key);
        if let Some(key) = &key
            && !matches!(context.principal, Principal::Admin)
        {
            let found = Instance::find(context, id).await?;
            let found = found.ok_or_else(|| Instance::not_found(id))?;
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
        fields.done().map(|()| change)
    }
}

/// The owner in a body: any for the admin, only themselves for a user.
fn owner_in(fields: &mut BodyFields, context: &RecordContext) -> Option<Arc<str>> {
    let owner = fields.optional("user_id", values::user_id)?;
    if !context.whose.includes(&owner) {
        fields.wrong("user_id", "only the admin can name another user");
    }
    Some(owner)
}
