//! What every store does, and does alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::{
    Adoption, BoundTool, Creation, Entry, EntryChange, EntryId, Grant, Idempotency, Instance,
    InstanceChange, InstanceName, KeyDigest, Listing, MigratedInstance, NewBinding, NewEntry,
    NewInstance, NewKey, NewTool, OwnerScope, Page, ServerRecord, StoreError, ToolChange, ToolId,
    ToolRecord,
};
use config::ServerName;

/// What a key opens, as far as memory knows.
#[derive(Clone, Debug)]
pub enum GrantLookup {
    Yes(Arc<Grant>),
    No,
    /// Memory may be behind: [`Store::ask`].
    Ask,
}

/// A change that other rooms follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreChange {
    /// The entry, its bindings or a tool of it.
    Entry(EntryId),
    /// A tool record or an old record: nothing that is being served.
    Records,
    /// Server records, by another process.
    Servers,
    /// Anything may have changed.
    Everything,
}

/// One definition that changes; `None` is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    pub name: String,
    pub found: Option<String>,
    pub new: Option<String>,
}

/// A write that was answered is durable; a read sees every answered write.
/// Something missing is no error: `None`, or `false`.
#[async_trait]
pub trait Store: Send + Sync {
    /// All server records, oldest first.
    async fn servers(&self) -> Result<Vec<ServerRecord>, StoreError>;

    /// Makes each record, or replaces the one with its id; all or none. Names
    /// are unique.
    async fn put_servers(&self, records: &[ServerRecord]) -> Result<(), StoreError>;

    async fn put_server(&self, record: &ServerRecord) -> Result<(), StoreError> {
        self.put_servers(std::slice::from_ref(record)).await
    }

    /// Whether there was one.
    async fn delete_server(&self, name: &ServerName) -> Result<bool, StoreError>;

    /// A server got another name, or is no more: its record, the tool records
    /// that stand for its tools and what entries expose of it follow, all or
    /// none. A record that the new name had before goes. Of a server that is
    /// no more the tool records stay, bound to no entry. Done twice,
    /// it changes nothing more.
    async fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> Result<(), StoreError>;

    /// The servers defined in the store itself, each as the JSON of its
    /// definition, by name; `None` where definitions stand in files alone.
    async fn definitions(&self) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        Ok(None)
    }

    /// Changes definitions, all or none. False, and nothing is changed, if
    /// one is not what was found any more.
    async fn define(&self, changes: &[DefinitionChange]) -> Result<bool, StoreError> {
        Ok(changes.is_empty())
    }

    /// Whether a create with this key is remembered: it makes nothing new.
    async fn is_repeated(&self, once: Idempotency) -> Result<bool, StoreError>;

    async fn create_tool(
        &self,
        new: NewTool,
        once: Option<Idempotency>,
    ) -> Result<Creation<ToolRecord>, StoreError>;
    async fn tool(&self, scope: &OwnerScope, id: ToolId) -> Result<Option<ToolRecord>, StoreError>;
    async fn tools(
        &self,
        scope: &OwnerScope,
        page: Page,
    ) -> Result<Listing<ToolRecord>, StoreError>;
    /// A name that another tool of one of its entries has is refused.
    async fn update_tool(
        &self,
        scope: &OwnerScope,
        id: ToolId,
        change: ToolChange,
    ) -> Result<Option<ToolRecord>, StoreError>;
    /// Its bindings go with it.
    async fn delete_tool(&self, scope: &OwnerScope, id: ToolId) -> Result<bool, StoreError>;

    /// The entry and its bindings, or neither. Bound tools must be of the
    /// entry's owner, and no two of one name.
    async fn create_entry(
        &self,
        new: NewEntry,
        once: Option<Idempotency>,
    ) -> Result<Creation<Entry>, StoreError>;
    async fn entry(&self, scope: &OwnerScope, id: EntryId) -> Result<Option<Entry>, StoreError>;
    async fn entries(&self, scope: &OwnerScope, page: Page) -> Result<Listing<Entry>, StoreError>;
    async fn update_entry(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        change: EntryChange,
    ) -> Result<Option<Entry>, StoreError>;
    /// From the answer on, the old key opens nothing.
    async fn replace_key(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        key: NewKey,
    ) -> Result<Option<Entry>, StoreError>;
    async fn delete_entry(&self, scope: &OwnerScope, id: EntryId) -> Result<bool, StoreError>;

    /// In the order they were made; `None` without such an entry.
    async fn bindings(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
    ) -> Result<Option<Vec<BoundTool>>, StoreError>;
    /// Makes each binding, or sets its status; all or none. Answers with
    /// those that were named.
    async fn bind(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        bindings: &[NewBinding],
    ) -> Result<Option<Vec<BoundTool>>, StoreError>;
    /// Sets the status of one that is there.
    async fn update_binding(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        binding: NewBinding,
    ) -> Result<Option<BoundTool>, StoreError>;
    async fn unbind(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        tool: ToolId,
    ) -> Result<bool, StoreError>;

    async fn create_instance(
        &self,
        new: NewInstance,
        once: Option<Idempotency>,
    ) -> Result<Creation<Instance>, StoreError>;
    async fn instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
    ) -> Result<Option<Instance>, StoreError>;
    async fn instances(
        &self,
        scope: &OwnerScope,
        page: Page,
    ) -> Result<Listing<Instance>, StoreError>;
    async fn update_instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
        change: InstanceChange,
    ) -> Result<Option<Instance>, StoreError>;
    async fn delete_instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
    ) -> Result<bool, StoreError>;
    /// Turns every old record into an entry with the same key and with the
    /// tools that [`Instance::registered`] says; all or none.
    async fn migrate_instances(&self) -> Result<Vec<MigratedInstance>, StoreError>;
    /// Makes an entry of each record of another application, in the same way
    /// and with the same key. What became of each, in order.
    async fn adopt(&self, records: &[Instance]) -> Result<Vec<Adoption>, StoreError>;

    /// What a key opens, from memory.
    fn grant(&self, key: &KeyDigest) -> GrantLookup;
    /// The same, from where the truth is.
    async fn ask(&self, key: &KeyDigest) -> Result<Option<Arc<Grant>>, StoreError>;
    /// The grant of an entry that is open, from memory.
    fn grant_of(&self, entry: EntryId) -> Option<Arc<Grant>>;
    /// The grants of all open entries of a name, from memory, by number.
    fn grants_named(&self, name: &str) -> Vec<Arc<Grant>>;

    /// What changes from now on. A receiver that falls behind must take it as
    /// [`StoreChange::Everything`].
    fn changes(&self) -> broadcast::Receiver<StoreChange>;

    /// What a person should know about it, for `/healthz`; empty if all is
    /// well.
    fn trouble(&self) -> Option<String> {
        None
    }
}
