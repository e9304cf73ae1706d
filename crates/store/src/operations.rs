//! The operations of a store, once for files and for a database: each names the
//! records that it reads, and the rule that it runs on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::backend::{Backend, RecordKind, RecordSelection, Store};
use super::records::*;
use super::{
    DefinitionChange, Grant, GrantLookup, KeyDigest, ServerRecord, StoreChange, StoreResult,
    Timestamp, rules,
};
use config::ServerName;

/// A write that returned is durable; a read sees every write that returned. A
/// missing record is not an error: the result is `None`, or `false`.
impl Store {
    /// All server records, oldest first.
    pub async fn servers(&self) -> StoreResult<Vec<ServerRecord>> {
        let needs = RecordSelection {
            all_servers: true,
            ..RecordSelection::default()
        };
        self.read("list the servers", needs, |state| {
            state.servers.values().cloned().collect()
        })
        .await
    }

    /// Creates each record, or replaces the one with its id; all or none. Names
    /// are unique.
    pub async fn put_servers(&self, records: &[ServerRecord]) -> StoreResult<()> {
        let needs = RecordSelection::of_servers(records.iter().map(|record| record.name.clone()));
        let records = records.to_vec();
        self.change("save the server", needs, None, move |state| {
            rules::put_servers(state, records.clone())
        })
        .await
    }

    pub async fn put_server(&self, record: &ServerRecord) -> StoreResult<()> {
        self.put_servers(std::slice::from_ref(record)).await
    }

    /// Returns whether the record existed.
    pub async fn delete_server(&self, name: &ServerName) -> StoreResult<bool> {
        let name = name.clone();
        let needs = RecordSelection::of_servers(std::iter::once(name.clone()));
        self.change("remove the server", needs, None, move |state| {
            rules::delete_server(state, &name)
        })
        .await
    }

    /// Renames a server (or removes it): its record, the tool records for its
    /// tools and the parts of it that entries expose change with it, all or
    /// none. A record that already has the new name is deleted. The tool
    /// records of a removed server stay, bound to no entry. A second call
    /// changes nothing more.
    pub async fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> StoreResult<()> {
        match &self.backend {
            Backend::Files(files) => {
                let (from, to) = (from.clone(), to.cloned());
                let rule = move |state: &_| rules::server_moved(state, &from, to.as_ref());
                files.write("move the server's records", rule).await
            }
            Backend::Database(database) => database.server_moved(from, to).await,
        }
    }

    /// The servers defined in the store itself, each as the JSON of its
    /// definition, by name; `None` where only files hold definitions.
    pub async fn definitions(&self) -> StoreResult<Option<BTreeMap<String, String>>> {
        match &self.backend {
            Backend::Files(_) => Ok(None),
            Backend::Database(database) => database.definitions().await.map(Some),
        }
    }

    /// Changes definitions, all or none. Returns false and changes nothing if
    /// one of them no longer equals `found`.
    pub async fn define(&self, changes: &[DefinitionChange]) -> StoreResult<bool> {
        match &self.backend {
            Backend::Files(_) => Ok(changes.is_empty()),
            Backend::Database(database) => database.define(changes).await,
        }
    }

    /// Whether a create with this key is remembered, so a repeat creates nothing.
    pub async fn is_repeated(&self, request: Idempotency) -> StoreResult<bool> {
        let needs = RecordSelection {
            request: Some(request),
            ..RecordSelection::default()
        };
        self.read("read the Idempotency-Key", needs, move |state| {
            let made = state.once.get(&KeyDigest::from_bytes(request.key));
            made.is_some_and(|made| made.is_fresh(Timestamp::now()))
        })
        .await
    }

    pub async fn create_tool(
        &self,
        new: NewTool,
        request: Option<Idempotency>,
    ) -> StoreResult<Creation<ToolRecord>> {
        let needs = RecordSelection::creating(RecordKind::Tool, request);
        let user = Some(new.owner.clone());
        self.change("create the tool", needs, user, move |state| {
            rules::create_tool(state, new.clone(), request)
        })
        .await
    }

    pub async fn tool(&self, scope: &OwnerScope, id: ToolId) -> StoreResult<Option<ToolRecord>> {
        let needs = RecordSelection {
            tools: vec![id],
            ..RecordSelection::default()
        };
        let scope = scope.clone();
        self.read("read the tool", needs, move |state| {
            state.tool(&scope, id).map(|tool| ToolRecord::clone(tool))
        })
        .await
    }

    pub async fn tools(&self, scope: &OwnerScope, page: Page) -> StoreResult<Listing<ToolRecord>> {
        self.list("list the tools", scope, page).await
    }

