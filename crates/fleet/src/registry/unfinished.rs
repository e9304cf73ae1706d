//! Edits that change a definition and the records of its server. No transaction
//! spans the file and the store, so the edit is noted in the data directory
//! before it begins. Once the file is saved the edit is valid: if the store
//! does not follow at once, or Portway is killed in between, the rest is done
//! later.

use serde::{Deserialize, Serialize};

use super::rewrite::Draft;
use super::{Edits, Registry, RegistryError, RegistryResult};
use config::ServerName;
use config::layers::SourceKind;
use store::{ServerRecord, StoreError, StoreErrorKind};

/// A server that is removed from its source, or renamed there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UnfinishedEdit {
    source: SourceKind,
    from: ServerName,
    to: Option<ServerName>,
    /// The source is known to contain the change.
    #[serde(skip)]
    saved: bool,
}

impl Registry {
    /// Saves a draft in which a server is renamed or removed, and changes its
    /// records accordingly. False if the draft is outdated.
    pub(super) async fn save_moved(
        &self,
        edits: &mut Edits,
        record: &ServerRecord,
        to: Option<&ServerName>,
        draft: Draft<'_>,
    ) -> RegistryResult<bool> {
        // A store that accepts no writes refuses this one, while nothing has
        // changed yet.
        self.store.put_server(record).await?;
        let edit = UnfinishedEdit {
            source: draft.source.kind,
            from: record.name.clone(),
            to: to.cloned(),
            saved: false,
        };
        self.note(Some(&edit)).await?;
        let undo = draft.reverse();
        match draft.save().await {
            Ok(true) => {
                self.saved(edits, edit);
                match self.finish(edits).await {
                    Err(RegistryError::Store(error)) if is_final(&error) => {
                        self.undo(edits, record, to, undo).await;
                        return Err(error.into());
                    }
                    Err(error) => tell(record, &error),
                    Ok(()) => {}
                }
                Ok(true)
            }
            Ok(false) => {
                self.note(None).await?;
                Ok(false)
            }
            // The file may have been replaced in spite of the error.
            Err(failure) => {
                edits.unfinished = Some(edit);
                if let Err(error) = self.finish(edits).await {
                    tell(record, &error);
                }
                Err(failure.into())
            }
        }
    }

    /// The definition has moved: updates the state in memory.
    fn saved(&self, edits: &mut Edits, edit: UnfinishedEdit) {
        let record = edits.records.remove(edit.from.as_str());
        if let Some(to) = &edit.to {
            self.runs.lock().rename(edit.from.as_str(), to.as_str());
            let named = record.map(|record| ServerRecord {
                name: to.clone(),
                ..record
            });
            edits.know(named.into_iter().collect());
        }
        edits.unfinished = Some(UnfinishedEdit {
            saved: true,
            ..edit
        });
    }

    /// Restores the definition, because the store will never accept the change.
    async fn undo(
        &self,
        edits: &mut Edits,
        record: &ServerRecord,
        to: Option<&ServerName>,
        undo: Option<Draft<'_>>,
    ) {
        let undone = match undo {
            Some(undo) => undo.save().await,
            None => Ok(false),
        };
        if !matches!(undone, Ok(true)) {
            tracing::error!(
                server = %record.name,
                "the definition of {} could not be put back", record.name
            );
        }
        if let Some(to) = to {
            edits.records.remove(to.as_str());
            self.runs.lock().rename(to.as_str(), record.name.as_str());
        }
        edits.know(vec![record.clone()]);
        self.forget_note(edits).await;
    }

    /// Completes an interrupted edit, if there is one. The edit is valid if its
    /// source contains the change.
    pub(super) async fn finish(&self, edits: &mut Edits) -> RegistryResult<()> {
        let Some(edit) = edits.unfinished.clone() else {
            return Ok(());
        };
        if !edit.saved {
            let source = self.files.source(edit.source);
            let draft = self.draft(&source, edits).await?;
            if draft.has(edit.from.as_str())? {
                self.forget_note(edits).await;
                return Ok(());
            }
            self.saved(edits, edit.clone());
        }
        self.store
            .server_moved(&edit.from, edit.to.as_ref())
            .await?;
        self.forget_note(edits).await;
        Ok(())
    }

    /// Retries `finish`; the original failure was reported when it happened.
    pub(super) async fn finish_edit(&self) {
        let mut edits = self.edits.lock().await;
        if edits.unfinished.is_some() && self.finish(&mut edits).await.is_ok() {
            tracing::info!("the unfinished edit is finished");
        }
    }

    async fn forget_note(&self, edits: &mut Edits) {
        edits.unfinished = None;
        // A note that remains is checked again at the next start.
        if let Err(error) = self.note(None).await {
            tracing::warn!("{error}");
        }
    }

    async fn note(&self, edit: Option<&UnfinishedEdit>) -> Result<(), StoreError> {
        let text = |edit| serde_json::to_vec(edit).expect("names are text");
        let note = edit.map(text);
        let directory = self.data_dir.clone();
        let write = move || store::note_unfinished_edit(&directory, note.as_deref());
        on_the_disk(write).await
    }

    /// The unfinished edit that an earlier process noted.
    pub(super) async fn noted(&self) -> Result<Option<UnfinishedEdit>, StoreError> {
        let directory = self.data_dir.clone();
        let note = on_the_disk(move || store::unfinished_edit(&directory)).await?;
        Ok(note.and_then(|note| serde_json::from_slice(&note).ok()))
    }
}

async fn on_the_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// Whether the store has certainly changed nothing, and will not later.
fn is_final(error: &StoreError) -> bool {
    use StoreErrorKind::{Full, Io, Unavailable};
    !matches!(error.kind, Unavailable(_) | Full | Io { .. })
}

fn tell(record: &ServerRecord, error: &RegistryError) {
    tracing::warn!(
        server = %record.name,
        "the edit of server {} is not finished, trying again: {error}", record.name
    );
}
