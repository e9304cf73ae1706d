//! The operations of a store, once for files and for a database: each names the
//! records that it reads, and the rule that it runs on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::backend::{Backend, RecordKind, RecordSelection, StoreResult};
use super::records::*;
use super::{
    DefinitionChange, Grant, GrantLookup, KeyDigest, ServerRecord, Store, StoreChange, Timestamp,
    rules,
};
use config::ServerName;

/// The selection of a create.
fn creating(kind: RecordKind, request: Option<Idempotency>) -> RecordSelection {
    RecordSelection {
        create: Some((kind, request)),
        ..RecordSelection::default()
    }
}

/// Selects an entry of one owner.
fn of_entry(scope: &OwnerScope, id: EntryId) -> RecordSelection {
    RecordSelection {
        owner: scope.user(),
        entry: Some(id),
        ..RecordSelection::default()
    }
}

fn with_bindings(scope: &OwnerScope, id: EntryId, new: &[NewBinding]) -> RecordSelection {
    RecordSelection {
        bindings: true,
        tools: new.iter().map(|one| one.tool).collect(),
        ..of_entry(scope, id)
    }
}

/// Selects a tool of one owner, which may get another name.
fn of_tool(scope: &OwnerScope, id: ToolId, name: Option<&String>) -> RecordSelection {
    RecordSelection {
        owner: scope.user(),
        bound_tool: Some((id, name.cloned())),
        ..RecordSelection::default()
    }
}

fn of_instance(named: &InstanceName) -> RecordSelection {
    RecordSelection {
        instance: Some(*named),
        ..RecordSelection::default()
    }
}

fn of_servers(names: impl Iterator<Item = ServerName>) -> RecordSelection {
    RecordSelection {
        servers: names.collect(),
        ..RecordSelection::default()
    }
}

#[async_trait]
impl<B: Backend> Store for B {
    async fn servers(&self) -> StoreResult<Vec<ServerRecord>> {
        let needs = RecordSelection {
            all_servers: true,
            ..RecordSelection::default()
        };
        self.read("list the servers", needs, |state| {
            state.servers.values().cloned().collect()
        })
        .await
    }

    async fn put_servers(&self, records: &[ServerRecord]) -> StoreResult<()> {
        let needs = of_servers(records.iter().map(|record| record.name.clone()));
        let records = records.to_vec();
        self.change("save the server", needs, None, move |state| {
            rules::put_servers(state, records.clone())
        })
        .await
    }

    async fn delete_server(&self, name: &ServerName) -> StoreResult<bool> {
        let name = name.clone();
        let needs = of_servers(std::iter::once(name.clone()));
        self.change("remove the server", needs, None, move |state| {
            rules::delete_server(state, &name)
        })
        .await
    }

    async fn server_moved(&self, from: &ServerName, to: Option<&ServerName>) -> StoreResult<()> {
        Backend::server_moved(self, from, to).await
    }

    async fn definitions(&self) -> StoreResult<Option<BTreeMap<String, String>>> {
        Backend::definitions(self).await
    }

    async fn define(&self, changes: &[DefinitionChange]) -> StoreResult<bool> {
        Backend::define(self, changes).await
    }

