//! The state of a store in files, and the steps that change it. A step holds
//! the new value, not the operation, so that applying it twice does no harm.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::records::{
    Binding, BoundTool, Entry, EntryId, Instance, InstanceName, KeyHolder, ONCE_MILLIS, OwnerScope,
    ToolId, ToolRecord,
};
use super::{Grant, KeyDigest, ServerRecord, Timestamp};

/// Collections are shared until written to, so that a copy costs only the parts
/// that change.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct StoreState {
    #[serde(default)]
    pub servers: Arc<IndexMap<Uuid, ServerRecord>>,
    #[serde(default)]
    pub tools: Arc<BTreeMap<ToolId, Arc<ToolRecord>>>,
    #[serde(default)]
    pub entries: Arc<BTreeMap<EntryId, Arc<BoundEntry>>>,
    #[serde(default)]
    pub instances: Arc<BTreeMap<EntryId, Arc<Instance>>>,
    /// Creates that a client may repeat, by the key sent with them.
    #[serde(default)]
    pub once: Arc<BTreeMap<KeyDigest, CreateOutcome>>,
    /// The last number given to each kind of record; no number is used twice.
    #[serde(default)]
    pub last: LastIds,
    /// Numbers that a database has reserved for new tools.
    #[serde(skip)]
    pub new_tools: Vec<ToolId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastIds {
    pub tool: i64,
    pub entry: i64,
    pub instance: i64,
}

/// An entry and its bindings, in the order of creation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BoundEntry {
    pub entry: Entry,
    pub bindings: Vec<Binding>,
}

/// The outcome of a create.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CreateOutcome {
    pub body: KeyDigest,
    pub id: i64,
    pub at: Timestamp,
}

impl CreateOutcome {
    /// Whether the create is still remembered.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now.as_millis() < self.at.as_millis() + ONCE_MILLIS
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Server(ServerRecord),
    NoServer(Uuid),
    Tool(Arc<ToolRecord>),
    NoTool(ToolId),
    Entry(Arc<BoundEntry>),
    NoEntry(EntryId),
    Instance(Arc<Instance>),
    NoInstance(EntryId),
    Once(KeyDigest, CreateOutcome),
    NoOnce(KeyDigest),
    Used(Vec<(EntryId, Timestamp)>),
}

impl StoreState {
    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Server(record) => {
                Arc::make_mut(&mut self.servers).insert(record.id, record.clone());
            }
            Step::NoServer(id) => {
                Arc::make_mut(&mut self.servers).shift_remove(id);
            }
            Step::Tool(tool) => {
                self.last.tool = self.last.tool.max(tool.id.0);
                Arc::make_mut(&mut self.tools).insert(tool.id, tool.clone());
            }
            Step::NoTool(id) => {
                Arc::make_mut(&mut self.tools).remove(id);
            }
            Step::Entry(held) => {
                let id = held.entry.id;
                self.last.entry = self.last.entry.max(id.0);
                Arc::make_mut(&mut self.entries).insert(id, held.clone());
            }
            Step::NoEntry(id) => {
                Arc::make_mut(&mut self.entries).remove(id);
            }
            Step::Instance(instance) => {
                self.last.instance = self.last.instance.max(instance.id.0);
                Arc::make_mut(&mut self.instances).insert(instance.id, instance.clone());
            }
            Step::NoInstance(id) => {
                Arc::make_mut(&mut self.instances).remove(id);
            }
            Step::Once(key, made) => {
                Arc::make_mut(&mut self.once).insert(*key, *made);
            }
            Step::NoOnce(key) => {
                Arc::make_mut(&mut self.once).remove(key);
            }
            Step::Used(used) => {
                let entries = Arc::make_mut(&mut self.entries);
                for (id, at) in used {
                    if let Some(held) = entries.get_mut(id) {
                        Arc::make_mut(held).entry.key.last_used_at = Some(*at);
                    }
                }
            }
        }
    }

    /// The number of the `nth` tool that a change creates.
    pub(crate) fn new_tool(&self, nth: usize) -> ToolId {
        let next = self.last.tool.saturating_add_unsigned(nth as u64 + 1);
        self.new_tools.get(nth).copied().unwrap_or(ToolId(next))
    }

    /// The entries whose grants a step changes.
    pub(crate) fn touched(&self, step: &Step) -> Vec<EntryId> {
        match step {
            Step::Entry(held) => vec![held.entry.id],
            Step::NoEntry(id) => vec![*id],
            Step::Tool(tool) => self.bound_to(tool.id).map(|held| held.entry.id).collect(),
            _ => Vec::new(),
        }
    }

    /// The entries that a tool is bound to.
    pub(crate) fn bound_to(&self, tool: ToolId) -> impl Iterator<Item = &Arc<BoundEntry>> {
        let binds = move |held: &&Arc<BoundEntry>| held.bindings.iter().any(|one| one.tool == tool);
        self.entries.values().filter(binds)
    }

    pub(crate) fn held(&self, scope: &OwnerScope, id: EntryId) -> Option<&Arc<BoundEntry>> {
        let held = self.entries.get(&id)?;
        scope.includes(&held.entry.owner).then_some(held)
    }

    pub(crate) fn tool(&self, scope: &OwnerScope, id: ToolId) -> Option<&Arc<ToolRecord>> {
        let tool = self.tools.get(&id)?;
        scope.includes(&tool.owner).then_some(tool)
    }

    /// A key takes precedence over an id.
    pub(crate) fn instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
    ) -> Option<&Arc<Instance>> {
        let mut all = self.instances.values();
        let by_key = all.find(|instance| instance.key.digest.matches(&named.key));
        let by_id = || self.instances.get(&named.id?);
        let found = by_key.or_else(by_id)?;
        scope.includes(&found.owner).then_some(found)
    }

    pub(crate) fn holder(&self, key: &KeyDigest) -> Option<KeyHolder> {
        let mut entries = self.entries.values();
        if let Some(held) = entries.find(|held| held.entry.key.digest.matches(key)) {
            return Some(KeyHolder::Entry {
                id: held.entry.id,
                owner: held.entry.owner.clone(),
            });
        }
        let mut instances = self.instances.values();
        let old = instances.find(|old| old.key.digest.matches(key))?;
        Some(KeyHolder::Instance(old.id))
    }

    /// A binding always has its tool: one step removes both.
    pub(crate) fn bound(&self, held: &BoundEntry) -> Vec<BoundTool> {
        let bound = |binding: &Binding| {
            let tool = self.tools.get(&binding.tool)?;
            Some(BoundTool {
                binding: binding.clone(),
                tool: tool.clone(),
            })
        };
        held.bindings.iter().filter_map(bound).collect()
    }

    pub(crate) fn grant(&self, id: EntryId) -> Option<Grant> {
        let held = self.entries.get(&id)?;
        let bound = self.bound(held).into_iter();
        Grant::new(
            &held.entry,
            bound.map(|one| (one.tool, one.binding.enabled)),
        )
    }
}
