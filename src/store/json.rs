//! The store in files. Everything is in memory; one thread owns the disk. It
//! takes all writes that wait, applies them to a copy, saves once, and only
//! then shows the copy and answers: a failed save has changed nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::lock::{DirectoryLock, make_directory};
use super::snapshot::SnapshotFile;
use super::{ServerRecord, Store, StoreError, StoreErrorKind};
use crate::config::ServerName;

/// Writes that may wait for the disk at a time.
const QUEUE: usize = 1024;

/// A disk that takes longer is as good as gone.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// How long the backup may stay behind.
const BACKUP_AFTER: Duration = Duration::from_secs(1);

/// All there is. Collections are shared until written to, so that a copy
/// costs nothing but what changes.
#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    servers: Arc<IndexMap<Uuid, ServerRecord>>,
}

impl State {
    /// Nothing was written to; says no more than that.
    fn untouched_since(&self, before: &State) -> bool {
        Arc::ptr_eq(&self.servers, &before.servers)
    }
}

/// Changes the copy and returns how to answer once it is saved, or has
/// failed to be.
type Job = Box<dyn FnOnce(&mut State) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<(), StoreErrorKind>) + Send>;

pub struct JsonStore {
    state: Arc<Mutex<State>>,
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
    directory: PathBuf,
    /// Last, so that it is released when the writer has ended.
    _lock: DirectoryLock,
}

/// An open store, and what a person should hear about what was found.
pub struct Opened {
    pub store: JsonStore,
    pub warnings: Vec<String>,
}

impl JsonStore {
    /// Takes the directory for this process and loads it. Blocks on the disk.
    pub fn open(directory: &Path) -> Result<Opened, StoreError> {
        Self::try_open(directory).map_err(|kind| kind.during("open the data directory"))
    }

    fn try_open(directory: &Path) -> Result<Opened, StoreErrorKind> {
        make_directory(directory)?;
        let lock = DirectoryLock::take(directory)?;
        let file = SnapshotFile::new(directory, "mcp_servers.json");
        let loaded = file.load::<State>()?;
        let state = loaded.data.unwrap_or_default();
        if loaded.recovered {
            file.save(&state)?;
        }
        let state = Arc::new(Mutex::new(state));
        let (jobs, queue) = sync_channel(QUEUE);
        let writer = Writer {
            file,
            state: state.clone(),
            backup: None,
        };
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&queue))
            .map_err(|error| StoreErrorKind::io(directory, error))?;
        Ok(Opened {
            store: JsonStore {
                state,
                jobs: Some(jobs),
                writer: Some(writer),
                directory: directory.to_owned(),
                _lock: lock,
            },
            warnings: loaded.warnings,
        })
    }

    /// Where it lives; the admin token and the instance id live beside it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// Runs a change. It must check before it touches: what it returns as an
    /// error must have changed nothing.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        change: impl FnOnce(&mut State) -> Result<T, StoreErrorKind> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answered) = oneshot::channel();
        let job: Job = Box::new(move |state| {
            let outcome = change(state);
            Box::new(move |saved| {
                // The caller may have gone; the write stays.
                let _ = reply.send(outcome.and_then(|value| saved.map(|()| value)));
            })
        });
        let fail = |reason: &str| StoreErrorKind::Unavailable(reason.to_owned()).during(operation);
        let jobs = self
            .jobs
            .as_ref()
            .ok_or_else(|| fail("the store is closed"))?;
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => fail("too many writes wait for the disk"),
            TrySendError::Disconnected(_) => fail("the store is closed"),
        })?;
        match tokio::time::timeout(WRITE_LIMIT, answered).await {
            Ok(Ok(outcome)) => outcome.map_err(|kind| kind.during(operation)),
            Ok(Err(_)) => Err(fail("the store is closed")),
            Err(_) => Err(fail("the disk does not answer")),
        }
    }
}

impl Drop for JsonStore {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// A panic elsewhere cannot leave the state half-changed: it is only ever
/// replaced as a whole.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer {
    file: SnapshotFile,
    state: Arc<Mutex<State>>,
    /// The latest snapshot, until the backup has it too.
    backup: Option<(Vec<u8>, Instant)>,
}

impl Writer {
    fn run(mut self, queue: &Receiver<Job>) {
        loop {
            let wait = match &self.backup {
                Some((_, due)) => due.saturating_duration_since(Instant::now()),
                // Nothing to do but wait for work, or for the store to close.
                None => Duration::from_secs(3600),
            };
            match queue.recv_timeout(wait) {
                Ok(job) => self.save(std::iter::once(job).chain(queue.try_iter()).take(QUEUE)),
                Err(RecvTimeoutError::Timeout) => self.back_up(),
                Err(RecvTimeoutError::Disconnected) => return self.back_up(),
            }
        }
    }

    /// One save for all.
    fn save(&mut self, jobs: impl Iterator<Item = Job>) {
        let before = lock(&self.state).clone();
        let mut state = before.clone();
        let answers: Vec<Answer> = jobs.map(|job| job(&mut state)).collect();
        let saved = match state.untouched_since(&before) {
            true => Ok(()),
            false => self.save_state(state),
        };
        for answer in answers {
            answer(saved.clone());
        }
    }

    fn save_state(&mut self, state: State) -> Result<(), StoreErrorKind> {
        let bytes = self.file.save(&state)?;
        *lock(&self.state) = state;
        let due = self.backup.take().map(|(_, due)| due);
        let due = due.unwrap_or_else(|| Instant::now() + BACKUP_AFTER);
        self.backup = Some((bytes, due));
        Ok(())
    }

    fn back_up(&mut self) {
        let Some((bytes, _)) = self.backup.take() else {
            return;
        };
        if let Err(error) = self.file.save_backup(&bytes) {
            tracing::warn!("the backup of the store could not be written: {error}");
        }
    }
}

#[async_trait]
impl Store for JsonStore {
    async fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        Ok(self.state().servers.values().cloned().collect())
    }

    async fn put_servers(&self, records: &[ServerRecord]) -> Result<(), StoreError> {
        let records = records.to_vec();
        self.write("save the server", move |state| {
            let mut owners: HashMap<ServerName, Uuid> = state
                .servers
                .values()
                .map(|record| (record.name.clone(), record.id))
                .collect();
            for record in &records {
                let owner = owners.entry(record.name.clone()).or_insert(record.id);
                if *owner != record.id {
                    let constraint = "the server's name";
                    return Err(StoreErrorKind::Conflict { constraint });
                }
            }
            let servers = Arc::make_mut(&mut state.servers);
            servers.extend(records.into_iter().map(|record| (record.id, record)));
            Ok(())
        })
        .await
    }

    async fn delete_server(&self, name: &ServerName) -> Result<bool, StoreError> {
        let name = name.clone();
        self.write("remove the server", move |state| {
            let id = state
                .servers
                .values()
                .find(|r| r.name == name)
                .map(|r| r.id);
            let Some(id) = id else { return Ok(false) };
            Arc::make_mut(&mut state.servers).shift_remove(&id);
            Ok(true)
        })
        .await
    }
}
