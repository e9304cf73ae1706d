//! Where definitions stand: the files, read with care. A file that cannot be
//! used any more keeps what it said when it last could.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::config::layers::{self, Effective, Layer, Source, SourceKind};
use crate::config::{Dialect, Parsed, Problem, parse_file};
use crate::store::{self, ReadError};

/// The files that may define servers.
#[derive(Clone, Debug)]
pub struct Files {
    /// Absolute; `.mcp.json` and `.kode.json` are here.
    pub project: PathBuf,
    /// Where `~/.kode.json` is, for those who have a home.
    pub home: Option<PathBuf>,
}

/// What the files said last.
#[derive(Clone, Default)]
pub struct Loaded {
    pub(super) files: BTreeMap<PathBuf, FileState>,
    pub(super) merged: IndexMap<String, Effective>,
}

/// One file: its last good content, and what is wrong with it now.
#[derive(Clone)]
pub(super) struct FileState {
    pub kind: SourceKind,
    pub good: Arc<[u8]>,
    pub parsed: Arc<Parsed>,
    pub problem: Option<String>,
}

impl Files {
    pub fn mcp(&self) -> Source {
        Source {
            kind: SourceKind::Mcp,
            path: self.project.join(".mcp.json"),
        }
    }

    /// Everything that is read, whether it is there or not.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.all().into_iter().map(|(_, path)| path).collect()
    }

    fn all(&self) -> Vec<(SourceKind, PathBuf)> {
        let mut files = vec![
            (SourceKind::Mcp, self.mcp().path),
            (SourceKind::KodeProject, self.project.join(".kode.json")),
        ];
        if let Some(home) = self.home.as_ref().filter(|home| **home != self.project) {
            files.push((SourceKind::KodeGlobal, home.join(".kode.json")));
        }
        files
    }

    /// Reads everything anew.
    pub async fn load(&self, before: &Loaded) -> Loaded {
        let mut files = BTreeMap::new();
        for (kind, path) in self.all() {
            let old = before.files.get(&path);
            if let Some(state) = read(kind, &path, old).await {
                files.insert(path, state);
            }
        }
        self.merge(files)
    }

    /// What the files would say together if `.mcp.json` held `text`.
    pub fn with_mcp(&self, loaded: &Loaded, text: &str) -> Result<Loaded, Problem> {
        self.with_file(loaded, &self.mcp(), text)
    }

    pub(super) fn with_file(
        &self,
        loaded: &Loaded,
        source: &Source,
        text: &str,
    ) -> Result<Loaded, Problem> {
        let kind = match source.kind {
            SourceKind::KodeGlobalProject => SourceKind::KodeGlobal,
            kind => kind,
        };
        let state = FileState {
            kind,
            good: text.as_bytes().into(),
            parsed: Arc::new(parse_file(text, dialect(kind))?),
            problem: None,
        };
        let mut files = loaded.files.clone();
        files.insert(source.path.clone(), state);
        Ok(self.merge(files))
    }

    fn merge(&self, files: BTreeMap<PathBuf, FileState>) -> Loaded {
        let layers = files
            .iter()
            .flat_map(|(path, state)| self.layers_of(path, state));
        Loaded {
            merged: layers::merge(layers.collect()),
            files,
        }
    }

    fn layers_of(&self, path: &Path, state: &FileState) -> Vec<Layer> {
        if state.kind == SourceKind::KodeGlobal {
            return layers::kode_global(path, Parsed::clone(&state.parsed), &self.project);
        }
        let source = Source {
            kind: state.kind,
            path: path.to_owned(),
        };
        let servers = state.parsed.servers.clone();
        vec![Layer { source, servers }]
    }
}

pub(super) fn dialect(kind: SourceKind) -> Dialect {
    match kind {
        SourceKind::Mcp => Dialect::Mcp,
        _ => Dialect::Kode,
    }
}

pub(super) async fn read_file(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let path = path.to_owned();
    match tokio::task::spawn_blocking(move || store::read_trusted(&path)).await {
        Ok(read) => read,
        Err(error) => Err(std::io::Error::other(error).into()),
    }
}

/// `None` where there is no file and never was one.
async fn read(kind: SourceKind, path: &Path, old: Option<&FileState>) -> Option<FileState> {
    let kept = |problem: String| FileState {
        kind,
        good: old.map(|old| old.good.clone()).unwrap_or_default(),
        parsed: old.map(|old| old.parsed.clone()).unwrap_or_default(),
        problem: Some(problem),
    };
    let bytes = match read_file(path).await {
        Ok(Some(bytes)) => bytes,
        // Mostly an editor or a checkout at work; a person who means it
        // empties `mcpServers`.
        Ok(None) => return old.map(|_| kept("is gone".into())),
        Err(error) => return Some(kept(error.to_string())),
    };
    if let Some(old) = old.filter(|old| *old.good == *bytes) {
        return Some(FileState {
            problem: None,
            ..old.clone()
        });
    }
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(text) => parse_file(text, dialect(kind)),
        Err(_) => Err(Problem::new("", "is not UTF-8 text")),
    };
    Some(match parsed {
        Ok(parsed) => FileState {
            kind,
            good: bytes.into(),
            parsed: Arc::new(parsed),
            problem: None,
        },
        Err(problem) => kept(problem.to_string()),
    })
}

/// Logs what is new and wrong or hidden; what was said before is not repeated.
pub(super) fn tell(loaded: &Loaded, before: &Loaded) {
    for (path, state) in &loaded.files {
        let old = before.files.get(path);
        let file = path.display();
        let old_problem = old.and_then(|old| old.problem.as_ref());
        match &state.problem {
            Some(problem) if old_problem != Some(problem) => {
                tracing::error!(%file, "{file} cannot be used, its last good state stays: {problem}");
            }
            None if old_problem.is_some() => tracing::info!(%file, "{file} can be used again"),
            _ => {}
        }
        if old.is_some_and(|old| Arc::ptr_eq(&old.parsed, &state.parsed)) {
            continue;
        }
        for problem in &state.parsed.problems {
            tracing::warn!(%file, "{file}: {problem}");
        }
    }
    for (name, effective) in &loaded.merged {
        if before.merged.get(name) != Some(effective) {
            tell_one(name, effective);
        }
    }
}

fn tell_one(name: &str, effective: &Effective) {
    let file = effective.source.path.display();
    if let Err(problems) = &effective.definition {
        for problem in problems {
            tracing::error!(server = %name, "{file}: {problem}");
        }
    }
    for hidden in &effective.shadows {
        let hidden = hidden.path.display();
        tracing::info!(server = %name, "server {name:?} of {hidden} is shadowed by {file}");
    }
}
