//! A look at what is kept that changes nothing: for one who wants to know
//! before, or while, a Portway uses it.

use std::path::{Path, PathBuf};

use super::journal::{self, End};
use super::snapshot::SnapshotFile;
use super::state::{State, Step};
use super::{PostgresStore, StoreError};
use crate::config::Secret;

/// The records in a data directory.
pub struct Files {
    /// What cannot be used, a sentence each.
    pub faults: Vec<String>,
    /// What was put aside by an earlier start.
    pub aside: Vec<PathBuf>,
}

/// The records in a database.
pub struct Database {
    /// Its clock, in milliseconds since 1970.
    pub millis: i64,
    /// What is wrong with the tables.
    pub tables: Option<String>,
    /// Migrations that were not applied, where that can be seen.
    pub missing: Option<Vec<String>>,
}

/// Blocks on the disk. `in_use`: somebody may be writing, so that an
/// unfinished end of the journal means nothing.
pub fn files(directory: &Path, in_use: bool) -> Files {
    let mut faults = SnapshotFile::new(directory, "mcp_instances.json").faults::<State>();
    let path = directory.join("mcp_instances.journal");
    match journal::look::<Vec<Step>>(&path) {
        Ok(found) => {
            if let (End::Corrupt(reason), false) = (&found.end, in_use) {
                faults.push(format!("{} {reason}", path.display()));
            }
        }
        Err(kind) => faults.push(kind.to_string()),
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut aside: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-"))
        .map(|entry| entry.path())
        .collect();
    aside.sort();
    Files { faults, aside }
}

/// Connects as a start would, sends a notice to itself, and looks.
pub async fn database(url: &Secret) -> Result<Database, StoreError> {
    PostgresStore::examine(url).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_look_at_damaged_records_leaves_them_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let none = files(dir.path(), false);
        assert!(none.faults.is_empty() && none.aside.is_empty());
        let path = dir.path().join("mcp_instances.json");
        std::fs::write(&path, "{\"version\":1").unwrap();
        std::fs::write(dir.path().join("mcp_instances.json.corrupt-1"), "x").unwrap();
        let found = files(dir.path(), false);
        assert!(found.faults[0].contains("is damaged"), "{:?}", found.faults);
        assert_eq!(found.aside.len(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"version\":1");
    }
}
