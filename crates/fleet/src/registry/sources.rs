//! The sources of definitions: the files, read with care. A file that becomes
//! unusable keeps its last good content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;

use super::database;
use config::layers::{self, Layer, MergedServer, Source, SourceKind};
use config::{Dialect, Problem, ServerFile, parse_file};
use store::ReadError;

#[derive(Clone, Debug)]
pub struct SourceFiles {
    /// The absolute directory of `.kode.json`.
    project: PathBuf,
    /// The project's `.mcp.json`.
    mcp: PathBuf,
    /// The directory of `~/.kode.json`, if the user has a home.
    home: Option<PathBuf>,
    /// Servers created through the API go to the database.
    pub(super) database: bool,
}

/// The last content of the files.
#[derive(Default)]
pub struct LoadedSources {
    pub(super) files: BTreeMap<PathBuf, FileState>,
    pub(super) merged: IndexMap<String, MergedServer>,
    /// A file could not be read: it is retried even without a change.
    pub(super) unread: bool,
}

/// One file: its last good content, and its current problem.
#[derive(Clone)]
pub(super) struct FileState {
    pub kind: SourceKind,
    pub good: Arc<[u8]>,
    pub parsed: Arc<ServerFile>,
    pub problem: Option<Problem>,
}

impl SourceFiles {
    /// `project` is absolute and free of symbolic links.
    pub fn new(project: PathBuf, home: Option<PathBuf>) -> SourceFiles {
        // If the project is the home directory under another name, use one path.
        let home = home.map(|home| match home.canonicalize() {
            Ok(real) if real == project => real,
            _ => home,
        });
        let mcp = project.join(".mcp.json");
        SourceFiles {
            project,
            mcp,
            home,
            database: false,
        }
    }

    /// The same files with another path for `.mcp.json`.
    pub fn with_mcp_at(&self, path: &Path) -> SourceFiles {
        SourceFiles {
            mcp: path.to_owned(),
            ..self.clone()
        }
    }

    pub fn mcp(&self) -> Source {
        Source {
            kind: SourceKind::Mcp,
            path: self.mcp.clone(),
        }
    }

    /// The source for a definition created through the API.
    pub(crate) fn for_new(&self) -> Source {
        if self.database {
            database::source()
        } else {
            self.mcp()
        }
    }

    /// The source of definitions of a kind.
    pub(super) fn source(&self, kind: SourceKind) -> Source {
        let file = match kind {
            SourceKind::Database => return database::source(),
            SourceKind::KodeGlobalProject => SourceKind::KodeGlobal,
            kind => kind,
        };
        let path = self.all().into_iter().find(|(known, _)| *known == file);
        let path = path.map_or_else(|| self.mcp.clone(), |(_, path)| path);
        Source { kind, path }
    }

    pub(super) fn project(&self) -> &Path {
        &self.project
    }

