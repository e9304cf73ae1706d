//! System features of the helper that only Linux supports well.

use std::ffi::CStr;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
#[cfg(target_os = "linux")]
use nix::sys::{
    prctl,
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};
use nix::unistd::Pid;

/// Orphans below this process become its children.
pub(super) fn become_subreaper() -> nix::Result<()> {
    #[cfg(target_os = "linux")]
    return prctl::set_child_subreaper(true);
    #[cfg(not(target_os = "linux"))]
    return Err(Errno::ENOSYS);
}

/// Kills this process when `parent` dies; an error if it has died already.
pub(super) fn die_with(parent: Pid) -> nix::Result<()> {
    #[cfg(target_os = "linux")]
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if nix::unistd::getppid() != parent {
        return Err(Errno::ESRCH);
    }
    Ok(())
}

/// The name that `ps` shows.
pub(super) fn set_name(name: &CStr) {
    #[cfg(target_os = "linux")]
    let _ = prctl::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}

/// Wakes when a child has ended. SIGCHLD must be blocked.
pub(super) struct Children {
    #[cfg(target_os = "linux")]
    signals: SignalFd,
}

impl Children {
    pub(super) fn new() -> nix::Result<Children> {
        #[cfg(target_os = "linux")]
        let signals = {
            let mut mask = SigSet::empty();
            mask.add(Signal::SIGCHLD);
            SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?
        };
        Ok(Children {
            #[cfg(target_os = "linux")]
            signals,
        })
    }

    /// Waits for a child, for `other`, or for `limit`; returns `other`'s events.
    #[cfg(target_os = "linux")]
    pub(super) fn wait(&self, other: Option<BorrowedFd<'_>>, limit: PollTimeout) -> PollFlags {
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(other.map(|other| PollFd::new(other, PollFlags::POLLIN)));
        let _ = poll(&mut fds, limit);
        while let Ok(Some(_)) = self.signals.read_signal() {}
        fds.get(1)
            .and_then(PollFd::revents)
            .unwrap_or(PollFlags::empty())
    }

    /// Without signalfd a child's end is found by polling.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn wait(&self, other: Option<BorrowedFd<'_>>, limit: PollTimeout) -> PollFlags {
        let look = PollTimeout::from(20u8);
        let limit = if limit.is_none() {
            look
        } else {
            limit.min(look)
        };
        let mut fds = Vec::from_iter(other.map(|other| PollFd::new(other, PollFlags::POLLIN)));
        let _ = poll(&mut fds, limit);
        fds.first()
            .and_then(PollFd::revents)
            .unwrap_or(PollFlags::empty())
    }
}
