//! Locks a data directory for one process, for its whole life. The lock ends with
//! the process in any case; the process id in the file is for the message only.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use super::file::sync_directory;
use super::whereabouts::forget_predecessor;
use super::{AtPath, StoreErrorKind, own};

const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Held until dropped.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    file: File,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A child that has not yet called exec still has the file open: if we
        // only closed ours, the child would keep the lock for a moment.
        let _ = self.file.unlock();
    }
}

impl DirectoryLock {
    pub(super) fn take(directory: &Path) -> Result<DirectoryLock, StoreErrorKind> {
        let path = directory.join("lock");
        let mut file = own::open_kept(&path).at(&path)?;
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreErrorKind::Locked {
                    directory: directory.to_owned(),
                    pid: process_id(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(StoreErrorKind::io(path, error)),
        }
        forget_predecessor(directory)
            .and_then(|()| write_process_id(&mut file))
            .at(&path)?;
        Ok(DirectoryLock { file })
    }
}

/// A holder that has not written its process id yet has none.
fn process_id(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    text.trim().parse().ok()
}

pub(super) fn write_process_id(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// The holder of the directory. This takes the lock for a moment: a process
/// that starts at that moment tries again.
pub fn holder(directory: &Path) -> io::Result<Holder> {
    let mut file = match open_lock(directory) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::Nobody),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            file.unlock()?;
            Ok(Holder::Nobody)
        }
        Err(TryLockError::WouldBlock) => Ok(Holder::Process(process_id(&mut file))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Opens the lock file for reading.
pub(super) fn open_lock(directory: &Path) -> io::Result<File> {
    own::open_alone(&directory.join("lock"), OpenOptions::new().read(true))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Nobody,
    /// Its process id, if the file has one.
    Process(Option<u32>),
}

/// Retries: a child that the last holder was just starting also holds the lock,
/// until it has called exec.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    file.try_lock()
}

/// Creates the directory, closed to other users and to git. An existing one is
/// left as it is: it may hold other files too.
pub fn make_directory(directory: &Path) -> Result<(), StoreErrorKind> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).at(directory)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.at(directory)?,
    }
    // The directory may be in a repository, and holds keys.
    let mut options = OpenOptions::new();
    let options = private(options.write(true).create(true).truncate(true));
    own::open(&directory.join(".gitignore"), options)
        .and_then(|mut file| file.write_all(b"*\n"))
        .and_then(|()| sync_directory(directory))
        .at(directory)
}

/// Makes files created with these options private, whatever the umask.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f6_a_lock_given_up_is_free_whoever_still_has_the_file_open() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::take(directory.path()).unwrap();
        // As a child has it between fork and exec.
        let _inherited = lock.file.try_clone().unwrap();
        let refused = DirectoryLock::take(directory.path()).unwrap_err();
        assert!(matches!(refused, StoreErrorKind::Locked { .. }));
        let ours = Holder::Process(Some(std::process::id()));
        assert_eq!(holder(directory.path()).unwrap(), ours);
        drop(lock);
        assert_eq!(holder(directory.path()).unwrap(), Holder::Nobody);
        DirectoryLock::take(directory.path()).unwrap();
    }
}