    /// Fails if another tool of one of its entries has the new name.
    pub async fn update_tool(
        &self,
        scope: &OwnerScope,
        id: ToolId,
        change: ToolChange,
    ) -> StoreResult<Option<ToolRecord>> {
        let needs = RecordSelection::of_tool(scope, id, change.name.as_ref());
        let scope = scope.clone();
        self.change("change the tool", needs, scope.user(), move |state| {
            rules::update_tool(state, &scope, id, change.clone())
        })
        .await
    }

    /// Also deletes its bindings.
    pub async fn delete_tool(&self, scope: &OwnerScope, id: ToolId) -> StoreResult<bool> {
        let needs = RecordSelection::of_tool(scope, id, None);
        let scope = scope.clone();
        self.change("delete the tool", needs, None, move |state| {
            rules::delete_tool(state, &scope, id)
        })
        .await
    }

    /// Creates the entry and its bindings, or neither. Bound tools must belong
    /// to the entry's owner, and no two may have the same name.
    pub async fn create_entry(
        &self,
        new: NewEntry,
        request: Option<Idempotency>,
    ) -> StoreResult<Creation<Entry>> {
        let needs = RecordSelection {
            tools: new.bindings.iter().map(|one| one.tool).collect(),
            ..RecordSelection::creating(RecordKind::Entry, request)
        };
        let user = Some(new.owner.clone());
        let created = self.change("create MCP instance", needs, user, move |state| {
            rules::create_entry(state, new.clone(), request)
        });
        Ok(match created.await? {
            Creation::Earlier(Some(entry)) => Creation::Earlier(Some(self.with_last_use(entry))),
            other => other,
        })
    }

    pub async fn entry(&self, scope: &OwnerScope, id: EntryId) -> StoreResult<Option<Entry>> {
        let needs = RecordSelection::of_entry(scope, id);
        let scope = scope.clone();
        let found = self.read("read MCP instance", needs, move |state| {
            state.held(&scope, id).map(|held| held.entry.clone())
        });
        Ok(found.await?.map(|entry| self.with_last_use(entry)))
    }

    pub async fn entries(&self, scope: &OwnerScope, page: Page) -> StoreResult<Listing<Entry>> {
        let listing = self
            .list::<Entry>("list MCP instances", scope, page)
            .await?;
        let items = listing.items.into_iter();
        Ok(Listing {
            items: items.map(|entry| self.with_last_use(entry)).collect(),
            total: listing.total,
        })
    }

    pub async fn update_entry(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        change: EntryChange,
    ) -> StoreResult<Option<Entry>> {
        let needs = RecordSelection::of_entry(scope, id);
        let used = self.last_use(id);
        let scope = scope.clone();
        self.change("change MCP instance", needs, scope.user(), move |state| {
            rules::update_entry(state, &scope, id, change.clone(), used)
        })
        .await
    }

    /// Once this returns, the old key opens nothing.
    pub async fn replace_key(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        key: NewKey,
    ) -> StoreResult<Option<Entry>> {
        let needs = RecordSelection {
            key: Some(key.digest),
            ..RecordSelection::of_entry(scope, id)
        };
        let scope = scope.clone();
        self.change("rotate the key", needs, None, move |state| {
            rules::replace_key(state, &scope, id, key.clone())
        })
        .await
    }

    pub async fn delete_entry(&self, scope: &OwnerScope, id: EntryId) -> StoreResult<bool> {
        let needs = RecordSelection::of_entry(scope, id);
        let scope = scope.clone();
        self.change("delete MCP instance", needs, None, move |state| {
            rules::delete_entry(state, &scope, id)
        })
        .await
    }

    /// In the order of creation; `None` if there is no such entry.
    pub async fn bindings(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
    ) -> StoreResult<Option<Vec<BoundTool>>> {
        let needs = RecordSelection::with_bindings(scope, entry, &[]);
        let scope = scope.clone();
        self.read("list the bindings", needs, move |state| {
            state.held(&scope, entry).map(|held| state.bound(held))
        })
        .await
    }

    /// Creates each binding, or sets its status; all or none. Returns the named
    /// bindings.
    pub async fn bind(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        bindings: &[NewBinding],
    ) -> StoreResult<Option<Vec<BoundTool>>> {
        let needs = RecordSelection::with_bindings(scope, entry, bindings);
        let (scope, bindings) = (scope.clone(), bindings.to_vec());
        self.change("bind the tools", needs, scope.user(), move |state| {
            rules::bind(state, &scope, entry, &bindings)
        })
        .await
    }

    /// Sets the status of an existing binding.
    pub async fn update_binding(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        binding: NewBinding,
    ) -> StoreResult<Option<BoundTool>> {
        let needs = RecordSelection::with_bindings(scope, entry, &[]);
        let scope = scope.clone();
        self.change("change the binding", needs, None, move |state| {
            rules::update_binding(state, &scope, entry, binding)
        })
        .await
    }