    async fn is_repeated(&self, request: Idempotency) -> StoreResult<bool> {
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

    async fn create_tool(
        &self,
        new: NewTool,
        request: Option<Idempotency>,
    ) -> StoreResult<Creation<ToolRecord>> {
        let needs = creating(RecordKind::Tool, request);
        let user = Some(new.owner.clone());
        self.change("create the tool", needs, user, move |state| {
            rules::create_tool(state, new.clone(), request)
        })
        .await
    }

    async fn tool(&self, scope: &OwnerScope, id: ToolId) -> StoreResult<Option<ToolRecord>> {
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

    async fn tools(&self, scope: &OwnerScope, page: Page) -> StoreResult<Listing<ToolRecord>> {
        self.list("list the tools", scope, page).await
    }

    async fn update_tool(
        &self,
        scope: &OwnerScope,
        id: ToolId,
        change: ToolChange,
    ) -> StoreResult<Option<ToolRecord>> {
        let needs = of_tool(scope, id, change.name.as_ref());
        let scope = scope.clone();
        self.change("change the tool", needs, scope.user(), move |state| {
            rules::update_tool(state, &scope, id, change.clone())
        })
        .await
    }

    async fn delete_tool(&self, scope: &OwnerScope, id: ToolId) -> StoreResult<bool> {
        let needs = of_tool(scope, id, None);
        let scope = scope.clone();
        self.change("delete the tool", needs, None, move |state| {
            rules::delete_tool(state, &scope, id)
        })
        .await
    }

    async fn create_entry(
        &self,
        new: NewEntry,
        request: Option<Idempotency>,
    ) -> StoreResult<Creation<Entry>> {
        let needs = RecordSelection {
            tools: new.bindings.iter().map(|one| one.tool).collect(),
            ..creating(RecordKind::Entry, request)
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

    async fn entry(&self, scope: &OwnerScope, id: EntryId) -> StoreResult<Option<Entry>> {
        let needs = of_entry(scope, id);
        let scope = scope.clone();
        let found = self.read("read MCP instance", needs, move |state| {
            state.held(&scope, id).map(|held| held.entry.clone())
        });
        Ok(found.await?.map(|entry| self.with_last_use(entry)))
    }

    async fn entries(&self, scope: &OwnerScope, page: Page) -> StoreResult<Listing<Entry>> {
        let listing = self
            .list::<Entry>("list MCP instances", scope, page)
            .await?;
        let items = listing.items.into_iter();
        Ok(Listing {
            items: items.map(|entry| self.with_last_use(entry)).collect(),
            total: listing.total,
        })
    }

    async fn update_entry(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        change: EntryChange,
    ) -> StoreResult<Option<Entry>> {
        let needs = of_entry(scope, id);
        let used = self.last_use(id);
        let scope = scope.clone();
        self.change("change MCP instance", needs, scope.user(), move |state| {
            rules::update_entry(state, &scope, id, change.clone(), used)
        })
        .await
    }

    async fn replace_key(
        &self,
        scope: &OwnerScope,
        id: EntryId,
        key: NewKey,
    ) -> StoreResult<Option<Entry>> {
        let needs = RecordSelection {
            key: Some(key.digest),
            ..of_entry(scope, id)
        };
        let scope = scope.clone();
        self.change("rotate the key", needs, None, move |state| {
            rules::replace_key(state, &scope, id, key.clone())
        })
        .await
    }

    async fn delete_entry(&self, scope: &OwnerScope, id: EntryId) -> StoreResult<bool> {
        let needs = of_entry(scope, id);
        let scope = scope.clone();
        self.change("delete MCP instance", needs, None, move |state| {
            rules::delete_entry(state, &scope, id)
        })
        .await
    }

    async fn bindings(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
    ) -> StoreResult<Option<Vec<BoundTool>>> {
        let needs = with_bindings(scope, entry, &[]);
        let scope = scope.clone();
        self.read("list the bindings", needs, move |state| {
            state.held(&scope, entry).map(|held| state.bound(held))
        })
        .await
    }

    async fn bind(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        bindings: &[NewBinding],
    ) -> StoreResult<Option<Vec<BoundTool>>> {
        let needs = with_bindings(scope, entry, bindings);
        let (scope, bindings) = (scope.clone(), bindings.to_vec());
        self.change("bind the tools", needs, scope.user(), move |state| {
            rules::bind(state, &scope, entry, &bindings)
        })
        .await
    }

    async fn update_binding(
        &self,
        scope: &OwnerScope,
        entry: EntryId,
        binding: NewBinding,
    ) -> StoreResult<Option<BoundTool>> {
        let needs = with_bindings(scope, entry, &[]);
        let scope = scope.clone();
        self.change("change the binding", needs, None, move |state| {
            rules::update_binding(state, &scope, entry, binding)
        })
        .await
    }

    async fn unbind(&self, scope: &OwnerScope, entry: EntryId, tool: ToolId) -> StoreResult<bool> {
        let needs = with_bindings(scope, entry, &[]);
        let scope = scope.clone();
        self.change("remove the binding", needs, None, move |state| {
            rules::unbind(state, &scope, entry, tool)
        })
        .await
    }

    async fn create_instance(
        &self,
        new: NewInstance,
        request: Option<Idempotency>,
    ) -> StoreResult<Creation<Instance>> {
        let needs = RecordSelection {
            key: Some(new.key.digest),
            ..creating(RecordKind::Instance, request)
        };
        let user = Some(new.owner.clone());
        self.change("create MCP instance", needs, user, move |state| {
            rules::create_instance(state, new.clone(), request)
        })
        .await
    }

    async fn instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
    ) -> StoreResult<Option<Instance>> {
        let (scope, named) = (scope.clone(), *named);
        self.read("read MCP instance", of_instance(&named), move |state| {
            let found = state.instance(&scope, &named);
            found.map(|instance| Instance::clone(instance))
        })
        .await
    }

    async fn instances(&self, scope: &OwnerScope, page: Page) -> StoreResult<Listing<Instance>> {
        self.list("list MCP instances", scope, page).await
    }

    async fn update_instance(
        &self,
        scope: &OwnerScope,
        named: &InstanceName,
        change: InstanceChange,
    ) -> StoreResult<Option<Instance>> {
        let needs = RecordSelection {
            key: change.key.as_ref().map(|key| key.digest),
            ..of_instance(named)
        };
        let (scope, named) = (scope.clone(), *named);
        self.change("change MCP instance", needs, scope.user(), move |state| {
            rules::update_instance(state, &scope, &named, change.clone())
        })
        .await
    }

    async fn delete_instance(&self, scope: &OwnerScope, named: &InstanceName) -> StoreResult<bool> {
        let (scope, named) = (scope.clone(), *named);
        self.change(
            "delete MCP instance",
            of_instance(&named),
            None,
            move |state| rules::delete_instance(state, &scope, &named),
        )
        .await
    }

    async fn migrate_instances(&self) -> StoreResult<Vec<MigratedInstance>> {
        Backend::migrate_instances(self).await
    }

    async fn adopt(&self, records: &[Instance]) -> StoreResult<Vec<Adoption>> {
        Backend::adopt(self, records).await
    }

    fn grant(&self, key: &KeyDigest) -> GrantLookup {
        Backend::grant(self, key)
    }

    async fn ask(&self, key: &KeyDigest) -> StoreResult<Option<Arc<Grant>>> {
        Backend::ask(self, key).await
    }

    fn grant_of(&self, entry: EntryId) -> Option<Arc<Grant>> {
        self.grants().of_entry(entry)
    }

    fn grants_named(&self, name: &str) -> Vec<Arc<Grant>> {
        self.grants().named(name)
    }

    fn changes(&self) -> broadcast::Receiver<StoreChange> {
        Backend::changes(self)
    }

    fn trouble(&self) -> Option<String> {
        Backend::trouble(self)
    }
}
