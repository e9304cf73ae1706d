//! The shapes of the answers (SPEC K6). A key is in none but the answer that
//! gives it out.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::ENDPOINT;
use super::targets::{Missing, Targets};
use crate::error::ApiError;
use config::filters::Filter;
use gateway::RouteTarget;
use store::{
    ApiKey, BoundTool, Creation, Entry, ExposedServers, Instance, KeyRecord, Listing, Timestamp,
    ToolRecord,
};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A part of a list, and how long the whole is.
#[derive(Serialize)]
pub(crate) struct Items<T> {
    items: Vec<T>,
    total: u64,
}

impl<T> Items<T> {
    pub(super) fn of<R>(listed: Listing<R>, shown: impl FnMut(R) -> T) -> Items<T> {
        Items {
            items: listed.items.into_iter().map(shown).collect(),
            total: listed.total,
        }
    }

    pub(super) fn all<R>(all: impl IntoIterator<Item = R>, shown: impl FnMut(R) -> T) -> Items<T> {
        let items: Vec<T> = all.into_iter().map(shown).collect();
        let total = items.len() as u64;
        Items { items, total }
    }
}

#[derive(Serialize)]
pub(crate) struct ToolAnswer {
    pub id: i64,
    name: String,
    description: Option<String>,
    server: String,
    tool: String,
    /// Why the tool cannot be had, where that is known.
    missing: Option<Missing>,
    user_id: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl ToolAnswer {
    pub(super) fn new(tool: ToolRecord, targets: &mut Targets) -> ToolAnswer {
        ToolAnswer {
            id: tool.id.0,
            missing: targets.missing(&tool.owner, &tool.server, &tool.tool),
            name: tool.name,
            description: tool.description,
            server: tool.server,
            tool: tool.tool,
            user_id: tool.owner.as_ref().to_owned(),
            created_at: tool.created_at,
            updated_at: tool.updated_at,
        }
    }
}

/// One tool of an entry. Its text is not copied: an entry may have a thousand.
pub(crate) struct BoundAnswer {
    bound: BoundTool,
    missing: Option<Missing>,
}

impl BoundAnswer {
    pub(super) fn new(bound: BoundTool, targets: &mut Targets) -> BoundAnswer {
        let tool = &bound.tool;
        BoundAnswer {
            missing: targets.missing(&tool.owner, &tool.server, &tool.tool),
            bound,
        }
    }
}

impl Serialize for BoundAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            tool_id: i64,
            status: bool,
            name: &'a str,
            description: Option<&'a str>,
            server: &'a str,
            tool: &'a str,
            missing: Option<&'a Missing>,
            created_at: Timestamp,
        }
        let BoundTool { binding, tool } = &self.bound;
        Fields {
            missing: self.missing.as_ref(),
            tool_id: tool.id.0,
            status: binding.enabled,
            name: &tool.name,
            description: tool.description.as_deref(),
            server: &tool.server,
            tool: &tool.tool,
            created_at: binding.created_at,
        }
        .serialize(serializer)
    }
}

/// One tool that an entry has, by a binding or by its filter.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum EntryToolAnswer {
    Bound(BoundAnswer),
    Filtered(FilteredAnswer),
}

#[derive(Serialize)]
pub(crate) struct FilteredAnswer {
    /// No record: `null`, as what else a record has.
    tool_id: Option<i64>,
    status: bool,
    name: String,
    description: Option<String>,
    server: Arc<str>,
    tool: String,
    missing: Option<Missing>,
    created_at: Option<Timestamp>,
}

impl FilteredAnswer {
    pub(super) fn new(name: &str, target: &RouteTarget) -> FilteredAnswer {
        FilteredAnswer {
            tool_id: None,
            status: true,
            name: name.to_owned(),
            description: None,
            server: target.server.clone(),
            tool: target.name.clone(),
            missing: None,
            created_at: None,
        }
    }
}

/// What may be told of a key.
#[derive(Serialize)]
struct KeyAnswer {
    hint: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
}

impl From<KeyRecord> for KeyAnswer {
    fn from(key: KeyRecord) -> KeyAnswer {
        KeyAnswer {
            hint: key.hint,
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct EntryAnswer {
    pub id: i64,
    mcp_instance_id: String,
    name: String,
    user_id: String,
    status: bool,
    exposes: ExposedServers,
    filter: Option<Filter>,
    key: KeyAnswer,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(flatten)]
    given: Option<GivenKey>,
}

/// A key, and where it opens something; for the one answer that gives it out.
#[derive(Serialize)]
struct GivenKey {
    api_key: String,
    url: String,
}

impl From<Entry> for EntryAnswer {
    fn from(entry: Entry) -> EntryAnswer {
        EntryAnswer {
            id: entry.id.0,
            mcp_instance_id: entry.id.to_string(),
            name: entry.name,
            user_id: entry.owner.as_ref().to_owned(),
            status: entry.enabled,
            exposes: entry.exposes,
            filter: entry.filter,
            key: entry.key.into(),
            created_at: entry.created_at,
            updated_at: entry.updated_at,
            given: None,
        }
    }
}

impl EntryAnswer {
    pub(super) fn with_key(self, key: Option<&ApiKey>) -> EntryAnswer {
        let given = key.map(ApiKey::expose).map(|key| GivenKey {
            api_key: key.to_owned(),
            url: format!("{ENDPOINT}{key}"),
        });
        EntryAnswer { given, ..self }
    }
}

/// An old record: `status` as a number, and whatever else it came with.
#[derive(Serialize)]
pub(crate) struct InstanceAnswer {
    id: i64,
    mcp_instance_id: String,
    name: String,
    user_id: String,
    status: u8,
    key: KeyAnswer,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// The members that are ours; a client cannot bring one of that name.
pub(crate) const OURS: [&str; 5] = ["id", "mcp_instance_id", "key", "created_at", "updated_at"];

impl From<Instance> for InstanceAnswer {
    fn from(instance: Instance) -> InstanceAnswer {
        InstanceAnswer {
            id: instance.id.0,
            mcp_instance_id: instance.id.to_string(),
            name: instance.name,
            user_id: instance.owner.as_ref().to_owned(),
            status: instance.enabled.into(),
            key: instance.key.into(),
            created_at: instance.created_at,
            updated_at: instance.updated_at,
            api_key: None,
            extra: instance.extra,
        }
    }
}

impl InstanceAnswer {
    pub(super) fn with_key(self, key: Option<&ApiKey>) -> InstanceAnswer {
        let api_key = key.map(|key| key.expose().to_owned());
        InstanceAnswer { api_key, ..self }
    }
}

/// What a create came to: the record, and whether an earlier request made it.
pub(super) fn made<T>(created: Creation<T>) -> Result<(T, bool), ApiError> {
    match created {
        Creation::New(record) => Ok((record, false)),
        Creation::Earlier(Some(record)) => Ok((record, true)),
        Creation::Earlier(None) => Err(ApiError::not_found(
            "what this Idempotency-Key made has been deleted since",
        )),
    }
}

/// 201. `place`: where the record can be had, unless that would show a key.
pub(super) fn created(answer: impl Serialize, place: Option<String>, replayed: bool) -> Response {
    let mut response = (StatusCode::CREATED, Json(answer)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(Ok(place)) = place.map(HeaderValue::try_from) {
        headers.insert(header::LOCATION, place);
    }
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}
