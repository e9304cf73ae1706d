//! The note of an edit that changes a definition and the records of its server:
//! a small file that exists only during the edit.

use std::io::ErrorKind;
use std::path::Path;

use super::{StoreError, StoreErrorKind, file};

const NAME: &str = "unfinished_edit.json";

/// The last note that was not removed. Blocks on the disk.
pub fn unfinished_edit(directory: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let path = directory.join(NAME);
    file::read_alone(&path)
        .map_err(|error| StoreErrorKind::io(&path, error).during("read the unfinished edit"))
}

/// Durable once this returns; `None` removes the note. Blocks on the disk.
pub fn note_unfinished_edit(directory: &Path, note: Option<&[u8]>) -> Result<(), StoreError> {
    let path = directory.join(NAME);
    let written = match note {
        Some(bytes) => file::write_private(&path, bytes),
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => file::sync_directory(&path),
        },
    };
    written.map_err(|error| StoreErrorKind::io(&path, error).during("note the edit"))
}
