//! Where definitions stand: the files, read with care and edited in place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::config::edit::{self, EditError};
use crate::config::layers::{self, Effective, Layer, Source, SourceKind};
use crate::config::{Dialect, Parsed, Problem, ServerSpec, parse_file};
use crate::store::{self, ReadError, ReplaceError};

/// A file we make may hold secrets.
const NEW_FILE_MODE: u32 = 0o600;

/// The files that may define servers.
#[derive(Clone, Debug)]
pub struct Files {
    /// Absolute; `.mcp.json` and `.kode.json` are here.
    pub project: PathBuf,
    /// Where `~/.kode.json` is, for those who have a home.
    pub home: Option<PathBuf>,
}

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

/// What the files said last.
#[derive(Default)]
pub(super) struct Loaded {
    files: HashMap<PathBuf, FileState>,
    merged: IndexMap<String, Effective>,
}

/// One file: its last good content, and what is wrong with it now.
#[derive(Clone)]
struct FileState {
    text: Arc<[u8]>,
    parsed: Arc<Parsed>,
    problem: Option<String>,
}

/// A server as the files define it.
pub(super) struct Definition<'a> {
    pub name: &'a String,
    pub effective: &'a Effective,
}

impl Loaded {
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.merged.keys()
    }

    pub fn definitions(&self) -> impl Iterator<Item = Definition<'_>> {
        let definition = |(name, effective)| Definition { name, effective };
        self.merged.iter().map(definition)
    }
}

impl Files {
    pub fn mcp(&self) -> Source {
        Source {
            kind: SourceKind::Mcp,
            path: self.project.join(".mcp.json"),
        }
    }

    fn all(&self) -> Vec<(SourceKind, Dialect, PathBuf)> {
        let mut files = vec![
            (SourceKind::Mcp, Dialect::Mcp, self.mcp().path),
            (
                SourceKind::KodeProject,
                Dialect::Kode,
                self.project.join(".kode.json"),
            ),
        ];
        if let Some(home) = self.home.as_ref().filter(|home| **home != self.project) {
            let path = home.join(".kode.json");
            files.push((SourceKind::KodeGlobal, Dialect::Kode, path));
        }
        files
    }

    /// Reads everything anew. A file that cannot be read now keeps what it
    /// said before.
    pub(super) async fn load(&self, before: &Loaded) -> Loaded {
        let mut loaded = Loaded::default();
        let mut layers = Vec::new();
        for (kind, dialect, path) in self.all() {
            let old = before.files.get(&path);
            let Some(state) = read(&path, dialect, old).await else {
                continue;
            };
            layers.extend(self.layers_of(kind, &path, &state.parsed));
            loaded.files.insert(path, state);
        }
        loaded.merged = layers::merge(layers);
        tell(&loaded, before);
        loaded
    }

