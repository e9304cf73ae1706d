//! Opening a file of the data directory. Another user may have put it there:
//! no link is followed, no pipe waited for.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A regular file, by its own name.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refused("is a symbolic link, which is not followed"),
            _ => error,
        })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(refused("is not a regular file"))
    }
}

/// The same for one that is written where it stands, or holds a secret: it
/// has no second name elsewhere.
pub(super) fn open_alone(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open(path, options)?;
    if is_alone(&file.metadata()?) {
        Ok(file)
    } else {
        Err(refused("has a second name (a hard link)"))
    }
}

pub(super) fn is_alone(metadata: &Metadata) -> bool {
    metadata.nlink() <= 1
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_owned())
}
