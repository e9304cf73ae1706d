//! What should run: the one wish list. Definitions come from files, ids and
//! people's starts and stops from the store; every edit bumps the generation
//! of what it changes. This room starts nothing and waits for nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

use crate::config::body::Change;
use crate::config::{Problem, ServerName, ServerSpec};
use crate::store::{ServerRecord, Store, StoreError};

mod follow;
mod plan;
mod report;
mod rewrite;
mod sources;
mod wanted;

pub use follow::follow;
pub use plan::Plan;
pub use report::{DefinitionReport, SourceReport};
pub use rewrite::SourceError;
pub use sources::{Files, Loaded};
pub use wanted::Wanted;

use rewrite::Edit;

/// Well below what may wait for the store.
const RECORDS_AT_ONCE: usize = 256;

/// Everything that is defined, by name.
pub type Desired = BTreeMap<Arc<str>, Arc<Wanted>>;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("a server called {0:?} exists already")]
    NameTaken(String),
    #[error("no server is called {0:?}")]
    NotFound(String),
    #[error("the definition of {0:?} is broken; mend it where it stands")]
    Broken(String),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("Portway is shutting down")]
    Closed,
}

/// The wish list and the only way to edit it.
pub struct Registry {
    /// One edit at a time: each reads, writes and publishes as a whole.
    edits: Mutex<Edits>,
    desired: watch::Sender<Arc<Desired>>,
    store: Arc<dyn Store>,
    files: Files,
}

struct Edits {
    records: BTreeMap<String, ServerRecord>,
    restarts: BTreeMap<Arc<str>, u64>,
    generation: u64,
    loaded: Loaded,
    closed: bool,
}

impl Registry {
    /// Reads the files and the store. A file that cannot be used costs its
    /// own servers, never the start.
    pub async fn open(files: Files, store: Arc<dyn Store>) -> Result<Registry, StoreError> {
        let mut records = BTreeMap::new();
        for mut record in store.servers().await? {
            // A start by hand lasts as long as the process; a stop is kept.
            if record.run == Some(true) {
                record.run = None;
            }
            records.insert(record.name.to_string(), record);
        }
        let registry = Registry {
            edits: Mutex::new(Edits {
                records,
                restarts: BTreeMap::new(),
                generation: 0,
                loaded: Loaded::default(),
                closed: false,
            }),
            desired: watch::Sender::new(Arc::default()),
            store,
            files,
        };
        registry.reload().await?;
        Ok(registry)
    }

    pub fn desired(&self) -> Arc<Desired> {
        self.desired.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Desired>> {
        self.desired.subscribe()
    }

    /// By name or id.
    pub fn find(&self, server: &str) -> Option<Arc<Wanted>> {
        let desired = self.desired();
        if let Some(wanted) = desired.get(server) {
            return Some(wanted.clone());
        }
        let id = Uuid::try_parse(server).ok()?;
        desired.values().find(|wanted| wanted.id == id).cloned()
    }

    /// Reads all files anew and publishes what changed.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let mut edits = self.edits.lock().await;
        self.refresh(&mut edits).await
    }

    async fn refresh(&self, edits: &mut Edits) -> Result<(), StoreError> {
        let loaded = self.files.load(&edits.loaded).await;
        sources::tell(&loaded, &edits.loaded);
        edits.loaded = loaded;
        self.record_new(edits).await?;
        self.obey_enabled(edits).await?;
        self.publish(edits);
        Ok(())
    }

    /// Gives an id to every name that has none. Side by side, because the
    /// store saves once for all that wait: a long file must not delay a start.
    async fn record_new(&self, edits: &mut Edits) -> Result<(), StoreError> {
        let names = edits.loaded.merged.keys();
        let new: Vec<ServerRecord> = names
            .filter(|name| !edits.records.contains_key(*name))
            .filter_map(|name| ServerName::parse(name).ok())
            .map(ServerRecord::new)
            .collect();
        for batch in new.chunks(RECORDS_AT_ONCE) {
            try_join_all(batch.iter().map(|record| self.store.put_server(record))).await?;
        }
        let named = new
            .into_iter()
            .map(|record| (record.name.to_string(), record));
        edits.records.extend(named);
        Ok(())
    }

