//! Edits of the files, one server at a time. A concurrent edit by a person is
//! never lost: the change is made again on the new content.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use super::database;
use super::sources::{LoadedSources, SourceFiles, dialect, read_file, text_of};
use config::edit::{self, EditError};
use config::layers::{self, Source, SourceKind};
use config::{Definition, ServerSpec, parse_file};
use store::{ReadError, ReplaceError, Store, StoreError};

/// A file that Portway creates may contain secrets.
const NEW_FILE_MODE: u32 = 0o600;

/// How often a change is retried after a concurrent edit.
pub(super) const TRIES: usize = 5;

/// The delay between two checks of a file that is being saved.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{}: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("{} keeps changing while it is edited; try again", path.display())]
    Busy { path: PathBuf },
    #[error("the definition is gone from {}", path.display())]
    Gone { path: PathBuf },
    #[error("{} defines a server called {name:?} already", path.display())]
    Taken { path: PathBuf, name: String },
    /// The cause is temporary and has nothing to do with the file.
    #[error("{} cannot be edited now ({reason}); try again", path.display())]
    Passing { path: PathBuf, reason: String },
    #[error("{}: no space is left on the disk", path.display())]
    Full { path: PathBuf },
    /// An error of the database, for definitions that are in it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The current content of a file, to be changed and saved.
pub(super) struct Draft<'f> {
    files: &'f SourceFiles,
    pub source: Source,
    /// The content on disk; `None` if there is no file.
    found: Option<Vec<u8>>,
    pub text: String,
    /// Set if the source is the database.
    store: Option<&'f Store>,
}

impl SourceFiles {
    /// The current content of a source. If the file is in the middle of a save,
    /// this waits.
    pub(super) async fn draft<'f>(
        &'f self,
        source: &Source,
        loaded: &LoadedSources,
        store: &'f Store,
    ) -> Result<Draft<'f>, SourceError> {
        if source.kind == SourceKind::Database {
            let found = database::document(store).await?.unwrap_or_default();
            return Ok(Draft {
                found: Some(found.clone().into_bytes()),
                store: Some(store),
                ..self.draft_of(source, found)
            });
        }
        let state = loaded.files.get(&source.path);
        let good = state.map(|state| &*state.good).unwrap_or_default();
        let mut waits = TRIES;
        loop {
            let found = read_file(&source.path).await;
            let found = found.map_err(|error| match error {
                ReadError::Io(error) => failed(source, &error),
                error => unusable(source, error),
            })?;
            // A deleted file is restored with its last content and the edit.
            let base = found.clone().unwrap_or_else(|| good.to_vec());
            let whole = text_of(&base).and_then(|text| {
                // Any text is a valid start where no file was.
                if !good.is_empty() && base != good {
                    parse_file(text, dialect(source.kind))?;
                }
                Ok(self.draft_of(source, text.to_owned()))
            });
            match whole {
                Ok(draft) => return Ok(Draft { found, ..draft }),
                Err(problem) if waits == 0 => return Err(unusable(source, problem)),
                Err(_) => waits -= 1,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A draft that starts from a text and is never saved.
    pub(super) fn draft_of(&self, source: &Source, text: String) -> Draft<'_> {
        Draft {
            files: self,
            source: source.clone(),
            found: None,
            text,
            store: None,
        }
    }
}

impl<'f> Draft<'f> {
    /// Whether the file has an entry of that name, valid or not.
    pub(super) fn has(&self, name: &str) -> Result<bool, SourceError> {
        let place = self.place(name);
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        edit::has_server(&self.text, &place).map_err(|error| unusable(&self.source, error))
    }

    /// The file's definition of a server, if it has one.
    pub(super) fn definition(&self, name: &str) -> Result<Option<Definition>, SourceError> {
        let parsed = parse_file(&self.text, dialect(self.source.kind));
        let mut parsed = parsed.map_err(|problem| unusable(&self.source, problem))?;
        if self.source.kind != SourceKind::KodeGlobalProject {
            return Ok(parsed.servers.swap_remove(name));
        }
        let key = layers::project_key(&parsed, self.files.project()).map(str::to_owned);
        let section = key.and_then(|key| parsed.projects.get_mut(&key));
        Ok(section.and_then(|servers| servers.swap_remove(name)))
    }

