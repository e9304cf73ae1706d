//! The guard of one process tree until the tree is gone.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::hold::TreeHold;
use super::launch;
use super::message::{
    Exit, HelperReport, KILL, LaunchFailure, LaunchRequest, LaunchStage, REPORT_SIZE, TERMINATE,
};
use super::platform::Children;

/// The pause between two rounds of killing: at first as short as a child's death
/// can wake us, later (a process that cannot be killed) without using much CPU.
const EAGER: u8 = 1;
const PATIENT: u8 = 50;
const EAGER_ROUNDS: u32 = 500;

pub(super) struct TreeGuard<'a> {
    control: &'a UnixStream,
    hold: TreeHold,
    children: Children,
    /// Set until the server is reaped: its pid must not be used after that.
    server: Option<Pid>,
    exit: Option<Exit>,
}

#[derive(PartialEq)]
enum GuardOrder {
    Nothing,
    Terminate,
    Kill,
}

impl TreeGuard<'_> {
    pub(super) fn new(
        control: &UnixStream,
        hold: TreeHold,
    ) -> Result<TreeGuard<'_>, LaunchFailure> {
        let children = Children::new().map_err(LaunchFailure::at(LaunchStage::Fork))?;
        Ok(TreeGuard {
            control,
            hold,
            children,
            server: None,
            exit: None,
        })
    }

    /// Starts the server and waits until its program runs.
    pub(super) fn launch(
        &mut self,
        request: &LaunchRequest,
        stdio: Vec<OwnedFd>,
    ) -> Result<(), LaunchFailure> {
        let (server, status) = launch::fork_server(request, stdio, &mut self.hold)?;
        self.server = Some(server);
        self.await_exec(status)?;
        if !request.is_probe() {
            self.tell(HelperReport::Started {
                server: server.as_raw(),
                init: self.hold.init(),
                hides: self.hold.hides(),
            });
        }
        Ok(())
    }

    /// The status pipe closes when the program runs, and delivers the failure
    /// if it does not. A program on a dead network disk does neither, so the
    /// lifeline is watched too.
    fn await_exec(&self, mut status: PipeReader) -> Result<(), LaunchFailure> {
        let mut fds = [
            PollFd::new(status.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.control.as_fd(), PollFlags::empty()),
        ];
        while let Err(Errno::EINTR) = poll(&mut fds, PollTimeout::NONE) {}
        if fds[0].any() != Some(true) {
            return Err(LaunchFailure {
                stage: LaunchStage::Exec,
                errno: Errno::EPIPE,
            });
        }
        let mut bytes = [0; REPORT_SIZE];
        match status
            .read_exact(&mut bytes)
            .map(|()| HelperReport::decode(&bytes))
        {
            Ok(Some(HelperReport::Failed(failure))) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Runs until the server ends by itself, or Portway orders it or ends: then
    /// until no process is left.
    pub(super) fn watch(mut self) {
        loop {
            self.reap();
            if let Some(exit) = self.exit {
                self.tell(HelperReport::Exited(exit));
                return self.clear();
            }
            match self.wait_for_order() {
                GuardOrder::Nothing => {}
                GuardOrder::Terminate => self.hold.terminate(),
                GuardOrder::Kill => break,
            }
        }
        self.clear();
        if let Some(exit) = self.exit {
            self.tell(HelperReport::Exited(exit));
        }
    }

    fn wait_for_order(&self) -> GuardOrder {
        let control = self
            .children
            .wait(Some(self.control.as_fd()), PollTimeout::NONE);
        if control.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return GuardOrder::Kill;
        }
        if !control.contains(PollFlags::POLLIN) {
            return GuardOrder::Nothing;
        }
        let mut orders = [0; 16];
        match (&mut &*self.control).read(&mut orders) {
            Ok(count) if orders[..count].contains(&KILL) => GuardOrder::Kill,
            Ok(count) if orders[..count].contains(&TERMINATE) => GuardOrder::Terminate,
            Ok(0) | Err(_) => GuardOrder::Kill,
            Ok(_) => GuardOrder::Nothing,
        }
    }

    /// Kills until no process is left. No limit: this is the whole purpose of
    /// the helper while a process is left; Portway does not wait for ever.
    pub(super) fn clear(&mut self) {
        let mut rounds = 0;
        loop {
            self.hold.kill(self.server);
            if !self.reap() {
                break;
            }
            rounds += 1;
            let pause = if rounds < EAGER_ROUNDS {
                EAGER
            } else {
                PATIENT
            };
            self.children.wait(None, PollTimeout::from(pause));
        }
        self.hold.finish();
    }

    /// Reaps every child that has ended. Returns whether any is left.
    fn reap(&mut self) -> bool {
        loop {
            let (pid, exit) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal as i32)),
                Ok(WaitStatus::StillAlive) => return true,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => return false,
            };
            if self.server == Some(pid) {
                self.server = None;
                self.exit = Some(exit);
            }
            self.hold.reaped(pid);
        }
    }

    fn tell(&self, report: HelperReport) {
        let _ = (&mut &*self.control).write_all(&report.encode());
    }
}
