//! The `Store` trait: the operations that every store implements alike.

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

/// The grant of a key, as far as memory knows.
#[derive(Clone, Debug)]
pub enum GrantLookup {
    Yes(Arc<Grant>),
    No,
    /// Memory may be out of date: call [`Store::ask`].
    Ask,
}

/// A change that other rooms follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreChange {
    /// The entry, its bindings or a tool of it.
    Entry(EntryId),
    /// A tool record or an old record: neither is being served.
    Records,
    /// Another process changed server records.
    Servers,
    /// Anything may have changed.
    Everything,
}

/// A change of one definition; `None` means that there is no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    pub name: String,
    pub found: Option<String>,
    pub new: Option<String>,
}

/// A write that returned is durable; a read sees every write that returned. A
/// missing record is not an error: the result is `None`, or `false`.
#[async_trait]
pub trait Store: Send + Sync {
    /// All server records, oldest first.
    async fn servers(&self) -> Result<Vec<ServerRecord>, StoreError>;

    /// Creates each record, or replaces the one with its id; all or none. Names
    /// are unique.
    async fn put_servers(&self, records: &[ServerRecord]) -> Result<(), StoreError>;

    async fn put_server(&self, record: &ServerRecord) -> Result<(), StoreError> {
        self.put_servers(std::slice::from_ref(record)).await
    }

    /// Returns whether the record existed.
    async fn delete_server(&self, name: &ServerName) -> Result<bool, StoreError>;

    /// Renames a server (or removes it): its record, the tool records for its
    /// tools and the parts of it that entries expose change with it, all or
    /// none. A record that already has the new name is deleted. The tool
    /// records of a removed server stay, bound to no entry. A second call
    /// changes nothing more.
    async fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> Result<(), StoreError>;

    /// The servers defined in the store itself, each as the JSON of its
    /// definition, by name; `None` where only files hold definitions.
    async fn definitions(&self) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        Ok(None)
    }

    /// Changes definitions, all or none. Returns false and changes nothing if
    /// one of them no longer equals `found`.
    async fn define(&self, changes: &[DefinitionChange]) -> Result<bool, StoreError> {
        Ok(changes.is_empty())
    }

    /// Whether a create with this key is remembered, so a repeat creates nothing.
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
    /// Fails if another tool of one of its entries has the new name.
    async fn update_tool(
        &self,
        scope: &OwnerScope,
        id: ToolId,
        change: ToolChange,
    ) -> Result<Option<ToolRecord>, StoreError>;
    /// Also deletes its bindings.
    async fn delete_tool(&self, scope: &OwnerScope, id: ToolId) -> Result<bool, StoreError>;

    /// Creates the entry and its bindings, or neither. Bound tools must belong
    /// to the entry's owner, and no two may have the same name.
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
    /// Once this returns, the old key opens nothing.
    async fn replace_key(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        key: NewKey,
    ) -> Result<Option<Entry>, StoreError>;
    async fn delete_entry(&self, scope: &OwnerScope, id: EntryId) -> Result<bool, StoreError>;

    /// In the order of creation; `None` if there is no such entry.
    async fn bindings(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
    ) -> Result<Option<Vec<BoundTool>>, StoreError>;
    /// Creates each binding, or sets its status; all or none. Returns the named
    /// bindings.
    async fn bind(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        bindings: &[NewBinding],
    ) -> Result<Option<Vec<BoundTool>>, StoreError>;
    /// Sets the status of an existing binding.
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
    /// tools that [`Instance::registered`] lists; all or none.
    async fn migrate_instances(&self) -> Result<Vec<MigratedInstance>, StoreError>;
    /// Makes an entry of each record of another application, in the same way
    /// and with the same key. Returns the outcome of each, in order.
    async fn adopt(&self, records: &[Instance]) -> Result<Vec<Adoption>, StoreError>;

    /// The grant of a key, from memory.
    fn grant(&self, key: &KeyDigest) -> GrantLookup;
    /// The grant of a key, from the files or the database.
    async fn ask(&self, key: &KeyDigest) -> Result<Option<Arc<Grant>>, StoreError>;
    /// The grant of an enabled entry, from memory.
    fn grant_of(&self, entry: EntryId) -> Option<Arc<Grant>>;
    /// The grants of all enabled entries of a name, from memory, by number.
    fn grants_named(&self, name: &str) -> Vec<Arc<Grant>>;

    /// Changes from now on. A receiver that falls behind must treat the gap as
    /// [`StoreChange::Everything`].
    fn changes(&self) -> broadcast::Receiver<StoreChange>;

    /// A problem of the store that a person should know, for `/healthz`; `None`
    /// if there is none.
    fn trouble(&self) -> Option<String> {
        None
    }
}