    fn layers_of(&self, kind: SourceKind, path: &Path, parsed: &Parsed) -> Vec<Layer> {
        if kind == SourceKind::KodeGlobal {
            return layers::kode_global(path, parsed.clone(), &self.project);
        }
        let source = Source {
            kind,
            path: path.to_owned(),
        };
        let servers = parsed.servers.clone();
        vec![Layer { source, servers }]
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

    pub(super) async fn set(
        &self,
        source: &Source,
        name: &str,
        spec: &ServerSpec,
    ) -> Result<(), SourceError> {
        self.edit(source, name, |text, place| {
            edit::set_server(text, place, spec).map(Some)
        })
        .await
    }

    pub(super) async fn remove(&self, source: &Source, name: &str) -> Result<(), SourceError> {
        self.edit(source, name, edit::remove_server).await
    }

    pub(super) async fn rename(
        &self,
        source: &Source,
        old: &str,
        new: &str,
    ) -> Result<(), SourceError> {
        self.edit(source, old, |text, place| {
            edit::rename_server(text, place, new).map(Some)
        })
        .await
    }

    /// Reads the file, applies the edit and replaces it, again if somebody
    /// else wrote it meanwhile.
    async fn edit(
        &self,
        source: &Source,
        name: &str,
        apply: impl Fn(&str, &[&str]) -> Result<Option<String>, EditError>,
    ) -> Result<(), SourceError> {
        const TRIES: usize = 5;
        let path = source.path.clone();
        let unusable = |reason: String| SourceError::Unusable {
            path: path.clone(),
            reason,
        };
        for _ in 0..TRIES {
            let before = read_file(&path)
                .await
                .map_err(|error| unusable(error.to_string()))?;
            let text = std::str::from_utf8(before.as_deref().unwrap_or_default())
                .map_err(|_| unusable("is not UTF-8 text".into()))?;
            let place = self.place(source, text, name);
            let place: Vec<&str> = place.iter().map(String::as_str).collect();
            let next = match apply(text, &place) {
                Ok(Some(next)) => next,
                Ok(None) | Err(EditError::Missing(_)) => return Err(SourceError::Gone { path }),
                Err(error) => return Err(unusable(error.to_string())),
            };
            let target = path.clone();
            let written = tokio::task::spawn_blocking(move || {
                store::replace(&target, before.as_deref(), next.as_bytes(), NEW_FILE_MODE)
            })
            .await
            .map_err(|error| unusable(error.to_string()))?;
            match written {
                Ok(()) => return Ok(()),
                Err(ReplaceError::Changed) => {}
                Err(ReplaceError::Io(error)) => return Err(unusable(error.to_string())),
            }
        }
        Err(SourceError::Busy { path })
    }
}

async fn read_file(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let path = path.to_owned();
    match tokio::task::spawn_blocking(move || store::read_trusted(&path)).await {
        Ok(read) => read,
        Err(error) => Err(std::io::Error::other(error).into()),
    }
}

/// `None` where there is no file. What is wrong with one is kept beside what
/// it said when it was last right.
async fn read(path: &Path, dialect: Dialect, old: Option<&FileState>) -> Option<FileState> {
    let broken = |text: Arc<[u8]>, problem: String| FileState {
        text,
        parsed: old.map(|old| old.parsed.clone()).unwrap_or_default(),
        problem: Some(problem),
    };
    let bytes = match read_file(path).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return None,
        Err(error) => return Some(broken(Arc::default(), error.to_string())),
    };
    if let Some(old) = old.filter(|old| *old.text == *bytes && old.problem.is_none()) {
        return Some(old.clone());
    }
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(text) => parse_file(text, dialect),
        Err(_) => Err(Problem::new("", "is not UTF-8 text")),
    };
    Some(match parsed {
        Ok(parsed) => FileState {
            text: bytes.into(),
            parsed: Arc::new(parsed),
            problem: None,
        },
        Err(problem) => broken(bytes.into(), problem.to_string()),
    })
}

/// Logs what is new and wrong or hidden; what was said before is not repeated.
fn tell(loaded: &Loaded, before: &Loaded) {
    for (path, state) in &loaded.files {
        let old = before.files.get(path);
        if let Some(problem) = &state.problem
            && old.and_then(|old| old.problem.as_ref()) != Some(problem)
        {
            tracing::error!(
                file = %path.display(),
                "{} cannot be used, its last good state stays: {problem}",
                path.display()
            );
        }
        if old.is_some_and(|old| Arc::ptr_eq(&old.parsed, &state.parsed)) {
            continue;
        }
        for problem in &state.parsed.problems {
            tracing::warn!(file = %path.display(), "{}: {problem}", path.display());
        }
    }
    for (name, effective) in &loaded.merged {
        if before.merged.get(name) == Some(effective) {
            continue;
        }
        if let Err(problems) = &effective.definition {
            for problem in problems {
                let file = effective.source.path.display();
                tracing::error!(server = %name, "{file}: server {name:?}: {problem}");
            }
        }
        for hidden in &effective.shadows {
            tracing::info!(
                server = %name,
                "server {name:?} of {} is shadowed by {}",
                hidden.path.display(),
                effective.source.path.display()
            );
        }
    }
}
