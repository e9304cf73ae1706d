//! The differences between files and a database. The operations of [`Store`]
//! are in `operations`, once for both; the rules of records are in `rules`.
//!
//! [`Store`]: super::Store

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::postgres::RecordTable;
use super::records::*;
use super::rules::Ruling;
use super::state::StoreState;
use super::{
    DefinitionChange, Grant, GrantDirectory, GrantLookup, KeyDigest, StoreChange, StoreError,
};
use config::ServerName;

/// The records that an operation reads. Files have all in memory; a database
/// loads these into a [`StoreState`], and locks them if they are to change.
#[derive(Clone, Default)]
pub(super) struct RecordSelection {
    /// The owner of the entry or the tool; `None` for any.
    pub owner: Option<Arc<str>>,
    pub all_servers: bool,
    pub servers: Vec<ServerName>,
    pub entry: Option<EntryId>,
    /// Also loads the bindings of that entry, and their tools.
    pub bindings: bool,
    pub tools: Vec<ToolId>,
    /// A tool that changes, with its new name: loads the entries that it is
    /// bound to, and of their bindings those of the tool and of that name.
    pub bound_tool: Option<(ToolId, Option<String>)>,
    pub instance: Option<InstanceName>,
    /// The entry that has this key.
    pub key: Option<KeyDigest>,
    /// The record that an earlier create with this `Idempotency-Key` made.
    pub request: Option<Idempotency>,
    pub create: Option<(RecordKind, Option<Idempotency>)>,
}

/// The kind of a record to create, which needs an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Tool,
    Entry,
    Instance,
}

/// A record that is listed page by page.
pub(super) trait PagedRecord: RecordTable + Clone + 'static {
    /// Oldest first.
    fn all(state: &StoreState) -> impl Iterator<Item = &Self>;
    fn owner(&self) -> &str;
}

impl PagedRecord for ToolRecord {
    fn all(state: &StoreState) -> impl Iterator<Item = &ToolRecord> {
        state.tools.values().map(|tool| &**tool)
    }

    fn owner(&self) -> &str {
        &self.owner
    }
}

impl PagedRecord for Entry {
    fn all(state: &StoreState) -> impl Iterator<Item = &Entry> {
        state.entries.values().map(|held| &held.entry)
    }

    fn owner(&self) -> &str {
        &self.owner
    }
}

impl PagedRecord for Instance {
    fn all(state: &StoreState) -> impl Iterator<Item = &Instance> {
        state.instances.values().map(|instance| &**instance)
    }

    fn owner(&self) -> &str {
        &self.owner
    }
}

pub(super) type StoreResult<T> = Result<T, StoreError>;

pub(super) trait Backend: Send + Sync {
    fn grants(&self) -> &GrantDirectory;

    /// Reads from a state that has at least the selected records.
    fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: RecordSelection,
        read: impl Fn(&StoreState) -> T + Send + Sync + 'static,
    ) -> impl Future<Output = StoreResult<T>> + Send;

    /// Runs a rule and saves its steps, all or none. With a user, the records
    /// of that user must stay within the limits. Once this returns, no call
    /// uses access that the change removed. The rule may run again.
    fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: RecordSelection,
        user: Option<Arc<str>>,
        rule: impl Fn(&StoreState) -> Ruling<T> + Send + Sync + 'static,
    ) -> impl Future<Output = StoreResult<T>> + Send;

    fn list<R: PagedRecord>(
        &self,
        operation: &'static str,
        scope: &OwnerScope,
        page: Page,
    ) -> impl Future<Output = StoreResult<Listing<R>>> + Send;

    fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    fn definitions(
        &self,
    ) -> impl Future<Output = StoreResult<Option<BTreeMap<String, String>>>> + Send {
        std::future::ready(Ok(None))
    }

    fn define(
        &self,
        changes: &[DefinitionChange],
    ) -> impl Future<Output = StoreResult<bool>> + Send {
        std::future::ready(Ok(changes.is_empty()))
    }

    fn migrate_instances(&self) -> impl Future<Output = StoreResult<Vec<MigratedInstance>>> + Send;

    fn adopt(
        &self,
        records: &[Instance],
    ) -> impl Future<Output = StoreResult<Vec<Adoption>>> + Send;

    fn grant(&self, key: &KeyDigest) -> GrantLookup;

    fn ask(&self, key: &KeyDigest) -> impl Future<Output = StoreResult<Option<Arc<Grant>>>> + Send;

    fn changes(&self) -> broadcast::Receiver<StoreChange>;

    fn trouble(&self) -> Option<String>;

    /// Adds the time of the last use, which memory has first.
    fn with_last_use(&self, mut entry: Entry) -> Entry {
        entry.key.last_used_at = self.last_use(entry.id).max(entry.key.last_used_at);
        entry
    }

    fn last_use(&self, entry: EntryId) -> Option<super::Timestamp> {
        self.grants().of_entry(entry)?.last_used()
    }
}