    pub async fn unbind(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        tool: ToolId,
    ) -> StoreResult<bool> {
        let needs = RecordSelection::with_bindings(scope, entry, &[]);
        let scope = scope.clone();
        self.change("remove the binding", needs, None, move |state| {
            rules::unbind(state, &scope, entry, tool)
        })
        .await
    }

    pub async fn create_instance(
        &self,
        new: NewInstance,
        request: Option<Idempotency>,
    ) -> StoreResult<Creation<Instance>> {
        let needs = RecordSelection {
            key: Some(new.key.digest),
            ..RecordSelection::creating(RecordKind::Instance, request)
        };
        let user = Some(new.owner.clone());
        self.change("create MCP instance", needs, user, move |state| {
            rules::create_instance(state, new.clone(), request)
        })
        .await
    }

    pub async fn instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
    ) -> StoreResult<Option<Instance>> {
        let (scope, named) = (scope.clone(), *named);
        self.read(
            "read MCP instance",
            RecordSelection::of_instance(&named),
            move |state| {
                let found = state.instance(&scope, &named);
                found.map(|instance| Instance::clone(instance))
            },
        )
        .await
    }

    pub async fn instances(
        &self,
        scope: &OwnerScope,
        page: Page,
    ) -> StoreResult<Listing<Instance>> {
        self.list("list MCP instances", scope, page).await
    }

    pub async fn update_instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
        change: InstanceChange,
    ) -> StoreResult<Option<Instance>> {
        let needs = RecordSelection {
            key: change.key.as_ref().map(|key| key.digest),
            ..RecordSelection::of_instance(named)
        };
        let (scope, named) = (scope.clone(), *named);
        self.change("change MCP instance", needs, scope.user(), move |state| {
            rules::update_instance(state, &scope, &named, change.clone())
        })
        .await
    }

    pub async fn delete_instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
    ) -> StoreResult<bool> {
        let (scope, named) = (scope.clone(), *named);
        let needs = RecordSelection::of_instance(&named);
        self.change("delete MCP instance", needs, None, move |state| {
            rules::delete_instance(state, &scope, &named)
        })
        .await
    }

    /// Turns every old record into an entry with the same key and with the
    /// tools that [`Instance::registered`] lists; all or none.
    pub async fn migrate_instances(&self) -> StoreResult<Vec<MigratedInstance>> {
        match &self.backend {
            Backend::Files(files) => files.write("migrate MCP instances", rules::migrate).await,
            Backend::Database(database) => database.migrate_instances().await,
        }
    }

    /// Makes an entry of each record of another application, in the same way
    /// and with the same key. Returns the outcome of each, in order.
    pub async fn adopt(&self, records: &[Instance]) -> StoreResult<Vec<Adoption>> {
        match &self.backend {
            Backend::Files(files) => {
                let records = records.to_vec();
                let rule = move |state: &_| rules::adopt(state, &records);
                files.write("migrate records", rule).await
            }
            Backend::Database(database) => database.adopt(records).await,
        }
    }

    /// The grant of a key, from memory.
    pub fn grant(&self, key: &KeyDigest) -> GrantLookup {
        match &self.backend {
            Backend::Files(files) => files
                .grants
                .find(key)
                .map_or(GrantLookup::No, GrantLookup::Yes),
            Backend::Database(database) => database.grant(key),
        }
    }

    /// The grant of a key, from the files or the database.
    pub async fn ask(&self, key: &KeyDigest) -> StoreResult<Option<Arc<Grant>>> {
        match &self.backend {
            Backend::Files(files) => Ok(files.grants.find(key)),
            Backend::Database(database) => database.ask(key).await,
        }
    }

    /// The grant of an enabled entry, from memory.
    pub fn grant_of(&self, entry: EntryId) -> Option<Arc<Grant>> {
        self.grants().of_entry(entry)
    }

    /// The grants of all enabled entries of a name, from memory, by number.
    pub fn grants_named(&self, name: &str) -> Vec<Arc<Grant>> {
        self.grants().named(name)
    }

    /// Changes from now on. A receiver that falls behind must treat the gap as
    /// [`StoreChange::Everything`].
    pub fn changes(&self) -> broadcast::Receiver<StoreChange> {
        match &self.backend {
            Backend::Files(files) => files.changes.subscribe(),
            Backend::Database(database) => database.mirror.changes.subscribe(),
        }
    }

    /// A problem of the store that a person should know, for `/healthz`; `None`
    /// if there is none.
    pub fn trouble(&self) -> Option<String> {
        match &self.backend {
            Backend::Files(files) => files.trouble.lock().clone(),
            Backend::Database(database) => database.trouble(),
        }
    }
}
