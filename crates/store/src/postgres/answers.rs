//! The contract, by SQL and from memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use tokio::sync::broadcast;

use super::super::records::*;
use super::super::{
    DefinitionChange, Grant, GrantLookup, KeyDigest, ServerRecord, Store, StoreChange, StoreError,
    StoreErrorKind,
};
use super::link::{Doing, LIMIT, LONG};
use super::mirror::Failed;
use super::standing::{FROM_MEMORY, Memory};
use super::{
    PostgresStore, adopt, bindings, entries, instances, moved, once, quota, servers, tools,
};
use config::ServerName;

/// Work on a connection. What it is given is cloned: it may be run again.
macro_rules! work {
    (|$connection:ident| [$($given:ident),*] $body:expr) => {
        on_a_connection(move |$connection| {
            $(let $given = $given.clone();)*
            Box::pin(async move { $body })
        })
    };
}

/// The same, counted for a user.
macro_rules! counted {
    ($quota:ident, |$connection:ident| [$($given:ident),*] $body:expr) => {
        work!(|$connection| [$quota, $($given),*] {
            let before = quota::before($connection, &$quota).await?;
            let done = $body;
            quota::check($connection, &$quota, before).await?;
            Ok(done)
        })
    };
}

/// Says what a closure is, which the compiler cannot guess.
fn on_a_connection<T, F>(work: F) -> F
where
    F: for<'c> Fn(&'c mut PgConnection) -> Doing<'c, T>,
{
    work
}

