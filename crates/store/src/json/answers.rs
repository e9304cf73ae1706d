//! The contract, by the rules and from memory.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::super::records::*;
use super::super::{
    Grant, GrantLookup, KeyDigest, ServerRecord, Store, StoreChange, StoreError, Timestamp, rules,
};
use super::JsonStore;
use config::ServerName;

fn copied<A, B>(listed: Listing<A>, copy: impl FnMut(A) -> B) -> Listing<B> {
    Listing {
        items: listed.items.into_iter().map(copy).collect(),
        total: listed.total,
    }
}

fn page<T>(all: impl Iterator<Item = T>, page: Page) -> Listing<T> {
    let (mut items, mut total) = (Vec::new(), 0);
    for item in all {
        if total >= page.skip && (items.len() as u64) < page.limit {
            items.push(item);
        }
        total += 1;
    }
    Listing { items, total }
}

#[async_trait]
impl Store for JsonStore {
    async fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        Ok(self.state().servers.values().cloned().collect())
    }

    async fn put_servers(&self, records: &[ServerRecord]) -> Result<(), StoreError> {
        let records = records.to_vec();
        self.write("save the server", move |state| {
            rules::put_servers(state, records)
        })
        .await
    }

    async fn delete_server(&self, name: &ServerName) -> Result<bool, StoreError> {
        let name = name.clone();
        self.write("remove the server", move |state| {
            rules::delete_server(state, &name)
        })
        .await
    }

    async fn is_repeated(&self, once: Idempotency) -> Result<bool, StoreError> {
        let state = self.state();
        let made = state.once.get(&KeyDigest::from_bytes(once.key));
        Ok(made.is_some_and(|made| made.is_fresh(Timestamp::now())))
    }

    async fn create_tool(
        &self,
        new: NewTool,
        once: Option<Idempotency>,
    ) -> Result<Creation<ToolRecord>, StoreError> {
        let limits = self.limits_of(Some(&new.owner));
        self.write_limited(limits, "create the tool", move |state| {
            rules::create_tool(state, new, once)
        })
        .await
    }

    async fn tool(&self, whose: &OwnerScope, id: ToolId) -> Result<Option<ToolRecord>, StoreError> {
        Ok(self
            .state()
            .tool(whose, id)
            .map(|tool| ToolRecord::clone(tool)))
    }

    async fn tools(
        &self,
        whose: &OwnerScope,
        asked: Page,
    ) -> Result<Listing<ToolRecord>, StoreError> {
        let state = self.state();
        let all = state
            .tools
            .values()
            .filter(|tool| whose.includes(&tool.owner));
        Ok(copied(page(all, asked), |tool| ToolRecord::clone(tool)))
    }

    async fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> Result<(), StoreError> {
        let (from, to) = (from.clone(), to.cloned());
        self.write("move the server's records", move |state| {
            rules::server_moved(state, &from, to.as_ref())
        })
        .await
    }

    async fn update_tool(
        &self,
        whose: &OwnerScope,
        id: ToolId,
        change: ToolChange,
    ) -> Result<Option<ToolRecord>, StoreError> {
        let whose = whose.clone();
        let limits = self.limits_of(whose.owner());
        self.write_limited(limits, "change the tool", move |state| {
            rules::update_tool(state, &whose, id, change)
        })
        .await
    }

    async fn delete_tool(&self, whose: &OwnerScope, id: ToolId) -> Result<bool, StoreError> {
        let whose = whose.clone();
        self.write("delete the tool", move |state| {
            rules::delete_tool(state, &whose, id)
        })
        .await
    }

    async fn create_entry(
        &self,
        new: NewEntry,
        once: Option<Idempotency>,
    ) -> Result<Creation<Entry>, StoreError> {
        let limits = self.limits_of(Some(&new.owner));
        self.write_limited(limits, "create MCP instance", move |state| {
            rules::create_entry(state, new, once)
        })
        .await
    }

    async fn entry(&self, whose: &OwnerScope, id: EntryId) -> Result<Option<Entry>, StoreError> {
        let state = self.state();
        Ok(state.held(whose, id).map(|held| self.used(&held.entry)))
    }

    async fn entries(&self, whose: &OwnerScope, asked: Page) -> Result<Listing<Entry>, StoreError> {
        let state = self.state();
        let all = state
            .entries
            .values()
            .filter(|held| whose.includes(&held.entry.owner));
        Ok(copied(page(all, asked), |held| self.used(&held.entry)))
    }

    async fn update_entry(
        &self,
        whose: &OwnerScope,
        id: EntryId,
        change: EntryChange,
    ) -> Result<Option<Entry>, StoreError> {
        let whose = whose.clone();
        let used = self.grants.of_entry(id).and_then(|grant| grant.last_used());
        let limits = self.limits_of(whose.owner());
        self.write_limited(limits, "change MCP instance", move |state| {
            rules::update_entry(state, &whose, id, change, used)
        })
        .await
    }

    async fn replace_key(
        &self,
        whose: &OwnerScope,
        id: EntryId,
        key: NewKey,
    ) -> Result<Option<Entry>, StoreError> {
        let whose = whose.clone();
        self.write("rotate the key", move |state| {
            rules::replace_key(state, &whose, id, key)
        })
        .await
    }

    async fn delete_entry(&self, whose: &OwnerScope, id: EntryId) -> Result<bool, StoreError> {
        let whose = whose.clone();
        self.write("delete MCP instance", move |state| {
            rules::delete_entry(state, &whose, id)
        })
        .await
    }

    async fn bindings(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
    ) -> Result<Option<Vec<BoundTool>>, StoreError> {
        let state = self.state();
        Ok(state.held(whose, entry).map(|held| state.bound(held)))
    }

    async fn bind(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
        bindings: &[NewBinding],
    ) -> Result<Option<Vec<BoundTool>>, StoreError> {
        let (whose, bindings) = (whose.clone(), bindings.to_vec());
        let limits = self.limits_of(whose.owner());
        self.write_limited(limits, "bind the tools", move |state| {
            rules::bind(state, &whose, entry, &bindings)
        })
        .await
    }

    async fn update_binding(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
        binding: NewBinding,
    ) -> Result<Option<BoundTool>, StoreError> {
        let whose = whose.clone();
        self.write("change the binding", move |state| {
            rules::update_binding(state, &whose, entry, binding)
        })
        .await
    }

    async fn unbind(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
        tool: ToolId,
    ) -> Result<bool, StoreError> {
        let whose = whose.clone();
        self.write("remove the binding", move |state| {
            rules::unbind(state, &whose, entry, tool)
        })
        .await
    }

    async fn create_instance(
        &self,
        new: NewInstance,
        once: Option<Idempotency>,
    ) -> Result<Creation<Instance>, StoreError> {
        let limits = self.limits_of(Some(&new.owner));
        self.write_limited(limits, "create MCP instance", move |state| {
            rules::create_instance(state, new, once)
        })
        .await
    }

    async fn instance(
        &self,
        whose: &OwnerScope,
        named: &InstanceName,
    ) -> Result<Option<Instance>, StoreError> {
        Ok(self
            .state()
            .instance(whose, named)
            .map(|instance| Instance::clone(instance)))
    }

    async fn instances(
        &self,
        whose: &OwnerScope,
        asked: Page,
    ) -> Result<Listing<Instance>, StoreError> {
        let state = self.state();
        let all = state
            .instances
            .values()
            .filter(|instance| whose.includes(&instance.owner));
        Ok(copied(page(all, asked), |instance| {
            Instance::clone(instance)
        }))
    }

    async fn update_instance(
        &self,
        whose: &OwnerScope,
        named: &InstanceName,
        change: InstanceChange,
    ) -> Result<Option<Instance>, StoreError> {
        let (whose, named) = (whose.clone(), *named);
        let limits = self.limits_of(whose.owner());
        self.write_limited(limits, "change MCP instance", move |state| {
            rules::update_instance(state, &whose, &named, change)
        })
        .await
    }

    async fn delete_instance(
        &self,
        whose: &OwnerScope,
        named: &InstanceName,
    ) -> Result<bool, StoreError> {
        let (whose, named) = (whose.clone(), *named);
        self.write("delete MCP instance", move |state| {
            rules::delete_instance(state, &whose, &named)
        })
        .await
    }

    async fn migrate_instances(&self) -> Result<Vec<MigratedInstance>, StoreError> {
        self.write("migrate MCP instances", rules::migrate).await
    }

    async fn adopt(&self, records: &[Instance]) -> Result<Vec<Adoption>, StoreError> {
        let records = records.to_vec();
        self.write("migrate records", move |state| {
            rules::adopt(state, &records)
        })
        .await
    }

    fn grant(&self, key: &KeyDigest) -> GrantLookup {
        match self.grants.find(key) {
            Some(grant) => GrantLookup::Yes(grant),
            None => GrantLookup::No,
        }
    }

    async fn ask(&self, key: &KeyDigest) -> Result<Option<Arc<Grant>>, StoreError> {
        Ok(self.grants.find(key))
    }

    fn grant_of(&self, entry: EntryId) -> Option<Arc<Grant>> {
        self.grants.of_entry(entry)
    }

    fn grants_named(&self, name: &str) -> Vec<Arc<Grant>> {
        self.grants.named(name)
    }

    fn changes(&self) -> broadcast::Receiver<StoreChange> {
        self.changes.subscribe()
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