    /// The paths of all files that are read, whether they exist or not.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let servers = self.all().into_iter().map(|(_, path)| path);
        servers.chain([self.filters()]).collect()
    }

    /// The path of the file of named filters.
    pub(super) fn filters(&self) -> PathBuf {
        self.project.join(".portway.json")
    }

    fn all(&self) -> Vec<(SourceKind, PathBuf)> {
        let mut files = vec![(SourceKind::Mcp, self.mcp.clone())];
        // In the home directory both are one file, read as the global one.
        if self.home.as_ref() != Some(&self.project) {
            files.push((SourceKind::KodeProject, self.project.join(".kode.json")));
        }
        if let Some(home) = &self.home {
            files.push((SourceKind::KodeGlobal, home.join(".kode.json")));
        }
        files
    }

    /// Reads all files again, off the async threads, since the disk may be slow.
    pub(super) async fn load(&self, before: Arc<LoadedSources>) -> Arc<LoadedSources> {
        let (files, old) = (self.clone(), before.clone());
        match tokio::task::spawn_blocking(move || files.load_now(&old)).await {
            Ok(loaded) => Arc::new(loaded),
            Err(error) => {
                tracing::error!("the files could not be read: {error}");
                before
            }
        }
    }

    /// Reads all files again. Blocks on the disk.
    pub fn load_now(&self, before: &LoadedSources) -> LoadedSources {
        let mut files = BTreeMap::new();
        let mut unread = false;
        for (kind, path) in self.all() {
            let old = before.files.get(&path);
            let found = store::read_trusted(&path);
            unread |= matches!(found, Err(ReadError::Io(_)));
            if let Some(state) = take(kind, found, old) {
                files.insert(path, state);
            }
        }
        LoadedSources {
            unread,
            ..self.merge(files)
        }
    }

    /// The merged files as they would be if one of them had the content `bytes`;
    /// an unusable file keeps its last good state, as in a real reload.
    pub fn with_file(
        &self,
        loaded: &LoadedSources,
        source: &Source,
        bytes: &[u8],
    ) -> LoadedSources {
        let kind = match source.kind {
            SourceKind::KodeGlobalProject => SourceKind::KodeGlobal,
            kind => kind,
        };
        let state = judge(kind, bytes.into(), loaded.files.get(&source.path));
        self.with_state(loaded, source, state)
    }

    pub(super) fn with_state(
        &self,
        loaded: &LoadedSources,
        source: &Source,
        state: FileState,
    ) -> LoadedSources {
        let mut files = loaded.files.clone();
        files.insert(source.path.clone(), state);
        LoadedSources {
            unread: loaded.unread,
            ..self.merge(files)
        }
    }

    fn merge(&self, files: BTreeMap<PathBuf, FileState>) -> LoadedSources {
        let layers = files
            .iter()
            .flat_map(|(path, state)| self.layers_of(path, state));
        LoadedSources {
            merged: layers::merge(layers.collect()),
            files,
            unread: false,
        }
    }

    pub(super) fn layers_of(&self, path: &Path, state: &FileState) -> Vec<Layer> {
        if state.kind == SourceKind::KodeGlobal {
            return layers::kode_global(path, ServerFile::clone(&state.parsed), &self.project);
        }
        let source = Source {
            kind: state.kind,
            path: path.to_owned(),
        };
        let servers = state.parsed.servers.clone();
        vec![Layer { source, servers }]
    }
}

impl LoadedSources {
    /// The problem that makes a whole file unusable.
    pub fn problem(&self, source: &Source) -> Option<&Problem> {
        self.files.get(&source.path)?.problem.as_ref()
    }
}

pub(super) fn dialect(kind: SourceKind) -> Dialect {
    match kind {
        SourceKind::Mcp | SourceKind::Database => Dialect::Mcp,
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

/// The text of a file.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|_| Problem::new("", "is not UTF-8 text"))
}

/// `None` if the file does not exist and never did.
fn take(
    kind: SourceKind,
    found: Result<Option<Vec<u8>>, ReadError>,
    old: Option<&FileState>,
) -> Option<FileState> {
    match found {
        Ok(Some(bytes)) => Some(judge(kind, bytes, old)),
        // Usually an editor or a checkout is at work; a person removes all
        // servers by emptying `mcpServers`.
        Ok(None) => old.map(|_| kept(kind, old, Problem::new("", "is gone"))),
        Err(error) => Some(kept(kind, old, Problem::new("", error.to_string()))),
    }
}

fn judge(kind: SourceKind, bytes: Vec<u8>, old: Option<&FileState>) -> FileState {
    if let Some(old) = old.filter(|old| *old.good == *bytes) {
        return FileState {
            problem: None,
            ..old.clone()
        };
    }
    match text_of(&bytes).and_then(|text| parse_file(text, dialect(kind))) {
        Ok(parsed) => FileState {
            kind,
            good: bytes.into(),
            parsed: Arc::new(parsed),
            problem: None,
        },
        Err(problem) => kept(kind, old, problem),
    }
}

/// The last good state, with the problem that keeps it in force.
fn kept(kind: SourceKind, old: Option<&FileState>, problem: Problem) -> FileState {
    FileState {
        kind,
        good: old.map(|old| old.good.clone()).unwrap_or_default(),
        parsed: old.map(|old| old.parsed.clone()).unwrap_or_default(),
        problem: Some(problem),
    }
}
