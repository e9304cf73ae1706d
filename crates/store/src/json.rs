//! The store in files. All records are in memory; one thread owns the disk. It
//! takes all waiting writes, applies them to a copy, saves once, and only then
//! publishes the copy and replies: a failed save has changed nothing.

mod disk;
mod location;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot};

use super::postgres::RecordTable;
use super::quota::{self, Quota, Usage};
use super::records::{EntryId, Listing, OwnerScope, Page};
use super::rules::Ruling;
use super::state::{Step, StoreState};
use super::{
    AtPath, DuringOperation, Grant, GrantDirectory, StoreChange, StoreErrorKind, StoreResult,
};

pub(super) use disk::{Disk, Sizes};
pub(super) use location::locate;

/// The number of writes that may wait for the disk.
const QUEUE: usize = 1024;

/// A disk that takes longer is treated as failed.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// How long a small snapshot may be out of date.
const COMPACT_AFTER: Duration = Duration::from_secs(1);

/// How long the saved times of last use may be out of date.
const USED_AFTER: Duration = Duration::from_secs(60);

/// The interval at which a failed disk is tried again.
const PROBE_AFTER: Duration = Duration::from_secs(1);

/// The capacity of the channel of changes.
const CHANGES: usize = 4096;

/// Computes the steps of a change from the state, and the function that replies
/// once they are saved or the save has failed.
type WriteJob = Box<dyn FnOnce(&StoreState) -> (Vec<Step>, SaveReply) + Send>;
type SaveReply = Box<dyn FnOnce(Result<ReplacedGrants, StoreErrorKind>) + Send>;

/// The grants that a save has replaced.
type ReplacedGrants = Arc<Vec<Arc<Grant>>>;

pub(super) struct JsonStore {
    state: Arc<Mutex<StoreState>>,
    pub(super) grants: Arc<GrantDirectory>,
    pub(super) changes: broadcast::Sender<StoreChange>,
    pub(super) trouble: LastSaveError,
    jobs: Option<SyncSender<WriteJob>>,
    writer: Option<JoinHandle<()>>,
}

/// Why the last write failed, until a write succeeds again.
pub(super) type LastSaveError = Arc<Mutex<Option<String>>>;

impl JsonStore {
    /// Loads a directory that this process has locked, with warnings for a
    /// person.
    pub(super) fn open(
        directory: &Path,
        sizes: Sizes,
    ) -> Result<(JsonStore, Vec<String>), StoreErrorKind> {
        let (disk, state, warnings) = Disk::open(directory, sizes)?;
        let grants = Arc::new(GrantDirectory::default());
        let entries = state.entries.keys();
        grants.replace(entries.map(|id| (*id, state.grant(*id))).collect());
        let state = Arc::new(Mutex::new(state));
        let (jobs, queue) = sync_channel(QUEUE);
        let (changes, _) = broadcast::channel(CHANGES);
        let trouble = LastSaveError::default();
        let writer = DiskWriter {
            disk,
            trouble: trouble.clone(),
            probe: None,
            state: state.clone(),
            grants: grants.clone(),
            changes: changes.clone(),
            quiet: None,
            used: Instant::now() + USED_AFTER,
        };
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&queue))
            .at(directory)?;
        let store = JsonStore {
            state,
            grants,
            changes,
            trouble,
            jobs: Some(jobs),
            writer: Some(writer),
        };
        Ok((store, warnings))
    }

    pub(super) fn state(&self) -> StoreState {
        self.state.lock().clone()
    }

    pub(super) fn list<R: RecordTable>(&self, scope: &OwnerScope, page: Page) -> Listing<R> {
        let state = self.state();
        let (mut items, mut total) = (Vec::new(), 0);
        for record in R::all(&state).filter(|record| scope.includes(record.owner())) {
            if total >= page.skip && (items.len() as u64) < page.limit {
                items.push(record.clone());
            }
            total += 1;
        }
        Listing { items, total }
    }

    pub(super) async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        quota: Quota,
        rule: impl FnOnce(&StoreState) -> Ruling<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.write(operation, move |state| {
            let (value, steps) = rule(state)?;
            if let Some((_, limits)) = quota {
                quota::admit_steps(&limits, state, &steps, |owner| Usage::of(state, owner))?;
            }
            Ok((value, steps))
        })
        .await
    }

    /// Runs a change. Once this returns, no call uses access that the change
    /// removed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        rule: impl FnOnce(&StoreState) -> Ruling<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (reply, answered) = oneshot::channel();
        let job: WriteJob = Box::new(move |state| {
            let (outcome, steps) = match rule(state) {
                Ok((value, steps)) => (Ok(value), steps),
                Err(kind) => (Err(kind), Vec::new()),
            };
            let answer: SaveReply = Box::new(move |saved| {
                let outcome = outcome.and_then(|value| saved.map(|old| (value, old)));
                // The caller may have gone; the write stays.
                let _ = reply.send(outcome);
            });
            (steps, answer)
        });
        let fail = |reason: &str| StoreErrorKind::Unavailable(reason.to_owned()).during(operation);
        let jobs = self.jobs.as_ref();
        let jobs = jobs.ok_or_else(|| fail("the store is closed"))?;
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => fail("too many writes wait for the disk"),
            TrySendError::Disconnected(_) => fail("the store is closed"),
        })?;
        let outcome = match tokio::time::timeout(WRITE_LIMIT, answered).await {
            Ok(Ok(outcome)) => outcome.during(operation),
            Ok(Err(_)) => Err(fail("the store is closed")),
            Err(_) => Err(fail("the disk does not answer")),
        };
        let (value, replaced) = outcome?;
        GrantDirectory::settle(&replaced).await.during(operation)?;
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

