//! Temporary failures, which say nothing about the file itself.

use std::io;

/// Whether a retry may work although the file does not change: there was no
/// free descriptor or memory, or the device or the network failed.
pub fn is_passing(error: &io::Error) -> bool {
    let known = [
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOMEM,
        libc::ENOBUFS,
        libc::EAGAIN,
        libc::EINTR,
        libc::EIO,
        libc::EBUSY,
        libc::ESTALE,
        libc::ETIMEDOUT,
        libc::ENOTCONN,
        libc::EHOSTDOWN,
        libc::EREMOTEIO,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| known.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b7_only_failures_of_the_moment_are_passing() {
        let of = io::Error::from_raw_os_error;
        for code in [libc::EMFILE, libc::ENFILE, libc::EIO, libc::ESTALE] {
            assert!(is_passing(&of(code)), "{code}");
        }
        for code in [libc::ENOENT, libc::EACCES, libc::EISDIR, libc::ENOSPC] {
            assert!(!is_passing(&of(code)), "{code}");
        }
        assert!(!is_passing(&io::Error::other("is larger than 64 MiB")));
    }
}
