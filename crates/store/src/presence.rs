//! The clients of a gateway that was started for them. Each holds a lock for as
//! long as it lives, so that the gateway notices when a client ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::lock::{make_directory, open_lock, private, write_process_id};
use super::{AtPath, DuringOperation, StoreErrorKind, StoreResult, file, own};

const CLIENTS: &str = "clients";
const LOCK: &str = "lock";

/// A client of the gateway, until dropped.
#[derive(Debug)]
pub struct Presence {
    _file: File,
}

impl Presence {
    /// `None` while a gateway checks for clients, or is about to end: try again.
    pub fn join(directory: &Path) -> StoreResult<Option<Presence>> {
        let file = open(directory).during("use the data directory")?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Ok(None),
            locked => {
                let locked = locked.map_err(io::Error::from).at(&directory.join(CLIENTS));
                locked.during("use the data directory")?;
                Ok(Some(Presence { _file: file }))
            }
        }
    }
}

/// The gateway's side.
#[derive(Debug)]
pub struct Attendance(File);

impl Attendance {
    /// Records that the current holder of the directory serves other processes.
    pub fn open(directory: &Path) -> StoreResult<Attendance> {
        let opened = open(directory).and_then(|mut file| {
            write_process_id(&mut file).at(&directory.join(CLIENTS))?;
            Ok(Attendance(file))
        });
        opened.during("follow who is there")
    }

    pub fn is_empty(&self) -> bool {
        let empty = self.0.try_lock().is_ok();
        let _ = self.0.unlock();
        empty
    }

    /// If there are no clients, admits no further ones: a client that starts
    /// now waits until this process has ended.
    pub fn close(&self) -> bool {
        self.0.try_lock().is_ok()
    }
}

/// Whether a Portway holds the directory now. Otherwise the address in it is
/// old, and another process may have taken it over.
pub fn is_in_use(directory: &Path) -> bool {
    let Ok(file) = open_lock(directory) else {
        return false;
    };
    // Shared, and for a moment: a process that is just starting tries again.
    let free = file.try_lock_shared().is_ok();
    let _ = file.unlock();
    !free
}

/// Whether the holder of the directory was started for other processes.
pub fn serves_clients(directory: &Path) -> bool {
    let number = |name: &str| -> Option<u32> {
        let bytes = file::read(&directory.join(name)).ok()??;
        std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
    };
    let holder = number(LOCK);
    holder.is_some() && holder == number(CLIENTS)
}

/// Opens a file of the directory for appending, and creates it if needed.
pub fn append_private(path: &Path) -> StoreResult<File> {
    let made = path.parent().map_or(Ok(()), make_directory);
    let opened = made.and_then(|()| {
        let mut options = OpenOptions::new();
        own::open_alone(path, private(options.append(true).create(true))).at(path)
    });
    opened.during("write a log")
}

fn open(directory: &Path) -> Result<File, StoreErrorKind> {
    make_directory(directory)?;
    let path = directory.join(CLIENTS);
    own::open_kept(&path).at(&path)
}

#[cfg(test)]
mod tests {
    use super::super::lock::DirectoryLock;
    use super::*;

    #[test]
    fn k5_a_gateway_sees_who_is_there_and_lets_nobody_in_when_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let attendance = Attendance::open(path).unwrap();
        assert!(attendance.is_empty());
        let one = Presence::join(path).unwrap().unwrap();
        let two = Presence::join(path).unwrap().unwrap();
        assert!(!attendance.is_empty() && !attendance.close());
        drop(one);
        assert!(!attendance.is_empty());
        drop(two);
        assert!(attendance.is_empty() && attendance.close());
        assert!(Presence::join(path).unwrap().is_none());
        drop(attendance);
        assert!(Presence::join(path).unwrap().is_some());
    }

    #[test]
    fn k5_an_address_counts_while_its_directory_is_held() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(!is_in_use(path) && !serves_clients(path));
        let lock = DirectoryLock::take(path).unwrap();
        assert!(is_in_use(path) && !serves_clients(path));
        let _attendance = Attendance::open(path).unwrap();
        assert!(serves_clients(path));
        drop(lock);
        assert!(!is_in_use(path));
        DirectoryLock::take(path).unwrap();
    }
}
