//! A store, in files or in a database. Its operations are in `operations`, once
//! for both; the rules of records are in `rules`.

use std::path::Path;
use std::sync::Arc;

use super::json::{JsonStore, Sizes};
use super::lock::{DirectoryLock, make_directory};
use super::postgres::{PostgresStore, RecordTable};
use super::quota::Quota;
use super::records::*;
use super::rules::Ruling;
use super::state::StoreState;
use super::{
    DuringOperation, GrantDirectory, KeyDigest, StoreErrorKind, StoreResult, Timestamp, UserLimits,
};
use config::settings::{Settings, StorageType};
use config::{DatabaseSchema, Secret, ServerName};

/// The records, keys and grants of a Portway.
pub struct Store {
    pub(super) backend: Backend,
    /// The limits of one user.
    limits: Option<UserLimits>,
    /// The last field, so that the lock is released after the backend has ended.
    _lock: Option<DirectoryLock>,
}

/// The two kinds of store.
pub(super) enum Backend {
    Files(JsonStore),
    Database(PostgresStore),
}

/// An open store, with warnings for a person.
pub struct OpenedStore {
    pub store: Store,
    pub warnings: Vec<String>,
}

/// Opens the store that the settings name. The process holds the data directory
/// while the store lives, even where the records are elsewhere: the admin token
/// is there.
pub async fn open(settings: &Settings) -> StoreResult<OpenedStore> {
    let directory = &settings.data_dir;
    let mut opened = if settings.storage == StorageType::Json {
        Store::open_files(directory)?
    } else {
        let lock = lock(directory)?;
        let url = settings.supabase_db_url.as_ref().ok_or_else(|| {
            StoreErrorKind::Setup("SUPABASE_DB_URL is not set".into()).during("open the database")
        })?;
        let mut store = Store::open_database(url, &settings.supabase_db_schema).await?;
        store._lock = Some(lock);
        let warnings = Vec::new();
        OpenedStore { store, warnings }
    };
    opened.store.limits = Some(settings.limits.users);
    Ok(opened)
}

fn lock(directory: &Path) -> StoreResult<DirectoryLock> {
    make_directory(directory)
        .and_then(|()| DirectoryLock::take(directory))
        .during("open the data directory")
}

impl Store {
    /// Locks the directory for this process and loads it. Blocks on the disk.
    pub fn open_files(directory: &Path) -> StoreResult<OpenedStore> {
        Self::open_files_with(directory, Sizes::default())
    }

    pub(super) fn open_files_with(directory: &Path, sizes: Sizes) -> StoreResult<OpenedStore> {
        let lock = lock(directory)?;
        let opened = JsonStore::open(directory, sizes);
        let (files, warnings) = opened.during("open the data directory")?;
        let store = Store {
            backend: Backend::Files(files),
            limits: None,
            _lock: Some(lock),
        };
        Ok(OpenedStore { store, warnings })
    }

    /// Connects, brings the tables up to date and loads the grants.
    pub async fn open_database(url: &Secret, schema: &DatabaseSchema) -> StoreResult<Store> {
        let opened = PostgresStore::open(url, schema).await;
        let database = opened.map_err(|fault| fault.during("open the database"))?;
        Ok(Store {
            backend: Backend::Database(database),
            limits: None,
            _lock: None,
        })
    }

    pub(super) fn grants(&self) -> &GrantDirectory {
        match &self.backend {
            Backend::Files(files) => &files.grants,
            Backend::Database(database) => &database.mirror.grants,
        }
    }

    /// Reads from a state that has at least the selected records.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: RecordSelection,
        read: impl Fn(&StoreState) -> T + Send + Sync + 'static,
    ) -> StoreResult<T> {
        match &self.backend {
            Backend::Files(files) => Ok(read(&files.state())),
            Backend::Database(database) => database.read(operation, needs, read).await,
        }
    }

    /// Runs a rule and saves its steps, all or none. With a user, the records
    /// of that user must stay within the limits. Once this returns, no call
    /// uses access that the change removed. The rule may run again.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: RecordSelection,
        user: Option<Arc<str>>,
        rule: impl Fn(&StoreState) -> Ruling<T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        let user = user.filter(|user| **user != *ADMIN);
        let quota: Quota = user.zip(self.limits);
        match &self.backend {
            Backend::Files(files) => files.change(operation, quota, rule).await,
            Backend::Database(database) => database.change(operation, needs, quota, rule).await,
        }
    }

    pub(super) async fn list<R: RecordTable>(
        &self,
        operation: &'static str,
        scope: &OwnerScope,
        page: Page,
    ) -> StoreResult<Listing<R>> {
        match &self.backend {
            Backend::Files(files) => Ok(files.list(scope, page)),
            Backend::Database(database) => database.list(operation, scope, page).await,
        }
    }

    /// Adds the time of the last use, which memory has first.
    pub(super) fn with_last_use(&self, mut entry: Entry) -> Entry {
        entry.key.last_used_at = self.last_use(entry.id).max(entry.key.last_used_at);
        entry
    }

    pub(super) fn last_use(&self, entry: EntryId) -> Option<Timestamp> {
        self.grants().of_entry(entry)?.last_used()
    }
}

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

impl RecordSelection {
    /// The selection of a create.
    pub(super) fn creating(kind: RecordKind, request: Option<Idempotency>) -> RecordSelection {
        RecordSelection {
            create: Some((kind, request)),
            ..RecordSelection::default()
        }
    }

    /// Selects an entry of one owner.
    pub(super) fn of_entry(scope: &OwnerScope, id: EntryId) -> RecordSelection {
        RecordSelection {
            owner: scope.user(),
            entry: Some(id),
            ..RecordSelection::default()
        }
    }

    pub(super) fn with_bindings(
        scope: &OwnerScope,
        id: EntryId,
        new: &[NewBinding],
    ) -> RecordSelection {
        RecordSelection {
            bindings: true,
            tools: new.iter().map(|one| one.tool).collect(),
            ..RecordSelection::of_entry(scope, id)
        }
    }

    /// Selects a tool of one owner, which may get another name.
    pub(super) fn of_tool(
        scope: &OwnerScope,
        id: ToolId,
        name: Option<&String>,
    ) -> RecordSelection {
        RecordSelection {
            owner: scope.user(),
            bound_tool: Some((id, name.cloned())),
            ..RecordSelection::default()
        }
    }

    pub(super) fn of_instance(named: &InstanceName) -> RecordSelection {
        RecordSelection {
            instance: Some(*named),
            ..RecordSelection::default()
        }
    }

    pub(super) fn of_servers(names: impl Iterator<Item = ServerName>) -> RecordSelection {
        RecordSelection {
            servers: names.collect(),
            ..RecordSelection::default()
        }
    }
}

/// The kind of a record to create, which needs an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Tool,
    Entry,
    Instance,
}
