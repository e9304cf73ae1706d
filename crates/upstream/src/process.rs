//! The process of one server and its owner: starts, watches and ends it with
//! all its descendants.
//!
//! Between Portway and the server is a helper (see [`shim`](super::shim)), our
//! own binary again, tied to Portway by a socket that the kernel closes however
//! Portway ends. So the tree ends on request, when a [`Process`] is dropped,
//! and when Portway is killed.

mod command;
pub(super) mod descriptors;
mod error;
pub(super) mod helper;
mod hidden;
mod program;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::helper::{Helper, HelperEvent};
use super::containment::{self, ContainmentStep, Ladder, ladder};
use super::shim::message::{HelperReport, KILL, TERMINATE};
use super::{leftovers, procfs};

pub use self::command::ProcessCommand;
pub use self::descriptors::{descriptor_limit, raise_descriptor_limit};
pub use self::error::SpawnError;
pub use super::shim::message::Exit;

/// Every process of a server has this variable; its value starts with the
/// instance, so that a restart finds the leftovers of a lost helper.
pub(crate) const MARKER: &str = "PORTWAY_INSTANCE";

/// From SIGKILL to the end of the last process. Only a process stuck in the
/// kernel takes longer, and cannot be ended.
const GONE_LIMIT: Duration = Duration::from_secs(10);

/// The limit of processes listed of one tree.
const TREE_LIMIT: usize = 256;

/// The running binary. On Linux, a path that stays valid when an upgrade
/// replaces the file.
pub fn own_binary() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

/// The grace periods of a server that is being ended.
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    /// After its stdin is closed, before SIGTERM.
    pub eof: Duration,
    /// After SIGTERM, before SIGKILL.
    pub term: Duration,
}

impl Default for Grace {
    fn default() -> Grace {
        Grace {
            eof: Duration::from_secs(5),
            term: Duration::from_secs(5),
        }
    }
}

/// One process of a server's tree. Without the command line, which may contain
/// the expanded value of a `${VAR}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    pub pid: u32,
    pub ppid: u32,
    pub command: String,
    /// Resident memory in bytes.
    pub rss: u64,
    /// The start time.
    pub since: SystemTime,
}

/// Locates a server's process tree while it runs.
#[derive(Clone, Copy, Debug)]
pub struct ProcessTree {
    helper: i32,
    init: i32,
    server: i32,
}

impl ProcessTree {
    /// The processes below the helper, the server first. Empty if there is no
    /// `/proc`.
    pub fn list(self) -> Vec<ProcessInfo> {
        let mut pids = procfs::descendants(self.helper);
        pids.retain(|pid| *pid != self.init);
        pids.sort_by_key(|pid| (*pid != self.server, *pid));
        pids.into_iter()
            .filter_map(procfs::info)
            .take(TREE_LIMIT)
            .collect()
    }
}

/// A running server. Dropping it closes the lifeline: the helper kills the tree
/// at once, without a grace period, and in the background.
pub struct Process {
    pub stdin: Option<Sender>,
    pub stdout: Option<Receiver>,
    pub stderr: Option<Receiver>,
    helper: Helper,
    step: ContainmentStep,
    server: i32,
    init: i32,
    hides: bool,
    marker: String,
    exit: Option<Exit>,
    cleanup: Option<JoinHandle<()>>,
}

/// A unique value for [`MARKER`].
pub(super) fn marker(instance: &str) -> String {
    format!("{instance}.{:016x}", fastrand::u64(..))
}

/// Starts a server, with the first step of the ladder that works.
pub async fn spawn(command: &ProcessCommand) -> Result<Process, SpawnError> {
    // The strongest step usually works: the first server need not wait until all
    // steps have been tried.
    if command.containment == config::Containment::Auto && !containment::is_known() {
        let path = command.find_program().await?;
        match start(command, ContainmentStep::Namespace, &path).await {
            Err(SpawnError::Refused { .. }) => {}
            // A system call filter may kill the helper instead of refusing.
            Err(SpawnError::Io { source, .. }) if source.kind() == io::ErrorKind::UnexpectedEof => {
            }
            done => return done,
        }
    }
    let ladder = ladder(&command.shim).await?;
    let steps = ladder.choose(command.containment)?;
    let path = command.find_program().await?;
    let mut refusal = None;
    for &step in steps {
        match start(command, step, &path).await {
            Err(error @ SpawnError::Refused { .. }) => {
                tracing::warn!(program = command.program, %step, %error, "containment refused");
                refusal = Some(error);
            }
            done => return done,
        }
    }
    Err(refused(refusal, ladder))
}

fn refused(refusal: Option<SpawnError>, ladder: &Ladder) -> SpawnError {
    match refusal {
        Some(SpawnError::Refused { step, reason, .. }) => SpawnError::Refused {
            step,
            reason,
            works: ladder
                .works()
                .iter()
                .copied()
                .filter(|works| *works != step)
                .collect(),
        },
        Some(other) => other,
        None => SpawnError::Io {
            doing: "choosing a containment",
            source: io::ErrorKind::Other.into(),
        },
    }
}