#[async_trait]
impl Store for PostgresStore {
    async fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        self.read("list the servers", work!(|c| [] servers::list(c).await))
            .await
    }

    async fn put_servers(&self, records: &[ServerRecord]) -> Result<(), StoreError> {
        let records: Arc<[ServerRecord]> = records.into();
        let put = work!(|c| [records] Ok((servers::put(c, &records).await?, Vec::new())));
        self.write("save the server", LIMIT, put).await
    }

    async fn delete_server(&self, name: &ServerName) -> Result<bool, StoreError> {
        let name = name.clone();
        let delete = work!(|c| [name] Ok((servers::delete(c, &name).await?, Vec::new())));
        self.write("remove the server", LIMIT, delete).await
    }

    async fn definitions(&self) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        let list = work!(|c| [] servers::definitions(c).await);
        self.read("read the definitions", list).await.map(Some)
    }

    async fn define(&self, changes: &[DefinitionChange]) -> Result<bool, StoreError> {
        let changes: Arc<[DefinitionChange]> = changes.into();
        let define = work!(|c| [changes] Ok((servers::define(c, &changes).await?, Vec::new())));
        self.write("change the definitions", LIMIT, define).await
    }

    async fn is_repeated(&self, once: Idempotency) -> Result<bool, StoreError> {
        let look = work!(|c| [] once::is_known(c, &once).await);
        self.read("read the Idempotency-Key", look).await
    }

    async fn create_tool(
        &self,
        new: NewTool,
        once: Option<Idempotency>,
    ) -> Result<Creation<ToolRecord>, StoreError> {
        let quota = self.quota(Some(&new.owner));
        let create = counted!(quota, |c| [new] {
            (tools::create(c, &new, once.as_ref()).await?, Vec::new())
        });
        self.write("create the tool", LIMIT, create).await
    }

    async fn tool(&self, whose: &OwnerScope, id: ToolId) -> Result<Option<ToolRecord>, StoreError> {
        let whose = whose.clone();
        let find = work!(|c| [whose] tools::find(c, &whose, id).await);
        self.read("read the tool", find).await
    }

    async fn tools(
        &self,
        whose: &OwnerScope,
        page: Page,
    ) -> Result<Listing<ToolRecord>, StoreError> {
        let whose = whose.clone();
        let list = work!(|c| [whose] tools::list(c, &whose, page).await);
        self.read("list the tools", list).await
    }

    async fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> Result<(), StoreError> {
        let (from, to) = (from.to_string(), to.map(ToString::to_string));
        let follow = work!(|c| [from, to] moved::server_moved(c, &from, to.as_deref()).await);
        self.write("move the server's records", LIMIT, follow).await
    }

    async fn update_tool(
        &self,
        whose: &OwnerScope,
        id: ToolId,
        change: ToolChange,
    ) -> Result<Option<ToolRecord>, StoreError> {
        let whose = whose.clone();
        let quota = self.quota(whose.owner());
        let update = counted!(quota, |c| [whose, change] {
            tools::update(c, &whose, id, &change).await?
        });
        self.write("change the tool", LIMIT, update).await
    }

    async fn delete_tool(&self, whose: &OwnerScope, id: ToolId) -> Result<bool, StoreError> {
        let whose = whose.clone();
        let delete = work!(|c| [whose] tools::delete(c, &whose, id).await);
        self.write("delete the tool", LIMIT, delete).await
    }

    async fn create_entry(
        &self,
        new: NewEntry,
        once: Option<Idempotency>,
    ) -> Result<Creation<Entry>, StoreError> {
        let quota = self.quota(Some(&new.owner));
        let create = counted!(quota, |c| [new] {
            let created = entries::create(c, &new, once.as_ref()).await?;
            let touched = match &created {
                Creation::New(entry) => vec![entry.id],
                Creation::Earlier(_) => Vec::new(),
            };
            (created, touched)
        });
        let created = self.write("create MCP instance", LIMIT, create).await?;
        Ok(match created {
            Creation::Earlier(Some(entry)) => Creation::Earlier(Some(self.used(entry))),
            other => other,
        })
    }

    async fn entry(&self, whose: &OwnerScope, id: EntryId) -> Result<Option<Entry>, StoreError> {
        let whose = whose.clone();
        let find = work!(|c| [whose] entries::find(c, &whose, id).await);
        let found = self.read("read MCP instance", find).await?;
        Ok(found.map(|entry| self.used(entry)))
    }

    async fn entries(&self, whose: &OwnerScope, page: Page) -> Result<Listing<Entry>, StoreError> {
        let whose = whose.clone();
        let list = work!(|c| [whose] entries::list(c, &whose, page).await);
        let listed = self.read("list MCP instances", list).await?;
        let items = listed.items.into_iter().map(|entry| self.used(entry));
        Ok(Listing {
            items: items.collect(),
            total: listed.total,
        })
    }

    async fn update_entry(
        &self,
        whose: &OwnerScope,
        id: EntryId,
        change: EntryChange,
    ) -> Result<Option<Entry>, StoreError> {
        let whose = whose.clone();
        let grant = self.mirror.grants.of_entry(id);
        let used = grant.and_then(|grant| grant.last_used());
        let quota = self.quota(whose.owner());
        let update = counted!(quota, |c| [whose, change] {
            let found = entries::update(c, &whose, id, &change, used).await?;
            let touched = if found.is_some() { vec![id] } else { Vec::new() };
            (found, touched)
        });
        self.write("change MCP instance", LIMIT, update).await
    }

    async fn replace_key(
        &self,
        whose: &OwnerScope,
        id: EntryId,
        key: NewKey,
    ) -> Result<Option<Entry>, StoreError> {
        let whose = whose.clone();
        let replace = work!(|c| [whose, key] {
            let found = entries::replace_key(c, &whose, id, &key).await?;
            let touched = if found.is_some() { vec![id] } else { Vec::new() };
            Ok((found, touched))
        });
        self.write("rotate the key", LIMIT, replace).await
    }

    async fn delete_entry(&self, whose: &OwnerScope, id: EntryId) -> Result<bool, StoreError> {
        let whose = whose.clone();
        let delete = work!(|c| [whose] {
            let found = entries::delete(c, &whose, id).await?;
            let touched = if found { vec![id] } else { Vec::new() };
            Ok((found, touched))
        });
        self.write("delete MCP instance", LIMIT, delete).await
    }

    async fn bindings(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
    ) -> Result<Option<Vec<BoundTool>>, StoreError> {
        let whose = whose.clone();
        let list = work!(|c| [whose] bindings::of(c, &whose, entry).await);
        self.read("list the bindings", list).await
    }

    async fn bind(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
        new: &[NewBinding],
    ) -> Result<Option<Vec<BoundTool>>, StoreError> {
        let (whose, new): (_, Arc<[NewBinding]>) = (whose.clone(), new.into());
        let quota = self.quota(whose.owner());
        let bind = counted!(quota, |c| [whose, new] {
            let found = bindings::bind(c, &whose, entry, &new).await?;
            let touched = if found.is_some() { vec![entry] } else { Vec::new() };
            (found, touched)
        });
        self.write("bind the tools", LIMIT, bind).await
    }

    async fn update_binding(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
        binding: NewBinding,
    ) -> Result<Option<BoundTool>, StoreError> {
        let whose = whose.clone();
        let update = work!(|c| [whose] {
            let found = bindings::update(c, &whose, entry, binding).await?;
            let touched = if found.is_some() { vec![entry] } else { Vec::new() };
            Ok((found, touched))
        });
        self.write("change the binding", LIMIT, update).await
    }

    async fn unbind(
        &self,
        whose: &OwnerScope,
        entry: EntryId,
        tool: ToolId,
    ) -> Result<bool, StoreError> {
        let whose = whose.clone();
        let unbind = work!(|c| [whose] {
            let found = bindings::unbind(c, &whose, entry, tool).await?;
            let touched = if found { vec![entry] } else { Vec::new() };
            Ok((found, touched))
        });
        self.write("remove the binding", LIMIT, unbind).await
    }

    async fn create_instance(
        &self,
        new: NewInstance,
        once: Option<Idempotency>,
    ) -> Result<Creation<Instance>, StoreError> {
        let quota = self.quota(Some(&new.owner));
        let create = counted!(quota, |c| [new] {
            (instances::create(c, &new, once.as_ref()).await?, Vec::new())
        });
        self.write("create MCP instance", LIMIT, create).await
    }

    async fn instance(
        &self,
        whose: &OwnerScope,
        named: &InstanceName,
    ) -> Result<Option<Instance>, StoreError> {
        let (whose, named) = (whose.clone(), *named);
        let find = work!(|c| [whose] instances::find(c, &whose, &named).await);
        self.read("read MCP instance", find).await
    }

    async fn instances(
        &self,
        whose: &OwnerScope,
        page: Page,
    ) -> Result<Listing<Instance>, StoreError> {
        let whose = whose.clone();
        let list = work!(|c| [whose] instances::list(c, &whose, page).await);
        self.read("list MCP instances", list).await
    }

    async fn update_instance(
        &self,
        whose: &OwnerScope,
        named: &InstanceName,
        change: InstanceChange,
    ) -> Result<Option<Instance>, StoreError> {
        let (whose, named) = (whose.clone(), *named);
        let quota = self.quota(whose.owner());
        let update = counted!(quota, |c| [whose, change] {
            (instances::update(c, &whose, &named, &change).await?, Vec::new())
        });
        self.write("change MCP instance", LIMIT, update).await
    }

    async fn delete_instance(
        &self,
        whose: &OwnerScope,
        named: &InstanceName,
    ) -> Result<bool, StoreError> {
        let (whose, named) = (whose.clone(), *named);
        let delete = work!(|c| [whose] Ok((
            instances::delete(c, &whose, &named).await?,
            Vec::new(),
        )));
        self.write("delete MCP instance", LIMIT, delete).await
    }

    async fn migrate_instances(&self) -> Result<Vec<MigratedInstance>, StoreError> {
        let migrate = work!(|c| [] {
            let migrated = instances::migrate(c).await?;
            let touched = migrated.iter().map(|one| one.entry).collect();
            Ok((migrated, touched))
        });
        self.write("migrate MCP instances", LONG, migrate).await
    }

    async fn adopt(&self, records: &[Instance]) -> Result<Vec<Adoption>, StoreError> {
        let records: Arc<[Instance]> = records.into();
        let adopt = work!(|c| [records] {
            let adopted = adopt::all(c, &records).await?;
            let touched = adopted.iter().filter_map(|one| match one {
                Adoption::Made(made) => Some(made.entry),
                _ => None,
            });
            let touched = touched.collect();
            Ok((adopted, touched))
        });
        self.write("migrate records", LONG, adopt).await
    }

    fn grant(&self, key: &KeyDigest) -> GrantLookup {
        let found = self.mirror.grants.find(key);
        match (self.link.standing.memory(), found) {
            (Memory::InStep, None) => GrantLookup::No,
            (Memory::InStep, Some(grant)) => GrantLookup::Yes(grant),
            (Memory::Away(unheard), Some(grant)) if unheard < FROM_MEMORY => {
                GrantLookup::Yes(grant)
            }
            _ => GrantLookup::Ask,
        }
    }

    async fn ask(&self, key: &KeyDigest) -> Result<Option<Arc<Grant>>, StoreError> {
        // Where it is known that nobody answers, nobody waits.
        let asked = match self.link.standing.is_away() {
            true => Err(Failed {
                kind: StoreErrorKind::Unavailable("the database does not answer".to_owned()),
                away: true,
            }),
            false => self.mirror.ask(*key).await,
        };
        let failed = match asked {
            Ok(grant) => return Ok(grant),
            Err(failed) => failed,
        };
        let standing = &self.link.standing;
        let in_step = standing.memory() == Memory::InStep;
        let remembered = self.mirror.grants.find(key);
        let good = in_step || (failed.away && standing.unheard() < FROM_MEMORY);
        match remembered {
            Some(grant) if good => Ok(Some(grant)),
            None if in_step => Ok(None),
            _ => Err(failed.kind.during("look up the key")),
        }
    }

    fn grant_of(&self, entry: EntryId) -> Option<Arc<Grant>> {
        self.mirror.grants.of_entry(entry)
    }

    fn grants_named(&self, name: &str) -> Vec<Arc<Grant>> {
        self.mirror.grants.named(name)
    }

    fn changes(&self) -> broadcast::Receiver<StoreChange> {
        self.mirror.changes.subscribe()
    }

    fn trouble(&self) -> Option<String> {
        self.told_trouble()
    }
}
