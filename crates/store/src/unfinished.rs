//! The note of an edit that changes a definition and the records of its server:
//! a small file that exists only during the edit.

use std::path::Path;

use super::{AtPath, DuringOperation, StoreResult, file};

const NAME: &str = "unfinished_edit.json";

/// The last note that was not removed. Blocks on the disk.
pub fn unfinished_edit(directory: &Path) -> StoreResult<Option<Vec<u8>>> {
    let path = directory.join(NAME);
    let read = file::read_alone(&path).at(&path);
    read.during("read the unfinished edit")
}

/// Durable once this returns; `None` removes the note. Blocks on the disk.
pub fn note_unfinished_edit(directory: &Path, note: Option<&[u8]>) -> StoreResult<()> {
    let path = directory.join(NAME);
    let written = match note {
        Some(bytes) => file::write_private(&path, bytes),
        None => file::remove(&path).and_then(|()| file::sync_directory(&path)),
    };
    written.at(&path).during("note the edit")
}
