//! Edits of the files, one server at a time. A person's own edit made at the
//! same moment is never lost: the change is made again on what they wrote.

use std::path::PathBuf;

use super::sources::{Files, Loaded, read_file};
use crate::config::edit::{self, EditError};
use crate::config::layers::{self, Source, SourceKind};
use crate::config::{Dialect, ServerSpec, parse_file};
use crate::store::{self, ReplaceError};

/// A file we make may hold secrets.
const NEW_FILE_MODE: u32 = 0o600;
const TRIES: usize = 5;

/// Why a file could not be edited.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{}: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("{} keeps changing while it is edited; try again", path.display())]
    Busy { path: PathBuf },
    #[error("the definition is gone from {}", path.display())]
    Gone { path: PathBuf },
}

/// One change of one server.
pub(super) enum Edit<'a> {
    Set(&'a ServerSpec),
    Rename(&'a str),
    Remove,
}

impl Edit<'_> {
    fn apply(&self, text: &str, place: &[&str]) -> Result<Option<String>, EditError> {
        match self {
            Edit::Set(spec) => edit::set_server(text, place, spec).map(Some),
            Edit::Rename(name) => edit::rename_server(text, place, name).map(Some),
            Edit::Remove => edit::remove_server(text, place),
        }
    }
}

impl Files {
    /// Reads the file, applies the edits and replaces it in one step; again
    /// if somebody else wrote it meanwhile.
    pub(super) async fn edit(
        &self,
        source: &Source,
        name: &str,
        edits: &[Edit<'_>],
        loaded: &Loaded,
    ) -> Result<(), SourceError> {
        let path = source.path.clone();
        let unusable = |reason: String| SourceError::Unusable {
            path: path.clone(),
            reason,
        };
        for _ in 0..TRIES {
            let found = read_file(&path).await;
            let found = found.map_err(|error| unusable(error.to_string()))?;
            // A file that is gone comes back as it last was, with the edit.
            let last = loaded.files.get(&path).map(|state| state.good.to_vec());
            let base = found.clone().or(last).unwrap_or_default();
            let base = String::from_utf8(base).map_err(|_| unusable("is not UTF-8 text".into()))?;
            let next = match self.apply(source, name, edits, base) {
                Ok(Some(next)) => next,
                Ok(None) | Err(EditError::Missing(_)) => return Err(SourceError::Gone { path }),
                Err(error) => return Err(unusable(error.to_string())),
            };
            let target = path.clone();
            let write =
                move || store::replace(&target, found.as_deref(), next.as_bytes(), NEW_FILE_MODE);
            let written = tokio::task::spawn_blocking(write).await;
            match written.map_err(|error| unusable(error.to_string()))? {
                Ok(()) => return Ok(()),
                Err(ReplaceError::Changed) => {}
                Err(ReplaceError::Io(error)) => return Err(unusable(error.to_string())),
            }
        }
        Err(SourceError::Busy { path })
    }

    pub(super) fn apply(
        &self,
        source: &Source,
        name: &str,
        edits: &[Edit<'_>],
        mut text: String,
    ) -> Result<Option<String>, EditError> {
        let mut name = name.to_owned();
        for edit in edits {
            let place = self.place(source, &text, &name);
            let place: Vec<&str> = place.iter().map(String::as_str).collect();
            text = match edit.apply(&text, &place)? {
                Some(text) => text,
                None => return Ok(None),
            };
            if let Edit::Rename(new) = edit {
                name = (*new).to_owned();
            }
        }
        Ok(Some(text))
    }

    /// The keys that lead to a server in the file of its source.
    fn place(&self, source: &Source, text: &str, name: &str) -> Vec<String> {
        let mut place = Vec::new();
        if source.kind == SourceKind::KodeGlobalProject {
            let parsed = parse_file(text, Dialect::Kode).unwrap_or_default();
            let written = layers::project_key(&parsed, &self.project);
            let key = written.map_or_else(|| self.project.display().to_string(), str::to_owned);
            place.extend(["projects".to_owned(), key]);
        }
        place.extend(["mcpServers".to_owned(), name.to_owned()]);
        place
    }
}
