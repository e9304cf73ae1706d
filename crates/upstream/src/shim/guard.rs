//! Watching over one tree until it is gone.

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

/// Between two rounds of killing: at first as fast as a child's death can
/// wake us, later (a process we may not kill, or cannot) without burning CPU.
const EAGER: u8 = 1;
const PATIENT: u8 = 50;
const EAGER_ROUNDS: u32 = 500;

pub(super) struct TreeGuard<'a> {
    control: &'a UnixStream,
    hold: TreeHold,
    children: Children,
    /// Set while it is ours to reap: a number must not be used after that.
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

    /// The status pipe closes when the program runs and brings the failure if
    /// it does not. A program on a dead network disk does neither, so the
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

    /// Until the server ends by itself or Portway says so or goes: then until
    /// nothing is left.
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

    /// Kills until nothing is left. No limit: as long as there is something,
    /// it is this process's whole purpose; Portway does not wait for ever.
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

    /// Takes in every child that has ended. Says whether any is left.
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
