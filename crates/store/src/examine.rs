//! A read-only check of the stored records, before or while a Portway uses
//! them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::journal::{self, JournalEnd};
use super::json::{Disk, locate};
use super::lock::{Holder, holder};
use super::postgres::RecordTable;
use super::records::{Entry, EntryId, Instance, KeyHolder, ToolRecord};
use super::state::Step;
use super::{AtPath, DuringOperation, KeyDigest, StoreErrorKind, StoreResult, postgres};
use config::settings::{Settings, StorageType};

/// The records in a data directory.
#[derive(Default)]
pub struct FilesReport {
    /// Files that cannot be used, a sentence each.
    pub faults: Vec<String>,
    /// Files that an earlier start put aside.
    pub aside: Vec<PathBuf>,
    /// A file of another application at the place of the records, and the file
    /// that holds the records instead.
    pub foreign: Option<(PathBuf, PathBuf)>,
}

/// The records in a database.
pub struct DatabaseReport {
    /// Its clock, in milliseconds since 1970.
    pub millis: i64,
    /// The problem with the tables.
    pub tables: Option<String>,
    /// Migrations that are not applied, where that can be seen.
    pub missing: Option<Vec<String>>,
}

/// Blocks on the disk. `in_use`: another process may be writing, so that an
/// unfinished end of the journal means nothing.
pub fn examine_files(directory: &Path, in_use: bool) -> FilesReport {
    let location = match locate(directory) {
        Ok(location) => location,
        Err(kind) => {
            return FilesReport {
                faults: vec![kind.to_string()],
                ..FilesReport::default()
            };
        }
    };
    let mut faults = location.snapshot.faults();
    let path = location.journal;
    match journal::look::<Vec<Step>>(&path) {
        Ok(found) => {
            if let (JournalEnd::Corrupt(reason), false) = (&found.end, in_use) {
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
    let instead = location.snapshot.path().to_owned();
    let foreign = location.foreign.map(|path| (path, instead));
    FilesReport {
        faults,
        aside,
        foreign,
    }
}

/// The records that a migration reads.
#[derive(Default)]
pub struct StoredRecords {
    pub instances: Vec<Instance>,
    pub tools: Vec<ToolRecord>,
    pub keys: HashMap<KeyDigest, KeyHolder>,
}

impl StoredRecords {
    /// `entries`: the key, the number and the owner of each.
    pub(super) fn new(
        instances: Vec<Instance>,
        tools: Vec<ToolRecord>,
        entries: impl IntoIterator<Item = (KeyDigest, EntryId, Arc<str>)>,
    ) -> StoredRecords {
        let old = |old: &Instance| (old.key.digest, KeyHolder::Instance(old.id));
        let mut keys: HashMap<_, _> = instances.iter().map(old).collect();
        let entry = |(key, id, owner)| (key, KeyHolder::Entry { id, owner });
        keys.extend(entries.into_iter().map(entry));
        StoredRecords {
            instances,
            tools,
            keys,
        }
    }
}

/// Reads the records and changes nothing, not even what a start would repair or
/// bring up to date. Empty if there never were any records.
pub async fn stored_records(settings: &Settings) -> StoreResult<StoredRecords> {
    match (settings.storage, &settings.supabase_db_url) {
        (StorageType::Supabase, Some(url)) => {
            postgres::contents(url, &settings.supabase_db_schema).await
        }
        (StorageType::Supabase, None) => {
            let text = "SUPABASE_DB_URL is not set".to_owned();
            Err(StoreErrorKind::Setup(text).during("read the database"))
        }
        (StorageType::Json, _) => in_files(&settings.data_dir).during("read the data directory"),
    }
}

/// The number of keys of the records in a directory's files, if they can be
/// read.
pub(super) fn keys_in(directory: &Path) -> Option<usize> {
    in_files(directory).ok().map(|contents| contents.keys.len())
}

fn in_files(directory: &Path) -> Result<StoredRecords, StoreErrorKind> {
    let held = holder(directory).at(directory)?;
    if let Holder::Process(pid) = held {
        let directory = directory.to_owned();
        return Err(StoreErrorKind::Locked { directory, pid });
    }
    let state = Disk::look(directory)?;
    Ok(StoredRecords::new(
        Instance::all(&state).cloned().collect(),
        ToolRecord::all(&state).cloned().collect(),
        Entry::all(&state).map(|entry| (entry.key.digest, entry.id, entry.owner.clone())),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_look_at_damaged_records_leaves_them_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let none = examine_files(dir.path(), false);
        assert!(none.faults.is_empty() && none.aside.is_empty());
        let path = dir.path().join("mcp_instances.json");
        std::fs::write(&path, "{\"version\":1").unwrap();
        // The journal marks the directory as ours.
        std::fs::write(dir.path().join("mcp_instances.journal"), "").unwrap();
        std::fs::write(dir.path().join("mcp_instances.json.corrupt-1"), "x").unwrap();
        let found = examine_files(dir.path(), false);
        assert!(found.faults[0].contains("is damaged"), "{:?}", found.faults);
        assert_eq!(found.aside.len(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"version\":1");
    }
}
