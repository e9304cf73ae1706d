//! The steps of the containment ladder, as the helper performs them.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::cgroup::Cgroup;
use super::message::{LaunchFailure, LaunchRequest, LaunchStage};
#[cfg(target_os = "linux")]
use super::namespace::Init;
use super::platform::{become_subreaper, die_with};
use crate::containment::ContainmentStep;
use crate::{leftovers, procfs};

/// A containment in force.
pub(super) enum TreeHold {
    #[cfg(target_os = "linux")]
    Namespace(Init),
    Cgroup(Cgroup),
    Subreaper,
    Group {
        /// The server's pid is also its group id, and stays reserved as long as
        /// the group has a member.
        group: Option<Pid>,
        marker: String,
    },
}

impl TreeHold {
    /// `control` and `stdio` are for an init: it watches the first and closes
    /// the others.
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "no init"))]
    pub(super) fn take(
        request: &LaunchRequest,
        control: &UnixStream,
        stdio: &[OwnedFd],
    ) -> Result<TreeHold, LaunchFailure> {
        let marker = request.marker.to_string_lossy();
        let no_subreaper = LaunchFailure::at(LaunchStage::Subreaper);
        Ok(match request.step {
            #[cfg(target_os = "linux")]
            ContainmentStep::Namespace => {
                TreeHold::Namespace(Init::start(control, stdio, &request.hidden)?)
            }
            #[cfg(not(target_os = "linux"))]
            ContainmentStep::Namespace => return Err(no_subreaper(nix::errno::Errno::ENOSYS)),
            ContainmentStep::Cgroup => {
                // Not to kill: to reap, and so to know when the whole tree is gone.
                become_subreaper().map_err(no_subreaper)?;
                TreeHold::Cgroup(
                    Cgroup::make(&marker).map_err(LaunchFailure::io(LaunchStage::Cgroup))?,
                )
            }
            ContainmentStep::Subreaper => {
                become_subreaper().map_err(no_subreaper)?;
                TreeHold::Subreaper
            }
            ContainmentStep::Group => TreeHold::Group {
                group: None,
                marker: marker.into(),
            },
        })
    }

    /// Runs in the server's process, before its program.
    pub(super) fn enter(&self, helper: Pid) -> Result<(), LaunchFailure> {
        match self {
            // The kernel ties the namespace to its init, and init to the helper.
            #[cfg(target_os = "linux")]
            TreeHold::Namespace(_) => return Ok(()),
            TreeHold::Cgroup(cgroup) => cgroup
                .join()
                .map_err(LaunchFailure::io(LaunchStage::Cgroup))?,
            TreeHold::Subreaper | TreeHold::Group { .. } => {}
        }
        die_with(helper).map_err(LaunchFailure::at(LaunchStage::Fork))
    }

    pub(super) fn launched(&mut self, server: Pid) {
        if let TreeHold::Group { group, .. } = self {
            *group = Some(server);
        }
    }

    /// The pid of the namespace's init, else 0.
    pub(super) fn init(&self) -> i32 {
        match self {
            #[cfg(target_os = "linux")]
            TreeHold::Namespace(init) => init.pid().map_or(0, Pid::as_raw),
            _ => 0,
        }
    }

    /// Whether the directories to hide are hidden. That requires a mount
    /// namespace of the tree's own.
    pub(super) fn hides(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            TreeHold::Namespace(init) => init.hides(),
            _ => false,
        }
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// One round; the caller repeats it until no child is left to reap.
    pub(super) fn kill(&self, server: Option<Pid>) {
        if let TreeHold::Cgroup(cgroup) = self {
            cgroup.kill();
        }
        self.signal(Signal::SIGKILL);
        // The server may not be in its group, or its cgroup, yet.
        if let Some(server) = server {
            let _ = kill(server, Signal::SIGKILL);
        }
    }

    fn signal(&self, signal: Signal) {
        match self {
            // Init forwards SIGTERM to all others; with SIGKILL all die.
            #[cfg(target_os = "linux")]
            TreeHold::Namespace(init) => {
                let _ = init.pid().map(|pid| kill(pid, signal));
            }
            // A root server may have moved processes to another cgroup.
            TreeHold::Cgroup(_) | TreeHold::Subreaper => {
                for pid in procfs::descendants(Pid::this().as_raw()) {
                    let _ = kill(Pid::from_raw(pid), signal);
                }
            }
            TreeHold::Group { group, .. } => {
                let _ = group.map(|group| killpg(group, signal));
            }
        }
    }

    pub(super) fn reaped(&mut self, pid: Pid) {
        #[cfg(target_os = "linux")]
        if let TreeHold::Namespace(init) = self {
            init.reaped(pid);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
    }

    /// Call after the last child is reaped.
    pub(super) fn finish(&self) {
        match self {
            TreeHold::Cgroup(cgroup) => cgroup.remove(),
            TreeHold::Group {
                group: Some(_),
                marker,
            } => {
                leftovers::kill(marker);
            }
            _ => {}
        }
    }
}
