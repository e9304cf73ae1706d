//! Start, stop and restart. They take effect at once, whatever the store
//! does: the wish list changes first, and the record of the change is written
//! afterwards, again and again until the store takes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{DesiredServer, Registry, RegistryError, RunCause};
use store::{ServerRecord, StoreError, StoreErrorKind};

/// How long an answer waits for the store before it says that the change is
/// not recorded yet.
const RECORD_WAIT: Duration = Duration::from_secs(3);

/// How long a shutdown waits for changes that are not recorded yet.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// What a person has asked of the servers since the start. Behind a lock that
/// is never held across an await, so that no slow store delays a stop.
#[derive(Default)]
pub(super) struct Runs {
    /// Values of [`ServerRecord::run`] that the store does not have yet.
    unrecorded: BTreeMap<Arc<str>, Option<bool>>,
    pub restarts: BTreeMap<Arc<str>, u64>,
    /// Of the newest wish.
    pub generation: u64,
    pub closed: bool,
}

impl Runs {
    /// The last word of a person on whether a server should run.
    pub(super) fn run_of(&self, name: &str, record: Option<&ServerRecord>) -> Option<bool> {
        match self.unrecorded.get(name) {
            Some(run) => *run,
            None => record.and_then(|record| record.run),
        }
    }

    /// What was asked of a server holds under its new name.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(run) = self.unrecorded.remove(from) {
            self.unrecorded.insert(to.into(), run);
        }
    }

    /// A newer word than an earlier start or stop takes its place.
    pub(super) fn forget(&mut self, name: &str) {
        self.unrecorded.remove(name);
    }
}

impl Registry {
    /// Start or stop. What is so already stays as it is.
    pub fn set_run(&self, server: &str, run: bool) -> Result<Arc<DesiredServer>, RegistryError> {
        self.wish(server, run, false)
    }

    /// Ends what runs and starts it anew: one edit, so that what was stopped
    /// is started once.
    pub fn restart(&self, server: &str) -> Result<Arc<DesiredServer>, RegistryError> {
        self.wish(server, true, true)
    }

    fn wish(
        &self,
        server: &str,
        run: bool,
        anew: bool,
    ) -> Result<Arc<DesiredServer>, RegistryError> {
        let mut runs = self.runs.lock();
        if runs.closed {
            return Err(RegistryError::Closed);
        }
        // Under the lock: nobody publishes another list meanwhile.
        let before = self.found(server)?;
        if let Ok(spec) = &before.spec {
            let run = (run != spec.enabled).then_some(run);
            runs.unrecorded.insert(before.name.clone(), run);
        }
        let restarts = runs.restarts.entry(before.name.clone()).or_default();
        *restarts += u64::from(anew);
        let wanted = DesiredServer {
            id: before.id,
            name: before.name.clone(),
            run: run && before.spec.is_ok(),
            spec: before.spec.clone(),
            generation: runs.generation + 1,
            asks: before.asks,
            restarts: runs.restarts[&before.name],
            source: before.source.clone(),
            shadows: before.shadows.clone(),
            cause: match (anew, run) {
                (true, _) => RunCause::Restart,
                (false, true) => RunCause::Start,
                (false, false) => RunCause::Stop,
            },
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

    /// Waits a moment for the store to record starts and stops; why it has
    /// not, if it has not. The change is in force either way, and recorded
    /// once the store can.
    pub async fn recorded(&self) -> Result<(), String> {
        match tokio::time::timeout(RECORD_WAIT, self.record_runs()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.kind.in_public()),
            Err(_) => Err("the store does not answer".into()),
        }
    }

    /// Writes to the store what it does not have yet. May be dropped at any
    /// point: what was not confirmed is written again.
    pub(super) async fn record_runs(&self) -> Result<(), StoreError> {
        if !self.has_unrecorded() {
            return Ok(());
        }
        let mut edits = self.edits.lock().await;
        let pending = self.runs.lock().unrecorded.clone();
        let mut changed = Vec::new();
        for (name, run) in &pending {
            let record = edits.records.get(&**name);
            changed.extend(
                record
                    .filter(|record| record.run != *run)
                    .map(|record| ServerRecord {
                        run: *run,
                        ..record.clone()
                    }),
            );
        }
        if !changed.is_empty() {
            match self.store.put_servers(&changed).await {
                Ok(()) => edits.know(changed),
                Err(error) => {
                    // Another process has changed the records: the next
                    // attempt starts from what they are now.
                    if matches!(error.kind, StoreErrorKind::Conflict { .. }) {
                        let records = self.store.servers().await?;
                        edits.records.clear();
                        edits.know(records);
                    }
                    return Err(error);
                }
            }
        }
        // A newer word may have come meanwhile.
        let known = |name: &Arc<str>, run: &Option<bool>| pending.get(name) == Some(run);
        self.runs
            .lock()
            .unrecorded
            .retain(|name, run| !known(name, run));
        Ok(())
    }

    /// Before the end: what is not recorded now is lost.
    pub(super) async fn record_last(&self) {
        let recorded = tokio::time::timeout(LAST_WAIT, self.record_runs()).await;
        if !matches!(recorded, Ok(Ok(()))) {
            let names: Vec<_> = self.runs.lock().unrecorded.keys().cloned().collect();
            tracing::warn!("starts and stops of {names:?} could not be recorded");
        }
    }
}
