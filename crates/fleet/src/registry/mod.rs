//! The desired state of all servers. Definitions come from files, ids and people's
//! starts and stops from the store; every edit increments the generation of the
//! servers it changes. The registry starts no server and waits for none.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use config::filters::Filters;
use config::{Problem, ServerName};
use store::{ServerRecord, Store, StoreError, StoreErrorKind};

mod changes;
mod database;
mod filters;
mod follow;
mod plan;
mod report;
mod rewrite;
mod runs;
mod sources;
mod tell;
mod unfinished;
mod wanted;

pub use changes::EditBasis;
pub use follow::follow;
pub use plan::{ConfigPlan, FileProblem};
pub use report::{DefinitionReport, SourceReport};
pub use rewrite::SourceError;
pub use sources::{LoadedSources, SourceFiles};
pub use wanted::{DesiredServer, RunCause, Via};

use wanted::Occasion;

use filters::FilterFile;
use runs::Runs;
use unfinished::UnfinishedEdit;

/// Every defined server, by name.
pub type Desired = BTreeMap<Arc<str>, Arc<DesiredServer>>;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("a server called {0:?} exists already")]
    NameTaken(String),
    #[error("no server is called {0:?}")]
    NotFound(String),
    #[error("the definition of {0:?} is broken; mend it where it stands")]
    Broken(String),
    /// The change would undo an edit that was saved a moment ago.
    #[error("{0:?} has just been changed in its file; look at it and try again")]
    Stale(String),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("Portway is shutting down")]
    Closed,
}

type RegistryResult<T> = Result<T, RegistryError>;

/// The desired state and the only way to edit it.
pub struct Registry {
    /// One edit at a time: each reads, writes and publishes as a whole, and
    /// holds the lock across its awaits.
    edits: tokio::sync::Mutex<Edits>,
    /// The lock is never held across an await.
    runs: Mutex<Runs>,
    desired: watch::Sender<Arc<Desired>>,
    filters: watch::Sender<Arc<Filters>>,
    store: Arc<Store>,
    files: SourceFiles,
    /// The directory for the note of an unfinished edit.
    data_dir: PathBuf,
}

#[derive(Default)]
struct Edits {
    records: BTreeMap<String, ServerRecord>,
    loaded: Arc<LoadedSources>,
    filters: FilterFile,
    /// An edit that is saved in its source but not yet in the records.
    unfinished: Option<UnfinishedEdit>,
}

/// The changes of a reload to the records: a new name gets a record, and a
/// changed `enabled` overrides an earlier start or stop.
impl Edits {
    fn due_records(&self, before: &Desired) -> Vec<ServerRecord> {
        let names = self.loaded.merged.keys();
        let new = names
            .filter_map(|name| ServerName::parse(name).ok())
            .filter(|name| !self.records.contains_key(name.as_str()))
            .map(ServerRecord::new);
        let overruled = self.overruled(before);
        let records = overruled
            .iter()
            .filter_map(|name| self.records.get(&**name));
        let forgotten = records
            .filter(|record| record.run.is_some())
            .map(|record| ServerRecord {
                run: None,
                ..record.clone()
            });
        new.chain(forgotten).collect()
    }

    /// Servers whose changed definition overrides an earlier start or stop. A
    /// removed server loses them too, in case it is added again.
    fn overruled(&self, before: &Desired) -> Vec<Arc<str>> {
        let flipped = |old: &Arc<DesiredServer>| match self.loaded.merged.get(&*old.name) {
            None => true,
            Some(effective) => match (&old.spec, &effective.definition) {
                (Ok(old), Ok((_, new))) => old.enabled != new.enabled,
                _ => false,
            },
        };
        let overruled = before.values().filter(|old| flipped(old));
        overruled.map(|old| old.name.clone()).collect()
    }

    fn know(&mut self, records: Vec<ServerRecord>) {
        let named = records
            .into_iter()
            .map(|record| (record.name.to_string(), record));
        self.records.extend(named);
    }
}

impl Registry {
    /// Reads the files and the store. An unusable file only removes its own
    /// servers; it never fails the start.
    pub async fn open(
        mut files: SourceFiles,
        store: Arc<Store>,
        data_dir: PathBuf,
    ) -> Result<Registry, StoreError> {
        files.database = store.definitions().await?.is_some();
        let registry = Registry {
            edits: tokio::sync::Mutex::default(),
            runs: Mutex::default(),
            desired: watch::Sender::new(Arc::default()),
            filters: watch::Sender::new(Arc::default()),
            store,
            files,
            data_dir,
        };
        let mut edits = registry.edits.lock().await;
        edits.unfinished = registry.noted().await?;
        if let Err(error) = registry.finish(&mut edits).await {
            tracing::warn!("an edit that was cut off is not finished, trying again: {error}");
        }
        let mut records = registry.store.servers().await?;
        for record in &mut records {
            // A manual start lasts as long as the process; a manual stop is kept.
            record.run = record.run.filter(|run| !run);
        }
        edits.know(records);
        registry.refresh(&mut edits, Occasion::Startup).await?;
        drop(edits);
        Ok(registry)
    }

