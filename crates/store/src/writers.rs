//! Whether another process has a file open for writing. What it is about to write
//! would go into a file that has been replaced, and be lost.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::file::read_open;

/// An editor has written what it wants to write by then.
const WAITS: u32 = 40;
const WAIT: Duration = Duration::from_millis(5);

/// What a file holds that no process writes to any more; `None` if one
/// still does after a while.
pub(super) fn read_finished(path: &Path, can_tell: bool) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    for _ in 0..WAITS {
        if !can_tell || has_writer(&file) != Some(true) {
            return read_open(&file).map(Some);
        }
        std::thread::sleep(WAIT);
    }
    Ok(None)
}

/// `None` where the system cannot tell.
///
/// A read lease is refused while anyone has the file open for writing. It is
/// given back at once: all that is wanted is the answer.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "fcntl has no safe form for leases")]
pub(super) fn has_writer(file: &File) -> Option<bool> {
    use nix::errno::Errno;
    use std::os::fd::AsRawFd;

    const F_SETSIG: libc::c_int = 10;
    let fcntl = |command: libc::c_int, argument: libc::c_int| {
        // SAFETY: the descriptor is open, and these commands take an integer.
        Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), command, argument) })
    };
    // Whoever opens the file while we hold the lease makes the kernel send us
    // a signal: by default one that ends the process, so one that does not.
    fcntl(F_SETSIG, libc::SIGURG).ok()?;
    match fcntl(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(_) => {
            let _ = fcntl(libc::F_SETLEASE, libc::F_UNLCK);
            Some(false)
        }
        Err(Errno::EAGAIN) => Some(true),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn has_writer(_: &File) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn b7_an_open_writer_is_noticed_and_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(has_writer(&file), Some(false));
        let writer = File::options().write(true).open(&path).unwrap();
        assert_eq!(has_writer(&file), Some(true));
        assert_eq!(read_finished(&path, true).unwrap(), None);
        assert_eq!(read_finished(&path, false).unwrap().unwrap(), b"old");
        let end = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            std::io::Write::write_all(&mut &writer, b"new").unwrap();
        });
        assert_eq!(read_finished(&path, true).unwrap().unwrap(), b"new");
        end.join().unwrap();
    }
}
