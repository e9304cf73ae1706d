//! The saved sessions of the console: a small file, read and written as a
//! whole.

use std::path::Path;

use super::{AtPath, DuringOperation, StoreResult, file};

const NAME: &str = "console_sessions.json";

/// The sessions that were saved last, if any. Blocks on the disk.
pub fn console_sessions(directory: &Path) -> StoreResult<Option<Vec<u8>>> {
    let path = directory.join(NAME);
    let read = file::read_alone(&path).at(&path);
    read.during("read the console's sessions")
}

/// Blocks on the disk.
pub fn keep_console_sessions(directory: &Path, bytes: &[u8]) -> StoreResult<()> {
    let path = directory.join(NAME);
    let written = file::write_private(&path, bytes).at(&path);
    written.during("keep the console's sessions")
}
