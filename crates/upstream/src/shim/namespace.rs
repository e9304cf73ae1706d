//! A PID namespace with an init of its own, so that the kernel itself kills
//! every process in it when init dies.
//!
//! Init ends when the helper ends (its death signal), when either of the two
//! pipes to the outside hangs up, or when it is killed. The server is the
//! helper's child, not init's: the helper gets its status directly, its pid is
//! the one seen from outside, and its parent pid is 0, not 1, which servers
//! interpret as "my parent has died".

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, getegid, geteuid};

use super::launch::split;
use super::message::{HelperReport, LaunchFailure, LaunchStage, REPORT_SIZE};

/// The namespace's first process, seen from outside.
pub(super) struct Init {
    /// Set until it is reaped.
    pid: Option<Pid>,
    hides: bool,
    /// Closes when the helper dies; never written to.
    _alive: PipeWriter,
}

impl Init {
    /// Moves the helper's future children into new namespaces and starts an
    /// init there.
    pub(super) fn start(
        control: &UnixStream,
        stdio: &[OwnedFd],
        hidden: &[CString],
    ) -> Result<Init, LaunchFailure> {
        enter_namespaces()?;
        let fork = LaunchFailure::io(LaunchStage::Fork);
        let (ready, ready_theirs) = io::pipe().map_err(&fork)?;
        let (alive_theirs, alive) = io::pipe().map_err(&fork)?;
        match split().map_err(LaunchFailure::at(LaunchStage::Fork))? {
            ForkResult::Parent { child } => {
                drop(ready_theirs);
                let mut init = Init {
                    pid: Some(child),
                    hides: false,
                    _alive: alive,
                };
                match await_ready(ready) {
                    Ok(hides) => {
                        init.hides = hides;
                        Ok(init)
                    }
                    Err(failure) => {
                        let _ = kill(child, Signal::SIGKILL);
                        let _ = waitpid(child, None);
                        init.pid = None;
                        Err(failure)
                    }
                }
            }
            ForkResult::Child => {
                drop((ready, alive));
                for server_end in stdio {
                    let _ = nix::unistd::close(server_end.as_raw_fd());
                }
                let Err(failure) = be_init(control, &alive_theirs, &ready_theirs, hidden);
                let _ = (&mut &ready_theirs).write_all(&HelperReport::Failed(failure).encode());
                std::process::exit(1)
            }
        }
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.pid
    }

    pub(super) fn hides(&self) -> bool {
        self.hides
    }

    pub(super) fn reaped(&mut self, pid: Pid) {
        if self.pid == Some(pid) {
            self.pid = None;
        }
    }
}

/// With privileges, directly. Without, inside a user namespace that maps the
/// user to itself, so that the owners of files look the same.
fn enter_namespaces() -> Result<(), LaunchFailure> {
    let wanted = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    match unshare(wanted) {
        Err(Errno::EPERM) => {}
        done => return done.map_err(LaunchFailure::at(LaunchStage::Unshare)),
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | wanted).map_err(LaunchFailure::at(LaunchStage::Unshare))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(LaunchFailure::io(LaunchStage::IdMap))
    };
    map("setgroups", "deny".into())?;
    map("uid_map", format!("{user} {user} 1"))?;
    map("gid_map", format!("{group} {group} 1"))
}

/// Whether all directories to hide are hidden.
fn await_ready(mut ready: PipeReader) -> Result<bool, LaunchFailure> {
    let mut bytes = [0; REPORT_SIZE];
    match ready
        .read_exact(&mut bytes)
        .map(|()| HelperReport::decode(&bytes))
    {
        Ok(Some(HelperReport::Started { hides, .. })) => Ok(hides),
        Ok(Some(HelperReport::Failed(failure))) => Err(failure),
        _ => Err(LaunchFailure {
            stage: LaunchStage::Proc,
            errno: Errno::EIO,
        }),
    }
}

/// Returns only with the reason why it cannot be init.
fn be_init(
    control: &UnixStream,
    alive: &PipeReader,
    ready: &PipeWriter,
    hidden: &[CString],
) -> Result<std::convert::Infallible, LaunchFailure> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(LaunchFailure::at(LaunchStage::Fork))?;
    let mut outside = [
        PollFd::new(control.as_fd(), PollFlags::empty()),
        PollFd::new(alive.as_fd(), PollFlags::empty()),
    ];
    // The death signal is set too late if the helper died before. The parent
    // pid cannot show it (outside the namespace it is always 0), the pipe can.
    if poll(&mut outside, PollTimeout::ZERO) != Ok(0) {
        std::process::exit(0);
    }
    mount_proc().map_err(LaunchFailure::at(LaunchStage::Proc))?;
    let hides = hidden.iter().all(|directory| hide(directory).is_ok());
    let _ = prctl::set_name(c"portway-init");
    // The contained processes must not trace init or take its descriptors.
    let _ = prctl::set_dumpable(false);
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.add(Signal::SIGTERM);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals =
        SignalFd::with_flags(&mask, flags).map_err(LaunchFailure::at(LaunchStage::Fork))?;
    let started = HelperReport::Started {
        server: 0,
        init: 0,
        hides,
    };
    (&mut &*ready)
        .write_all(&started.encode())
        .map_err(LaunchFailure::io(LaunchStage::Fork))?;
    loop {
        let [control, alive] = outside.clone();
        let mut fds = [
            control,
            alive,
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        let _ = poll(&mut fds, PollTimeout::NONE);
        if fds[..2].iter().any(|fd| fd.any() == Some(true)) {
            // The kernel kills all other processes.
            std::process::exit(0);
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo == Signal::SIGTERM as u32 {
                // Every process in the namespace except init.
                let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
            }
        }
        reap();
    }
}

/// Mounts of the host still appear and disappear; ours stay inside.
fn mount_proc() -> nix::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none)
}

/// Mounts an empty directory over this one. Without capabilities no process in
/// the namespace can unmount it.
fn hide(directory: &CStr) -> nix::Result<()> {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let options = Some("size=4k,mode=0555");
    match mount(Some("portway"), directory, Some("tmpfs"), flags, options) {
        Err(Errno::ENOENT) => Ok(()),
        done => done,
    }
}

fn reap() {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}
