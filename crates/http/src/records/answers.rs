//! Response bodies of records (SPEC K6). Only the response that issues a key
//! contains it.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::targets::{Missing, Targets};
use gateway::RouteTarget;
use store::{BoundTool, KeyRecord, Listing, Timestamp};

/// A part of a list, and the length of the whole.
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
        struct BindingFields<'a> {
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
        BindingFields {
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

/// One tool of an entry, from a binding or from its filter.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum EntryToolAnswer {
    Bound(BoundAnswer),
    Filtered(Value),
}

/// A tool that an entry's filter gives. There is no record, so the fields of a
/// record are `null`.
pub(super) fn filtered(name: &str, target: &RouteTarget) -> EntryToolAnswer {
    EntryToolAnswer::Filtered(json!({
        "tool_id": null,
        "status": true,
        "name": name,
        "description": null,
        "server": target.server,
        "tool": target.name,
        "missing": null,
        "created_at": null,
    }))
}

/// The public data of a key.
pub(super) fn key(key: &KeyRecord) -> Value {
    json!({
        "hint": key.hint,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
    })
}