async fn start(
    command: &ProcessCommand,
    step: ContainmentStep,
    path: &Path,
) -> Result<Process, SpawnError> {
    if step == ContainmentStep::Namespace {
        let (command, path) = (command.clone(), path.to_owned());
        let checked = tokio::task::spawn_blocking(move || hidden::check(&command, &path));
        checked.await.unwrap_or(Ok(()))?;
    }
    let marker = marker(&command.instance);
    let request = command.request(step, path, &marker)?;
    let io = SpawnError::io("making the pipes");
    let (stdin_theirs, stdin) = io::pipe().map_err(&io)?;
    let (stdout, stdout_theirs) = io::pipe().map_err(&io)?;
    let (stderr, stderr_theirs) = io::pipe().map_err(&io)?;
    let theirs: [OwnedFd; 3] = [
        stdin_theirs.into(),
        stdout_theirs.into(),
        stderr_theirs.into(),
    ];
    let title = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into());
    let (helper, report) = Helper::start(&command.shim, &title, &request, &theirs).await?;
    match report {
        HelperReport::Started {
            server,
            init,
            hides,
        } => Ok(Process {
            stdin: Some(Sender::from_owned_fd(stdin.into()).map_err(&io)?),
            stdout: Some(Receiver::from_owned_fd(stdout.into()).map_err(&io)?),
            stderr: Some(Receiver::from_owned_fd(stderr.into()).map_err(&io)?),
            helper,
            step,
            server,
            init,
            hides: hides || command.hidden.is_empty(),
            marker,
            exit: None,
            cleanup: None,
        }),
        HelperReport::Failed(failure) => {
            Err(SpawnError::reported(failure, step, path, &command.cwd))
        }
        HelperReport::Exited(_) => Err(SpawnError::Io {
            doing: "talking to the helper",
            source: io::ErrorKind::InvalidData.into(),
        }),
    }
}

impl Process {
    /// The pid of the server's own process, as Portway sees it.
    pub fn pid(&self) -> u32 {
        self.server.unsigned_abs()
    }

    pub fn containment(&self) -> ContainmentStep {
        self.step
    }

    /// Whether the directories to hide are hidden from the server.
    pub fn hides(&self) -> bool {
        self.hides
    }

    /// Waits until the server's own process ends by itself; processes it left
    /// running are killed. Cancel-safe, and may be called again at any time.
    pub async fn exited(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            match self.helper.watch().await {
                Ok(HelperEvent::Report(HelperReport::Exited(exit))) => self.exit = Some(exit),
                Ok(HelperEvent::Report(_)) => {}
                // A stopped helper would not end the tree if Portway were killed.
                Ok(HelperEvent::Stopped) => {
                    let server = self.server;
                    tracing::warn!(server, "the helper of a server was stopped; it goes on now");
                    self.helper.resume();
                }
                // The helper was killed, and the server with it: its
                // parent-death signal is SIGKILL in every step.
                Ok(HelperEvent::Gone) | Err(_) => {
                    self.exit = Some(Exit::HelperKilled);
                    self.clean_up_after_helper();
                }
            }
        }
    }

    /// Requests the server to end, by SIGTERM; its stdin stays open.
    pub fn terminate(&self) {
        self.helper.order(TERMINATE);
    }

    /// Ends the server: closes stdin, sends SIGTERM, then SIGKILL, with the
    /// given waits between. Returns when the whole tree is gone.
    pub async fn end(mut self, grace: Grace) -> Exit {
        drop(self.stdin.take());
        if timeout(grace.eof, self.exited()).await.is_err() {
            self.helper.order(TERMINATE);
            if timeout(grace.term, self.exited()).await.is_err() {
                self.helper.order(KILL);
            }
        }
        let exit = timeout(GONE_LIMIT, self.exited()).await;
        let mut gone = timeout(GONE_LIMIT, self.helper.gone()).await.is_ok();
        if let Some(cleanup) = self.cleanup.take() {
            gone &= timeout(GONE_LIMIT, cleanup).await.is_ok();
        }
        if !gone {
            let (server, step) = (self.server, self.step);
            tracing::error!(server, %step, "a process outlives SIGKILL, stuck in the kernel");
        }
        exit.unwrap_or(Exit::Signal(Signal::SIGKILL as i32))
    }

    /// The server's process tree; `None` once the helper is gone.
    pub fn tree(&self) -> Option<ProcessTree> {
        Some(ProcessTree {
            helper: self.helper.pid()?.cast_signed(),
            init: self.init,
            server: self.server,
        })
    }

    /// Finds by their marker the processes that the helper can no longer kill.
    /// In a namespace the kernel already kills them: then this only waits.
    fn clean_up_after_helper(&mut self) {
        if self.cleanup.is_none() {
            let (step, init, marker) = (self.step, self.init, self.marker.clone());
            self.cleanup = Some(tokio::task::spawn_blocking(move || {
                leftovers::kill(&marker);
                // A dying process loses its marker before it is gone.
                if step == ContainmentStep::Namespace {
                    leftovers::await_end(init);
                }
            }));
        }
    }
}

/// Kills the processes that an earlier Portway of the same instance left behind
/// and returns their number. For a start-up that holds the lock of the data
/// directory: then no live Portway owns them.
pub fn sweep(instance: &str) -> usize {
    if !command::is_instance(instance) {
        return 0;
    }
    leftovers::kill(&format!("{instance}."))
}
