//! Portway's side of the helper process: start, reports and end.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::timeout;

use super::{MARKER, SpawnError, descriptors};
use crate::shim;
use crate::shim::message::{HelperReport, LaunchRequest, REPORT_SIZE};

/// From the helper's start to its first report. It takes milliseconds; the
/// limit is for an overloaded machine.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running helper. `control` is the lifeline: it has no other copy (it is
/// close-on-exec from the start), so when it closes, by a drop or by the end of
/// Portway, the helper ends everything it started.
pub(crate) struct Helper {
    control: UnixStream,
    child: Child,
    inbox: [u8; REPORT_SIZE],
    filled: usize,
    /// Wakes when a child of Portway has ended or stopped.
    children: Option<Signals>,
}

pub(crate) enum HelperEvent {
    Report(HelperReport),
    /// By SIGSTOP: the helper does nothing until SIGCONT.
    Stopped,
    Gone,
}

impl Helper {
    /// Starts a helper with a request and the server's three stdio ends, and
    /// waits for its first report.
    pub(crate) async fn start(
        shim: &Path,
        title: &str,
        request: &LaunchRequest,
        stdio: &[OwnedFd],
    ) -> Result<(Helper, HelperReport), SpawnError> {
        let (ours, theirs) =
            StdUnixStream::pair().map_err(SpawnError::io("making the control socket"))?;
        let child = execute(shim, title, request, theirs).await?;
        let control = ours
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(ours))
            .map_err(SpawnError::io("making the control socket"))?;
        let mut helper = Helper {
            control,
            child,
            inbox: [0; REPORT_SIZE],
            filled: 0,
            children: signal(SignalKind::child()).ok(),
        };
        match timeout(START_LIMIT, helper.introduce(request, stdio)).await {
            Ok(Ok(report)) => Ok((helper, report)),
            Ok(Err(source)) => Err(SpawnError::Io {
                doing: "talking to the helper",
                source,
            }),
            Err(_) => Err(SpawnError::Io {
                doing: "waiting for the helper",
                source: ErrorKind::TimedOut.into(),
            }),
        }
    }

    async fn introduce(
        &mut self,
        request: &LaunchRequest,
        stdio: &[OwnedFd],
    ) -> io::Result<HelperReport> {
        let (length, body) = request.encode();
        let raw: Vec<_> = stdio.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&raw)];
        let rights = if raw.is_empty() {
            &rights[..0]
        } else {
            &rights[..]
        };
        let control = self.control.as_raw_fd();
        // Four bytes into an empty socket: all or nothing.
        let send = || {
            let vector = [IoSlice::new(&length)];
            let sent = sendmsg::<UnixAddr>(control, &vector, rights, MsgFlags::empty(), None);
            Ok(sent?)
        };
        self.control.async_io(Interest::WRITABLE, send).await?;
        self.control.write_all(&body).await?;
        self.report()
            .await?
            .ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// The next report; `None` when the helper is gone. Cancel-safe.
    pub(crate) async fn report(&mut self) -> io::Result<Option<HelperReport>> {
        next_report(&mut self.control, &mut self.inbox, &mut self.filled).await
    }

    /// The next event of the helper. Cancel-safe.
    pub(crate) async fn watch(&mut self) -> io::Result<HelperEvent> {
        loop {
            if self.was_stopped() {
                return Ok(HelperEvent::Stopped);
            }
            let Helper {
                control,
                inbox,
                filled,
                children,
                ..
            } = self;
            let woken = async {
                match children {
                    Some(children) => drop(children.recv().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                report = next_report(control, inbox, filled) => return Ok(match report? {
                    Some(report) => HelperEvent::Report(report),
                    None => HelperEvent::Gone,
                }),
                () = woken => {}
            }
        }
    }

    /// Whether the helper was stopped since the last call.
    fn was_stopped(&self) -> bool {
        let Some(pid) = self.child.id() else {
            return false;
        };
        let pid = Pid::from_raw(pid.cast_signed());
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        matches!(waitid(Id::Pid(pid), flags), Ok(WaitStatus::Stopped(..)))
    }

    pub(crate) fn resume(&self) {
        if let Some(pid) = self.child.id() {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT);
        }
    }

    /// Sends one byte into a socket that the helper reads at once. A failure
    /// means that the helper is gone, which the next report shows.
    pub(crate) fn order(&self, order: u8) {
        let _ = self.control.try_write(&[order]);
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the helper has ended, which it does after all processes it
    /// held.
    pub(crate) async fn gone(&mut self) {
        while let Ok(Some(_)) = self.report().await {}
        // An error would mean that the child is already reaped.
        let _ = self.child.wait().await;
    }
}

async fn next_report(
    control: &mut UnixStream,
    inbox: &mut [u8; REPORT_SIZE],
    filled: &mut usize,
) -> io::Result<Option<HelperReport>> {
    while *filled < REPORT_SIZE {
        match control.read(&mut inbox[*filled..]).await {
            Ok(0) => return Ok(None),
            Ok(count) => *filled += count,
            // The helper died with an unread order in its socket.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    *filled = 0;
    Ok(HelperReport::decode(inbox))
}

/// Executes our own binary, off the async threads: `vfork` blocks its thread
/// until the new image is mapped. The helper's environment is empty, so that no
/// variable meant for the server (LD_PRELOAD, say) affects it.
async fn execute(
    shim: &Path,
    title: &str,
    request: &LaunchRequest,
    control: StdUnixStream,
) -> Result<Child, SpawnError> {
    let mut command = Command::new(shim);
    command
        .arg0("portway")
        .args([shim::ARGUMENT, request.step.as_str(), title])
        .env_clear()
        .env(MARKER, &*request.marker.to_string_lossy())
        .stdin(Stdio::from(OwnedFd::from(control)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(soft) = descriptors::original() {
        command.env(descriptors::VARIABLE, soft.to_string());
    }
    tokio::task::spawn_blocking(move || command.spawn())
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the runtime is shutting down")))
        .map_err(SpawnError::io("starting the helper"))
}
