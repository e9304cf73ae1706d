//! Start, stop and restart. They take effect at once, whatever the store does:
//! the desired state changes first, and the record of the change is written
//! afterwards, with retries until the store accepts it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{DesiredServer, Registry, RegistryError, RegistryResult, RunCause};
use store::{ServerRecord, StoreError, StoreErrorKind};

/// How long a response waits for the store before it reports that the change is
/// not recorded yet.
const RECORD_WAIT: Duration = Duration::from_secs(3);

/// How long a shutdown waits for changes that are not recorded yet.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The manual starts, stops and restarts since Portway started. The lock is
/// never held across an await, so that no slow store delays a stop.
#[derive(Default)]
pub(super) struct Runs {
    /// Values of [`ServerRecord::run`] that the store does not have yet.
    unrecorded: BTreeMap<Arc<str>, Option<bool>>,
    pub restarts: BTreeMap<Arc<str>, u64>,
    /// The generation of the newest desired server.
    pub generation: u64,
    pub closed: bool,
}

impl Runs {
    /// A person's latest start or stop of a server.
    pub(super) fn run_of(&self, name: &str, record: Option<&ServerRecord>) -> Option<bool> {
        match self.unrecorded.get(name) {
            Some(run) => *run,
            None => record.and_then(|record| record.run),
        }
    }

    /// Moves a start or stop to the new name of its server.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(run) = self.unrecorded.remove(from) {
            self.unrecorded.insert(to.into(), run);
        }
    }

    /// Drops a start or stop that a newer change overrides.
    pub(super) fn forget(&mut self, name: &str) {
        self.unrecorded.remove(name);
    }
}

impl Registry {
    /// Starts or stops a server; no effect if it is already so.
    pub fn set_run(&self, server: &str, run: bool) -> RegistryResult<Arc<DesiredServer>> {
        self.wish(server, run, false)
    }

    /// Ends the server if it runs, and starts it: one edit, so that a stopped
    /// server is started once.
    pub fn restart(&self, server: &str) -> RegistryResult<Arc<DesiredServer>> {
        self.wish(server, true, true)
    }

    fn wish(&self, server: &str, run: bool, anew: bool) -> RegistryResult<Arc<DesiredServer>> {
        let mut runs = self.runs.lock();
        if runs.closed {
            return Err(RegistryError::Closed);
        }
        // Under the lock: no other list is published meanwhile.
        let before = self.found(server)?;
        if let Ok(spec) = &before.spec {
            let run = (run != spec.enabled).then_some(run);
            runs.unrecorded.insert(before.name.clone(), run);
        }
        let restarts = runs.restarts.entry(before.name.clone()).or_default();
        *restarts += u64::from(anew);
        let wanted = DesiredServer {
            run: run && before.spec.is_ok(),
            generation: runs.generation + 1,
            restarts: runs.restarts[&before.name],
            cause: match (anew, run) {
                (true, _) => RunCause::Restart,
                (false, true) => RunCause::Start,
                (false, false) => RunCause::Stop,
            },
            ..DesiredServer::clone(&before)
        };
        if before.same(&wanted) {
            return Ok(before);
        }
        runs.generation += 1;
        let wanted = Arc::new(wanted);
        self.desired.send_modify(|desired| {
            Arc::make_mut(desired).insert(wanted.name.clone(), wanted.clone());
        });
        Ok(wanted)
    }

    pub(super) fn has_unrecorded(&self) -> bool {
        !self.runs.lock().unrecorded.is_empty()
    }

    /// Waits briefly for the store to record starts and stops; the error is the
    /// reason why it has not. The change is in force either way, and recorded
    /// as soon as the store accepts it.
    pub async fn recorded(&self) -> Result<(), String> {
        match tokio::time::timeout(RECORD_WAIT, self.record_runs()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.kind.in_public()),
            Err(_) => Err("the store does not answer".into()),
        }
    }

    /// Writes unrecorded changes to the store. The caller may drop it at any
    /// point: an unconfirmed change is written again.
    pub(super) async fn record_runs(&self) -> Result<(), StoreError> {
        if !self.has_unrecorded() {
            return Ok(());
        }
        let mut edits = self.edits.lock().await;
        let pending = self.runs.lock().unrecorded.clone();
        let changed = pending.iter().filter_map(|(name, run)| {
            let record = edits.records.get(&**name)?;
            (record.run != *run).then(|| ServerRecord {
                run: *run,
                ..record.clone()
            })
        });
        let changed: Vec<ServerRecord> = changed.collect();
        if !changed.is_empty() {
            match self.store.put_servers(&changed).await {
                Ok(()) => edits.know(changed),
                Err(error) => {
                    // Another process has changed the records: the next attempt
                    // starts from the current ones.
                    if matches!(error.kind, StoreErrorKind::Conflict { .. }) {
                        self.read_records(&mut edits).await?;
                    }
                    return Err(error);
                }
            }
        }
        // A newer start or stop may have arrived meanwhile.
        let known = |name: &Arc<str>, run: &Option<bool>| pending.get(name) == Some(run);
        self.runs
            .lock()
            .unrecorded
            .retain(|name, run| !known(name, run));
        Ok(())
    }

    /// The last attempt before the end: a change not recorded now is lost.
    pub(super) async fn record_last(&self) {
        let recorded = tokio::time::timeout(LAST_WAIT, self.record_runs()).await;
        if !matches!(recorded, Ok(Ok(()))) {
            let names: Vec<_> = self.runs.lock().unrecorded.keys().cloned().collect();
            tracing::warn!("starts and stops of {names:?} could not be recorded");
        }
    }
}