    /// An edit of `enabled` is a newer word than an earlier start or stop.
    async fn obey_enabled(&self, edits: &mut Edits) -> Result<(), StoreError> {
        let old = self.desired();
        for (name, effective) in &edits.loaded.merged {
            let (Some(before), Ok((_, spec))) = (old.get(name.as_str()), &effective.definition)
            else {
                continue;
            };
            let flipped = before
                .spec
                .as_ref()
                .is_ok_and(|old| old.enabled != spec.enabled);
            if let Some(record) = edits.records.get_mut(name)
                && flipped
                && record.run.is_some()
            {
                let changed = ServerRecord {
                    run: None,
                    ..record.clone()
                };
                self.store.put_server(&changed).await?;
                *record = changed;
            }
        }
        Ok(())
    }

    /// Computes the wish list; what did not change keeps its value and its
    /// generation, so nobody downstream notices.
    fn publish(&self, edits: &mut Edits) {
        if edits.closed {
            return;
        }
        let old = self.desired();
        let mut next = Desired::new();
        let mut generation = edits.generation;
        for (name, effective) in &edits.loaded.merged {
            let name: Arc<str> = name.as_str().into();
            let before = old.get(&name);
            let wanted = edits.wanted(&name, effective, before);
            let kept = before.filter(|before| before.same(&wanted)).cloned();
            let wanted = kept.unwrap_or_else(|| {
                generation += 1;
                Arc::new(Wanted {
                    generation,
                    ..wanted
                })
            });
            next.insert(name, wanted);
        }
        edits.generation = generation;
        self.desired.send_if_modified(|desired| {
            let changed = next.len() != desired.len()
                || next
                    .iter()
                    .zip(desired.iter())
                    .any(|((_, new), (_, old))| !Arc::ptr_eq(new, old));
            *desired = Arc::new(next);
            changed
        });
    }

