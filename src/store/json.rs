//! The store in files. Everything is in memory; one thread owns the disk. It
//! takes all writes that wait, applies them to a copy, saves once, and only
//! then shows the copy and answers: a failed save has changed nothing.

mod answers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, oneshot};

use super::lock::{DirectoryLock, make_directory};
use super::records::{Entry, EntryId};
use super::rules::Ruling;
use super::snapshot::SnapshotFile;
use super::state::{State, Step};
use super::{Directory, Grant, StoreChange, StoreError, StoreErrorKind};

/// Writes that may wait for the disk at a time.
const QUEUE: usize = 1024;

/// A disk that takes longer is as good as gone.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// How long the backup may stay behind.
const BACKUP_AFTER: Duration = Duration::from_secs(1);

/// Changes that others may not have heard of yet.
const CHANGES: usize = 4096;

/// Looks at the state and returns what it comes to; how to answer once that
/// is saved, or has failed to be, is part of it.
type Job = Box<dyn FnOnce(&State) -> (Vec<Step>, Answer) + Send>;
type Answer = Box<dyn FnOnce(Result<Replaced, StoreErrorKind>) + Send>;

/// The grants that a save has put out of force.
type Replaced = Arc<Vec<Arc<Grant>>>;

pub struct JsonStore {
    state: Arc<Mutex<State>>,
    grants: Arc<Directory>,
    changes: broadcast::Sender<StoreChange>,
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
        let file = SnapshotFile::new(directory, "mcp_instances.json");
        let loaded = file.load::<State>()?;
        let state = loaded.data.unwrap_or_default();
        if loaded.recovered {
            file.save(&state)?;
        }
        let grants = Arc::new(Directory::default());
        let entries = state.entries.keys();
        grants.replace(entries.map(|id| (*id, state.grant(*id))).collect());
        let state = Arc::new(Mutex::new(state));
        let (jobs, queue) = sync_channel(QUEUE);
        let (changes, _) = broadcast::channel(CHANGES);
        let writer = Writer {
            file,
            state: state.clone(),
            grants: grants.clone(),
            changes: changes.clone(),
            backup: None,
        };
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&queue))
            .map_err(|error| StoreErrorKind::io(directory, error))?;
        Ok(Opened {
            store: JsonStore {
                state,
                grants,
                changes,
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

    /// With the moment of its last use, which memory knows first.
    fn used(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        let grant = self.grants.of_entry(entry.id);
        let used = grant.and_then(|grant| grant.last_used());
        entry.key.last_used_at = used.max(entry.key.last_used_at);
        entry
    }

    fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// Runs a change. When it is answered, nothing passes any more on the
    /// strength of what it took away.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        rule: impl FnOnce(&State) -> Ruling<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answered) = oneshot::channel();
        let job: Job = Box::new(move |state| {
            let (outcome, steps) = match rule(state) {
                Ok((value, steps)) => (Ok(value), steps),
                Err(kind) => (Err(kind), Vec::new()),
            };
            let answer: Answer = Box::new(move |saved| {
                let outcome = outcome.and_then(|value| saved.map(|old| (value, old)));
                // The caller may have gone; the write stays.
                let _ = reply.send(outcome);
            });
            (steps, answer)
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
        let outcome = match tokio::time::timeout(WRITE_LIMIT, answered).await {
            Ok(Ok(outcome)) => outcome.map_err(|kind| kind.during(operation)),
            Ok(Err(_)) => Err(fail("the store is closed")),
            Err(_) => Err(fail("the disk does not answer")),
        };
        let (value, replaced) = outcome?;
        Directory::settle(&replaced).await;
        Ok(value)
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
    grants: Arc<Directory>,
    changes: broadcast::Sender<StoreChange>,
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
        let mut state = lock(&self.state).clone();
        let (mut steps, mut answers) = (Vec::new(), Vec::new());
        for job in jobs {
            let (its, answer) = job(&state);
            for step in &its {
                state.apply(step);
            }
            steps.extend(its);
            answers.push(answer);
        }
        let saved = match steps.is_empty() {
            true => Ok(Replaced::default()),
            false => self.save_state(state).map(|()| self.publish(&steps)),
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

    /// Puts in force what has been saved.
    fn publish(&self, steps: &[Step]) -> Replaced {
        let state = lock(&self.state).clone();
        let touched: BTreeSet<EntryId> =
            steps.iter().flat_map(|step| state.touched(step)).collect();
        let grants = touched.iter().map(|id| (*id, state.grant(*id)));
        let replaced = self.grants.replace(grants.collect());
        for id in touched {
            // Nobody may be listening.
            let _ = self.changes.send(StoreChange::Entry(id));
        }
        let _ = self.changes.send(StoreChange::Records);
        Arc::new(replaced)
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
