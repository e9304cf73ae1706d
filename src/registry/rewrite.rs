//! Edits of the files, one server at a time. A person's own edit made at the
//! same moment is never lost: the change is made again on what they wrote.

use std::path::PathBuf;

use super::sources::{Files, Loaded, dialect, read_file};
use crate::config::edit::{self, EditError};
use crate::config::layers::{self, Source, SourceKind};
use crate::config::{Definition, ServerSpec, parse_file};
use crate::store::{self, ReplaceError};

/// A file we make may hold secrets.
const NEW_FILE_MODE: u32 = 0o600;

/// How often a change is made anew on what somebody else has just written.
pub(super) const TRIES: usize = 5;

/// Why a file could not be edited.
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
}

/// A file as it is now, to be changed and put back.
pub(super) struct Draft<'f> {
    files: &'f Files,
    source: Source,
    /// What is on disk; `None` where there is no file.
    found: Option<Vec<u8>>,
    pub text: String,
}

impl Files {
    /// The file of a source, as it is at this moment.
    pub(super) async fn draft(
        &self,
        source: &Source,
        loaded: &Loaded,
    ) -> Result<Draft<'_>, SourceError> {
        let path = &source.path;
        let unusable = |reason: String| SourceError::Unusable {
            path: path.clone(),
            reason,
        };
        let found = read_file(path).await;
        let found = found.map_err(|error| unusable(error.to_string()))?;
        // A file that is gone comes back as it last was, with the edit.
        let last = loaded.files.get(path).map(|state| state.good.to_vec());
        let base = found.clone().or(last).unwrap_or_default();
        let text = String::from_utf8(base).map_err(|_| unusable("is not UTF-8 text".into()))?;
        Ok(Draft {
            found,
            ..self.draft_of(source, text)
        })
    }

    /// A draft that starts from a text and is never put back.
    pub(super) fn draft_of(&self, source: &Source, text: String) -> Draft<'_> {
        Draft {
            files: self,
            source: source.clone(),
            found: None,
            text,
        }
    }
}

impl Draft<'_> {
    /// Whether the file says anything under that name, valid or not.
    pub fn has(&self, name: &str) -> Result<bool, SourceError> {
        let place = self.place(name);
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        edit::has_server(&self.text, &place).map_err(|error| self.unusable(error.to_string()))
    }

    /// How the file defines a server, where it does at all.
    pub fn definition(&self, name: &str) -> Result<Option<Definition>, SourceError> {
        let parsed = parse_file(&self.text, dialect(self.source.kind));
        let mut parsed = parsed.map_err(|problem| self.unusable(problem.to_string()))?;
        if self.source.kind != SourceKind::KodeGlobalProject {
            return Ok(parsed.servers.swap_remove(name));
        }
        let key = layers::project_key(&parsed, self.files.project()).map(str::to_owned);
        let section = key.and_then(|key| parsed.projects.get_mut(&key));
        Ok(section.and_then(|servers| servers.swap_remove(name)))
    }

    pub fn set(&mut self, name: &str, spec: &ServerSpec) -> Result<(), SourceError> {
        self.change(name, |text, place| edit::set_server(text, place, spec))
    }

    pub fn rename(&mut self, name: &str, new: &str) -> Result<(), SourceError> {
        self.change(name, |text, place| edit::rename_server(text, place, new))
    }

    pub fn remove(&mut self, name: &str) -> Result<(), SourceError> {
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
            Err(error) => Err(self.unusable(error.to_string())),
        }
    }

    /// The keys that lead to a server in the file of its source.
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

    /// Puts the changed text in place. False if the file is not what the
    /// draft was made from any more: then it is for the next draft.
    pub async fn save(self) -> Result<bool, SourceError> {
        let path = self.source.path.clone();
        let unusable = |reason: String| SourceError::Unusable {
            path: path.clone(),
            reason,
        };
        let (found, text, target) = (self.found, self.text, path.clone());
        if found.as_deref() == Some(text.as_bytes()) {
            return Ok(true);
        }
        let write =
            move || store::replace(&target, found.as_deref(), text.as_bytes(), NEW_FILE_MODE);
        let written = tokio::task::spawn_blocking(write).await;
        match written.map_err(|error| unusable(error.to_string()))? {
            Ok(()) => Ok(true),
            Err(ReplaceError::Changed) => Ok(false),
            Err(ReplaceError::Io(error)) => Err(unusable(error.to_string())),
        }
    }

    pub fn gone(&self) -> SourceError {
        SourceError::Gone {
            path: self.source.path.clone(),
        }
    }

    fn unusable(&self, reason: String) -> SourceError {
        SourceError::Unusable {
            path: self.source.path.clone(),
            reason,
        }
    }
}