    /// What the files say now, and whether they can be read.
    pub async fn loaded(&self) -> Loaded {
        self.edits.lock().await.loaded.clone()
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Registers a server. Nothing of it is kept if anything fails.
    pub async fn create(
        &self,
        name: ServerName,
        spec: ServerSpec,
        auto_start: bool,
    ) -> Result<Arc<Wanted>, RegistryError> {
        let mut edits = self.open_edits().await?;
        if self.desired().contains_key(name.as_str()) {
            return Err(RegistryError::NameTaken(name.to_string()));
        }
        // One taken out of its file by hand may still be remembered.
        let known = edits.records.get(name.as_str()).cloned();
        let fresh = || ServerRecord::new(name.clone());
        let record = ServerRecord {
            run: (!auto_start && spec.enabled).then_some(false),
            ..known.clone().unwrap_or_else(fresh)
        };
        self.store.put_server(&record).await?;
        let source = self.files.mcp();
        let edit = [Edit::Set(&spec)];
        let written = self
            .files
            .edit(&source, name.as_str(), &edit, &edits.loaded);
        if let Err(error) = written.await {
            // The id alone is no server: without its definition it goes too.
            match known {
                Some(known) => self.store.put_server(&known).await?,
                None => drop(self.store.delete_server(&name).await?),
            }
            return Err(error.into());
        }
        edits.records.insert(name.to_string(), record);
        self.refresh(&mut edits).await?;
        self.named(name.as_str())
    }

    /// Replaces a definition, and the name with it where the change has one.
    /// The id stays.
    pub async fn update(
        &self,
        server: &str,
        read: impl FnOnce(&ServerSpec) -> Result<Change, Vec<Problem>>,
    ) -> Result<Arc<Wanted>, UpdateError> {
        let mut edits = self.open_edits().await?;
        let wanted = self.found(server)?;
        let Ok(current) = &wanted.spec else {
            return Err(RegistryError::Broken(wanted.name.to_string()).into());
        };
        let change = read(current).map_err(UpdateError::Problems)?;
        let renamed = change.name.filter(|name| name.as_str() != &*wanted.name);
        if let Some(name) = &renamed
            && self.desired().contains_key(name.as_str())
        {
            return Err(RegistryError::NameTaken(name.to_string()).into());
        }
        let mut rewrite = Vec::new();
        if let Some(name) = &renamed {
            self.copy_record(&mut edits, &wanted, name).await?;
            rewrite.push(Edit::Rename(name.as_str()));
        }
        if change.spec != **current {
            rewrite.push(Edit::Set(&change.spec));
        }
        if !rewrite.is_empty() {
            self.files
                .edit(&wanted.source, &wanted.name, &rewrite, &edits.loaded)
                .await
                .map_err(RegistryError::from)?;
        }
        if renamed.is_some() {
            self.forget_record(&mut edits, &wanted.name).await?;
        }
        self.refresh(&mut edits)
            .await
            .map_err(RegistryError::from)?;
        let name = renamed.as_ref().map_or(&*wanted.name, ServerName::as_str);
        Ok(self.named(name)?)
    }

    /// The id under its new name, before the file has it: a crash in between
    /// leaves a record too many, never a server without its id.
    async fn copy_record(
        &self,
        edits: &mut Edits,
        wanted: &Wanted,
        new: &ServerName,
    ) -> Result<(), RegistryError> {
        let Some(old) = edits.records.get(&*wanted.name) else {
            return Ok(());
        };
        let record = ServerRecord {
            name: new.clone(),
            ..old.clone()
        };
        self.store.put_server(&record).await?;
        edits.records.insert(new.to_string(), record);
        Ok(())
    }

    async fn forget_record(&self, edits: &mut Edits, name: &str) -> Result<(), RegistryError> {
        if let Some(record) = edits.records.remove(name) {
            self.store.delete_server(&record.name).await?;
        }
        Ok(())
    }

    /// Removes a definition from its source; one that it hid comes forth.
    pub async fn remove(&self, server: &str) -> Result<Arc<Wanted>, RegistryError> {
        let mut edits = self.open_edits().await?;
        let wanted = self.found(server)?;
        self.files
            .edit(&wanted.source, &wanted.name, &[Edit::Remove], &edits.loaded)
            .await?;
        if wanted.shadows.is_empty() {
            self.forget_record(&mut edits, &wanted.name).await?;
        }
        self.refresh(&mut edits).await?;
        Ok(wanted)
    }

    /// Start or stop. What is so already stays as it is.
    pub async fn set_run(&self, server: &str, run: bool) -> Result<Arc<Wanted>, RegistryError> {
        let mut edits = self.open_edits().await?;
        let wanted = self.found(server)?;
        self.remember_run(&mut edits, &wanted, run).await?;
        self.publish(&mut edits);
        self.named(&wanted.name)
    }

    async fn remember_run(
        &self,
        edits: &mut Edits,
        wanted: &Wanted,
        run: bool,
    ) -> Result<(), RegistryError> {
        let Ok(spec) = &wanted.spec else {
            return Ok(());
        };
        let run = (run != spec.enabled).then_some(run);
        if let Some(record) = edits.records.get_mut(&*wanted.name)
            && record.run != run
        {
            let changed = ServerRecord {
                run,
                ..record.clone()
            };
            self.store.put_server(&changed).await?;
            *record = changed;
        }
        Ok(())
    }

    /// Ends what runs and starts it anew: one edit, so that what was stopped
    /// is started once.
    pub async fn restart(&self, server: &str) -> Result<Arc<Wanted>, RegistryError> {
        let mut edits = self.open_edits().await?;
        let wanted = self.found(server)?;
        self.remember_run(&mut edits, &wanted, true).await?;
        *edits.restarts.entry(wanted.name.clone()).or_default() += 1;
        self.publish(&mut edits);
        self.named(&wanted.name)
    }

    /// Nothing should run any more; later edits are refused.
    pub async fn close(&self) {
        let mut edits = self.edits.lock().await;
        edits.closed = true;
        self.desired.send_replace(Arc::default());
    }

    async fn open_edits(&self) -> Result<tokio::sync::MutexGuard<'_, Edits>, RegistryError> {
        let edits = self.edits.lock().await;
        match edits.closed {
            true => Err(RegistryError::Closed),
            false => Ok(edits),
        }
    }

    fn found(&self, server: &str) -> Result<Arc<Wanted>, RegistryError> {
        self.find(server)
            .ok_or_else(|| RegistryError::NotFound(server.to_owned()))
    }

    fn named(&self, name: &str) -> Result<Arc<Wanted>, RegistryError> {
        let wanted = self.desired().get(name).cloned();
        wanted.ok_or_else(|| RegistryError::NotFound(name.to_owned()))
    }
}

/// What can go wrong with a change besides the edit itself.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error("the change is not valid")]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
