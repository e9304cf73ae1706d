//! The files that hold the records. Their name is `mcp_instances`, unless
//! another application keeps a file of that name in the directory: Portway does
//! not touch that file.

use std::path::{Path, PathBuf};

use super::super::snapshot::SnapshotFile;
use super::super::{AtPath, StoreErrorKind, file, foreign};

const USUAL: &str = "mcp_instances";
const BESIDE: &str = "portway_instances";

/// The first bytes of every snapshot of ours.
const OURS: &[u8] = b"{\"version\":";

pub(in super::super) struct Location {
    pub snapshot: SnapshotFile,
    pub journal: PathBuf,
    /// The file of the other application.
    pub foreign: Option<PathBuf>,
    /// Our files under the usual name, from before that file existed.
    pub(super) earlier: Option<Box<Location>>,
}

impl Location {
    fn new(directory: &Path, name: &str) -> Location {
        Location {
            snapshot: SnapshotFile::new(directory, &format!("{name}.json")),
            journal: directory.join(format!("{name}.journal")),
            foreign: None,
            earlier: None,
        }
    }

    /// Whether our journal or backup exists beside the snapshot.
    fn has_siblings(&self) -> bool {
        self.journal.exists() || self.snapshot.backup().exists()
    }

    /// A warning for a person.
    pub(super) fn warning(&self) -> Option<String> {
        let foreign = self.foreign.as_ref()?.display();
        Some(format!(
            "{foreign} was made by another application and is left as it is; Portway keeps its \
             records in {}. To bring the other records along: portway migrate --from {foreign}",
            self.snapshot.path().display()
        ))
    }
}

/// Only reads the directory.
pub(in super::super) fn locate(directory: &Path) -> Result<Location, StoreErrorKind> {
    let (usual, mut beside) = (
        Location::new(directory, USUAL),
        Location::new(directory, BESIDE),
    );
    // A journal alone means that a move was interrupted.
    let moved = beside.snapshot.path().exists() || beside.snapshot.backup().exists();
    let foreign = is_foreign(&usual)?;
    if !foreign && !moved {
        return Ok(usual);
    }
    beside.foreign = foreign.then(|| usual.snapshot.path().to_owned());
    if !moved && usual.has_siblings() {
        beside.earlier = Some(Box::new(usual));
    }
    Ok(beside)
}

/// A damaged file of ours is not foreign: it is put aside, and its backup
/// replaces it. A journal or a backup beside it marks it as ours: another
/// application's file is also empty or torn while it is being written.
fn is_foreign(usual: &Location) -> Result<bool, StoreErrorKind> {
    let path = usual.snapshot.path();
    let Some(bytes) = file::read_own(path).at(path)? else {
        return Ok(false);
    };
    if SnapshotFile::is_envelope(&bytes) {
        return Ok(false);
    }
    if !usual.has_siblings() {
        return Ok(true);
    }
    if bytes.iter().all(|byte| *byte == 0)
        || bytes.trim_ascii().starts_with(OURS) && !is_json(&bytes)
    {
        return Ok(false);
    }
    let found = foreign::in_json(&bytes).unwrap_or_default();
    Ok(found.iter().any(|record| record.read.is_ok()))
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