struct DiskWriter {
    disk: Disk,
    state: Arc<Mutex<StoreState>>,
    grants: Arc<GrantDirectory>,
    changes: broadcast::Sender<StoreChange>,
    /// When a small snapshot is rewritten.
    quiet: Option<Instant>,
    /// When the times of last use are saved.
    used: Instant,
    trouble: LastSaveError,
    /// When a failed disk is tried again.
    probe: Option<Instant>,
}

impl DiskWriter {
    fn run(mut self, queue: &Receiver<WriteJob>) {
        loop {
            let due = [self.quiet, self.probe].into_iter().flatten();
            let next = due.fold(self.used, Instant::min);
            match queue.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(job) => self.save(std::iter::once(job).chain(queue.try_iter()).take(QUEUE)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.close(),
            }
            self.tidy();
        }
    }

    /// Saves all jobs in one write.
    fn save(&mut self, jobs: impl Iterator<Item = WriteJob>) {
        let before = self.state.lock().clone();
        let mut state = before.clone();
        let (mut steps, mut answers) = (Vec::new(), Vec::new());
        for job in jobs {
            let (its, answer) = job(&state);
            for step in &its {
                state.apply(step);
            }
            steps.extend(its);
            answers.push(answer);
        }
        let saved = if steps.is_empty() {
            Ok(ReplacedGrants::default())
        } else {
            self.save_state(&before, &steps, state).map(|()| {
                drop(before);
                self.publish(&steps)
            })
        };
        for answer in answers {
            answer(saved.clone());
        }
    }

    fn save_state(
        &mut self,
        before: &StoreState,
        steps: &[Step],
        state: StoreState,
    ) -> Result<(), StoreErrorKind> {
        let saved = self.disk.save(before, steps, &state);
        self.note(&saved);
        saved?;
        *self.state.lock() = state;
        self.quiet
            .get_or_insert_with(|| Instant::now() + COMPACT_AFTER);
        Ok(())
    }

    /// Makes saved steps take effect.
    fn publish(&self, steps: &[Step]) -> ReplacedGrants {
        let state = self.state.lock().clone();
        let touched: BTreeSet<EntryId> =
            steps.iter().flat_map(|step| state.touched(step)).collect();
        let grants = touched.iter().map(|id| (*id, state.grant(*id)));
        let replaced = self.grants.replace(grants.collect());
        for id in touched {
            // There may be no subscriber.
            let _ = self.changes.send(StoreChange::Entry(id));
        }
        let _ = self.changes.send(StoreChange::Records);
        Arc::new(replaced)
    }

    /// Records whether the disk works, for `/healthz`.
    fn note(&mut self, outcome: &Result<(), StoreErrorKind>) {
        let mut trouble = self.trouble.lock();
        match outcome {
            Ok(()) => {
                if trouble.take().is_some() {
                    tracing::info!("the data directory can be written again");
                }
                self.probe = None;
            }
            Err(kind) => {
                if trouble.is_none() {
                    tracing::error!("the data directory cannot be written: {kind}");
                }
                let reason = kind.in_public();
                *trouble = Some(format!("changes cannot be saved: {reason}"));
                self.probe = Some(Instant::now() + PROBE_AFTER);
            }
        }
    }

    fn tidy(&mut self) {
        let now = Instant::now();
        if self.probe.is_some_and(|at| at <= now) {
            let probed = self.disk.probe();
            self.note(&probed);
        }
        if self.used <= now {
            self.save_used();
        }
        let quiet = self.quiet.take_if(|at| *at <= now).is_some();
        if self.disk.is_due() || quiet && self.disk.is_small() {
            self.compact();
        }
    }

    fn close(mut self) {
        self.save_used();
        if self.disk.is_dirty() {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let state = self.state.lock().clone();
        let compacted = self.disk.compact(&state);
        self.note(&compacted);
    }

    /// Saves the times of last use, which requests only set in memory.
    fn save_used(&mut self) {
        self.used = Instant::now() + USED_AFTER;
        let before = self.state.lock().clone();
        let newer = |grant: Arc<Grant>| {
            let used = grant.last_used()?;
            let known = before.entries.get(&grant.entry)?.entry.key.last_used_at;
            (known < Some(used)).then_some((grant.entry, used))
        };
        let mut used: Vec<_> = self.grants.all().into_iter().filter_map(newer).collect();
        if used.is_empty() {
            return;
        }
        used.sort_unstable();
        let step = Step::Used(used);
        let mut state = before.clone();
        state.apply(&step);
        if let Err(error) = self.save_state(&before, &[step], state) {
            tracing::warn!("when keys were last used could not be saved: {error}");
        }
    }
}
