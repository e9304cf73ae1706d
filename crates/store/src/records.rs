//! Entries, the tools that can be bound to them, and the bindings: the tools
//! that an owner exposes, and the key that opens them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{KeyDigest, Timestamp};
use config::filters::Filter;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// An entry's number: `bigint` in a database, and a string where the
    /// model calls it `mcp_instance_id`.
    EntryId
);
id!(ToolId);

/// The owner of records that no user made. No user has this id.
pub const ADMIN: &str = "admin";

/// The owners whose records an operation sees; to it, no others exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerScope {
    Everyone,
    Only(Arc<str>),
}

impl OwnerScope {
    pub fn includes(&self, owner: &str) -> bool {
        match self {
            OwnerScope::Everyone => true,
            OwnerScope::Only(only) => **only == *owner,
        }
    }

    pub(super) fn user(&self) -> Option<Arc<str>> {
        match self {
            OwnerScope::Everyone => None,
            OwnerScope::Only(only) => Some(only.clone()),
        }
    }
}

/// An MCP endpoint with its own key and exactly the tools that are bound to it
/// or that its filter gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: EntryId,
    pub owner: Arc<str>,
    pub name: String,
    pub enabled: bool,
    pub key: KeyRecord,
    #[serde(default)]
    pub exposes: ExposedServers,
    /// Further tools, by patterns; a denied tool is denied to bindings too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The stored data of a key; not the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub digest: KeyDigest,
    /// Its last characters, so that a person can distinguish keys.
    pub hint: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Approximate, not accurate to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

/// The servers whose resources and prompts an entry exposes as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExposedServers {
    #[serde(default)]
    pub resources: Vec<String>,
    #[serde(default)]
    pub prompts: Vec<String>,
}

/// A tool that its owner can bind: the owner's own name for `server:tool`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRecord {
    pub id: ToolId,
    pub owner: Arc<str>,
    pub name: String,
    /// Replaces the server's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub server: String,
    pub tool: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One tool of an entry. A disabled one is neither listed nor callable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub tool: ToolId,
    pub enabled: bool,
    pub created_at: Timestamp,
}

/// A binding together with its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTool {
    pub binding: Binding,
    /// Shared by all entries that the tool is bound to.
    pub tool: Arc<ToolRecord>,
}

/// A record of the API before entries. Its further fields are kept unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub id: EntryId,
    pub owner: Arc<str>,
    pub name: String,
    pub enabled: bool,
    pub key: KeyRecord,
    #[serde(default)]
    pub extra: serde_json::Map<String, serde_json::Value>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A new key, in the form that the store keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub digest: KeyDigest,
    pub hint: String,
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    pub(super) fn made(self, at: Timestamp) -> KeyRecord {
        KeyRecord {
            digest: self.digest,
            hint: self.hint,
            created_at: at,
            expires_at: self.expires_at,
            last_used_at: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct NewEntry {
    pub owner: Arc<str>,
    pub name: String,
    pub enabled: bool,
    pub key: NewKey,
    pub exposes: ExposedServers,
    pub filter: Option<Filter>,
    /// Created together with the entry, or neither is.
    pub bindings: Vec<NewBinding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewBinding {
    pub tool: ToolId,
    pub enabled: bool,
}

#[derive(Clone, Debug)]
pub struct NewTool {
    pub owner: Arc<str>,
    pub name: String,
    pub description: Option<String>,
    pub server: String,
    pub tool: String,
}

#[derive(Clone, Debug)]
pub struct NewInstance {
    pub owner: Arc<str>,
    pub name: String,
    pub enabled: bool,
    pub key: NewKey,
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// The fields to change; the others stay. An inner `None` removes the value.
#[derive(Clone, Debug, Default)]
pub struct EntryChange {
    pub name: Option<String>,
    pub enabled: Option<bool>,
    pub exposes: Option<ExposedServers>,
    pub filter: Option<Option<Filter>>,
    pub expires_at: Option<Option<Timestamp>>,
}

#[derive(Clone, Debug, Default)]
pub struct ToolChange {
    pub name: Option<String>,
    pub description: Option<Option<String>>,
    pub server: Option<String>,
    pub tool: Option<String>,
}

/// A client's name for an old record: its key or, if no key matches, its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceName {
    pub key: KeyDigest,
    pub id: Option<EntryId>,
}

impl From<KeyDigest> for InstanceName {
    fn from(key: KeyDigest) -> InstanceName {
        InstanceName { key, id: None }
    }
}

#[derive(Clone, Debug, Default)]
pub struct InstanceChange {
    pub owner: Option<Arc<str>>,
    pub key: Option<NewKey>,
    pub name: Option<String>,
    pub enabled: Option<bool>,
    /// The members to change; the others stay.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// The `Idempotency-Key` of a create. A repeated request with the same body
/// gets the record that the first one created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Digest of the key that the client sent, its owner and the route.
    pub key: [u8; 32],
    /// Digest of the request body.
    pub body: [u8; 32],
}

/// How long a create is remembered.
pub(crate) const ONCE_MILLIS: u64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation<T> {
    New(T),
    /// An earlier request created it. `None`: and it has been deleted since.
    Earlier(Option<T>),
}

/// A part of a list, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub skip: u64,
    pub limit: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    pub items: Vec<T>,
    /// The number of records on all pages.
    pub total: u64,
}

/// An old record that became an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedInstance {
    pub instance: EntryId,
    pub entry: EntryId,
    pub name: String,
    /// The number of its tools that could be bound.
    pub tools: usize,
}

/// The outcome of adopting a record of another application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    Made(MigratedInstance),
    /// This entry already has the key: the record was adopted before.
    Known(EntryId),
    /// The record cannot become an entry, with the reason.
    Refused(String),
}

/// The record that has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyHolder {
    Entry { id: EntryId, owner: Arc<str> },
    Instance(EntryId),
}

impl KeyHolder {
    /// The outcome for a record of another application with the same key.
    pub fn outcome(&self, record: &Instance) -> Adoption {
        match self {
            KeyHolder::Entry { id, owner } if *owner == record.owner => Adoption::Known(*id),
            KeyHolder::Entry { id, owner } => {
                Adoption::Refused(format!("its key is that of entry {id}, of user {owner}"))
            }
            KeyHolder::Instance(id) => Adoption::Refused(format!(
                "its key is that of the old record {id} in Portway: run portway migrate first"
            )),
        }
    }
}
