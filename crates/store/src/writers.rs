//! Detects whether another process has a file open for writing. Its next write
//! would go into a file that has been replaced, and be lost.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::file::read_open;

/// An editor has finished writing after this many waits.
const WAITS: u32 = 40;
const WAIT: Duration = Duration::from_millis(5);

/// The content of a file once no process writes to it; `None` if one still does
/// after the time limit.
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

/// `None` where the system cannot detect it.
///
/// A read lease is refused while any process has the file open for writing. It
/// is released at once: only the result matters.
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
    // A process that opens the file while we hold the lease makes the kernel
    // send us a signal: the default one ends the process, so we choose another.
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
