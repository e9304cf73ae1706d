//! The number of written bytes that the reader has left in the pipe.

use std::os::fd::{AsRawFd, BorrowedFd};

/// The unread bytes in the pipe; `None` if that is not known.
#[expect(
    unsafe_code,
    reason = "no safe wrapper of FIONREAD among our dependencies"
)]
pub(super) fn unread(pipe: BorrowedFd<'_>) -> Option<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open for the borrow, and FIONREAD writes one
    // int to the address given.
    let result = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut bytes) };
    (result == 0).then_some(bytes as usize)
}