    /// The definition of a server that is valid except for its name.
    pub(super) fn misnamed(&self, name: &str) -> Result<Option<ServerSpec>, SourceError> {
        let stand_in = format!("renamed-{}", uuid::Uuid::new_v4());
        let mut renamed = self.files.draft_of(&self.source, self.text.clone());
        renamed.rename(name, &stand_in)?;
        let definition = renamed.definition(&stand_in)?;
        Ok(definition.and_then(Result::ok).map(|(_, spec)| spec))
    }

    pub(super) fn set(&mut self, name: &str, spec: &ServerSpec) -> Result<(), SourceError> {
        self.change(name, |text, place| edit::set_server(text, place, spec))
    }

    pub(super) fn rename(&mut self, name: &str, new: &str) -> Result<(), SourceError> {
        self.change(name, |text, place| edit::rename_server(text, place, new))
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), SourceError> {
        self.change(name, |text, place| {
            let missing = || EditError::Missing(name.to_owned());
            edit::remove_server(text, place)?.ok_or_else(missing)
        })
    }

    fn change(
        &mut self,
        name: &str,
        edit: impl FnOnce(&str, &[&str]) -> Result<String, EditError>,
    ) -> Result<(), SourceError> {
        let place = self.place(name);
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        match edit(&self.text, &place) {
            Ok(text) => {
                self.text = text;
                Ok(())
            }
            Err(EditError::Missing(_)) => Err(self.gone()),
            Err(EditError::Taken(name)) => Err(SourceError::Taken {
                path: self.source.path.clone(),
                name,
            }),
            Err(error) => Err(unusable(&self.source, error)),
        }
    }

    /// The path of keys to a server in the file of its source.
    fn place(&self, name: &str) -> Vec<String> {
        let mut place = Vec::new();
        if self.source.kind == SourceKind::KodeGlobalProject {
            let project = self.files.project();
            let parsed = parse_file(&self.text, dialect(self.source.kind)).unwrap_or_default();
            let written = layers::project_key(&parsed, project);
            let key = written.map_or_else(|| project.display().to_string(), str::to_owned);
            place.extend(["projects".to_owned(), key]);
        }
        place.extend(["mcpServers".to_owned(), name.to_owned()]);
        place
    }

    /// The draft that undoes this one after it is saved.
    pub(super) fn reverse(&self) -> Option<Draft<'f>> {
        Some(Draft {
            files: self.files,
            source: self.source.clone(),
            found: Some(self.text.clone().into_bytes()),
            text: String::from_utf8(self.found.clone()?).ok()?,
            store: self.store,
        })
    }

    /// Saves the changed text. False if the file has changed since the draft
    /// was made: the caller then makes a new draft.
    pub(super) async fn save(self) -> Result<bool, SourceError> {
        let (source, text) = (self.source, self.text);
        if self.found.as_deref() == Some(text.as_bytes()) {
            return Ok(true);
        }
        if let Some(store) = self.store {
            let found = String::from_utf8(self.found.unwrap_or_default());
            let found = found.map_err(|error| unusable(&source, error))?;
            return match database::save(store, &found, &text).await {
                Ok(saved) => Ok(saved),
                Err(database::SaveError::Store(error)) => Err(error.into()),
                Err(error) => Err(unusable(&source, error)),
            };
        }
        let (target, found) = (source.path.clone(), self.found);
        let write =
            move || store::replace(&target, found.as_deref(), text.as_bytes(), NEW_FILE_MODE);
        let written = tokio::task::spawn_blocking(write).await;
        match written.map_err(|error| unusable(&source, error))? {
            Ok(()) => Ok(true),
            Err(ReplaceError::Changed) => Ok(false),
            Err(ReplaceError::Io(error)) => Err(failed(&source, &error)),
        }
    }

    pub(super) fn gone(&self) -> SourceError {
        SourceError::Gone {
            path: self.source.path.clone(),
        }
    }
}

fn failed(source: &Source, error: &io::Error) -> SourceError {
    let path = source.path.clone();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => SourceError::Full { path },
        _ if store::is_passing(error) => SourceError::Passing {
            path,
            reason: error.to_string(),
        },
        _ => unusable(source, error),
    }
}

fn unusable(source: &Source, reason: impl ToString) -> SourceError {
    SourceError::Unusable {
        path: source.path.clone(),
        reason: reason.to_string(),
    }
}
