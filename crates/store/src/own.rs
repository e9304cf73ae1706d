//! Opens files of the data directory. Another user may have put them there:
//! this follows no link and waits for no pipe.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::lock::private;

/// Opens a regular file, not through a link.
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

/// Like [`open`], for a file that is written in place or holds a secret: it
/// must have no second name elsewhere.
pub(super) fn open_alone(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open(path, options)?;
    if is_alone(&file.metadata()?) {
        Ok(file)
    } else {
        Err(refused("has a second name (a hard link)"))
    }
}

/// Opens a file of ours to read and write it in place, and creates it if needed.
pub(super) fn open_kept(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true);
    open_alone(path, private(options).truncate(false))
}

pub(super) fn is_alone(metadata: &Metadata) -> bool {
    metadata.nlink() <= 1
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_owned())
}