    pub fn desired(&self) -> Arc<Desired> {
        self.desired.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Desired>> {
        self.desired.subscribe()
    }

    /// The report of every file, for the API.
    pub async fn reports(&self) -> Vec<SourceReport> {
        let (loaded, filters) = {
            let edits = self.edits.lock().await;
            (edits.loaded.clone(), edits.filters.clone())
        };
        let mut reports = self.files.reports(&loaded);
        reports.extend(filters.report(&self.files.filters()));
        reports
    }

    /// The named filters, as a receiver that follows every change.
    pub fn filters(&self) -> watch::Receiver<Arc<Filters>> {
        self.filters.subscribe()
    }

    /// Finds a server by name or id.
    pub fn find(&self, server: &str) -> Option<Arc<DesiredServer>> {
        let desired = self.desired();
        if let Some(wanted) = desired.get(server) {
            return Some(wanted.clone());
        }
        let id = Uuid::try_parse(server).ok()?;
        desired.values().find(|wanted| wanted.id == id).cloned()
    }

    /// Reads all files again and publishes the changes.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let mut edits = self.edits.lock().await;
        self.refresh(&mut edits, Occasion::Reload).await
    }

    async fn refresh(&self, edits: &mut Edits, occasion: Occasion<'_>) -> Result<(), StoreError> {
        let mut loaded = self.files.load(edits.loaded.clone()).await;
        if self.files.database {
            let more = database::add(&self.files, &self.store, &loaded, &edits.loaded).await;
            loaded = more.map_or(loaded, Arc::new);
        }
        tell::files(&loaded, &edits.loaded);
        edits.loaded = loaded;
        self.refresh_filters(edits).await;
        let before = self.desired();
        for name in edits.overruled(&before) {
            self.runs.lock().forget(&name);
        }
        let records = edits.due_records(&before);
        if !records.is_empty() {
            self.remember(edits, records).await?;
        }
        self.publish(edits, occasion);
        tell::servers(&before, &self.desired());
        Ok(())
    }

    async fn remember(
        &self,
        edits: &mut Edits,
        records: Vec<ServerRecord>,
    ) -> Result<(), StoreError> {
        match self.store.put_servers(&records).await {
            Ok(()) => edits.know(records),
            // Another replica has recorded the same name first: its id is used.
            Err(StoreError {
                kind: StoreErrorKind::Conflict(_),
                ..
            }) => {
                edits.know(self.store.servers().await?);
                let unknown = |record: &ServerRecord| {
                    let known = edits.records.get(record.name.as_str());
                    known.is_none_or(|known| known.id == record.id)
                };
                let left: Vec<_> = records.into_iter().filter(unknown).collect();
                self.store.put_servers(&left).await?;
                edits.know(left);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether a file could not be read and must be retried.
    pub(super) async fn has_unread(&self) -> bool {
        let edits = self.edits.lock().await;
        edits.loaded.unread || edits.filters.unread
    }

    /// Takes over the changes that other replicas made in the store.
    pub(super) async fn sync(&self) -> Result<(), StoreError> {
        let mut edits = self.edits.lock().await;
        // Otherwise the record of a renamed server is read under its old name.
        if let Err(RegistryError::Store(error)) = self.finish(&mut edits).await {
            return Err(error);
        }
        self.read_records(&mut edits).await?;
        self.refresh(&mut edits, Occasion::Reload).await
    }

    async fn read_records(&self, edits: &mut Edits) -> Result<(), StoreError> {
        let records = self.store.servers().await?;
        edits.records.clear();
        edits.know(records);
        Ok(())
    }

    async fn refresh_filters(&self, edits: &mut Edits) {
        let path = self.files.filters();
        let file = edits.filters.reload(&path).await;
        file.tell(&path, &edits.filters);
        self.filters.send_if_modified(|filters| {
            let changed = !Arc::ptr_eq(filters, &file.parsed);
            *filters = file.parsed.clone();
            changed
        });
        edits.filters = file;
    }

    /// Computes the desired state; an unchanged server keeps its value and its
    /// generation, so its supervisor sees no change.
    fn publish(&self, edits: &Edits, occasion: Occasion<'_>) {
        let mut runs = self.runs.lock();
        if runs.closed {
            return;
        }
        let old = self.desired();
        let mut next = Desired::new();
        let mut generation = runs.generation;
        for (name, effective) in &edits.loaded.merged {
            let name: Arc<str> = name.as_str().into();
            let before = old.get(&name);
            let wanted = edits.wanted(&runs, &name, effective, before);
            let kept = before.filter(|before| before.same(&wanted)).cloned();
            let wanted = kept.unwrap_or_else(|| {
                generation += 1;
                Arc::new(DesiredServer {
                    generation,
                    cause: occasion.cause(before.map(|before| &**before), &wanted),
                    ..wanted
                })
            });
            next.insert(name, wanted);
        }
        runs.generation = generation;
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

    /// The current content of the files, and whether they are readable.
    pub async fn loaded(&self) -> Arc<LoadedSources> {
        self.edits.lock().await.loaded.clone()
    }

    pub fn files(&self) -> &SourceFiles {
        &self.files
    }

    /// Stops every server; later edits are refused.
    pub async fn close(&self) {
        self.record_last().await;
        let mut runs = self.runs.lock();
        runs.closed = true;
        self.desired.send_replace(Arc::default());
    }

    async fn open_edits(&self) -> RegistryResult<tokio::sync::MutexGuard<'_, Edits>> {
        let mut edits = self.edits.lock().await;
        if self.runs.lock().closed {
            return Err(RegistryError::Closed);
        }
        self.finish(&mut edits).await?;
        Ok(edits)
    }

    /// As [`Registry::find`], with the error of an unknown server.
    pub fn found(&self, server: &str) -> RegistryResult<Arc<DesiredServer>> {
        self.find(server)
            .ok_or_else(|| RegistryError::NotFound(server.to_owned()))
    }
}

/// The errors of a change, besides those of the edit itself.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error("the change is not valid")]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Registry(RegistryError),
}

impl<E> From<E> for UpdateError
where
    RegistryError: From<E>,
{
    fn from(error: E) -> UpdateError {
        UpdateError::Registry(error.into())
    }
}
