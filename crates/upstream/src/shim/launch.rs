//! The start of the server's program by the helper: descriptors, fork, exec.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, IoSliceMut, PipeReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};
use nix::unistd::{
    ForkResult, Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, fork, setsid,
};

use super::hold::TreeHold;
use super::message::{HelperReport, LaunchFailure, LaunchRequest, LaunchStage};

const SHELL: &CStr = c"/bin/sh";

/// The request's length, and the descriptors received with it.
#[expect(unsafe_code, reason = "received descriptors arrive as bare numbers")]
pub(super) fn receive_descriptors(
    control: &UnixStream,
) -> Result<([u8; 4], Vec<OwnedFd>), LaunchFailure> {
    let fail = LaunchFailure::at(LaunchStage::Request);
    let mut length = [0; 4];
    let mut space = nix::cmsg_space!([RawFd; 3]);
    let mut vector = [IoSliceMut::new(&mut length)];
    let flags = MsgFlags::MSG_WAITALL;
    let message = recvmsg::<UnixAddr>(control.as_raw_fd(), &mut vector, Some(&mut space), flags)
        .map_err(&fail)?;
    let mut descriptors = Vec::new();
    for part in message.cmsgs().map_err(&fail)? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel has just made these descriptors for us, and
            // nothing else knows their numbers.
            descriptors.extend(
                numbers
                    .into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            );
        }
    }
    for descriptor in &descriptors {
        fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(&fail)?;
    }
    if message.bytes != length.len() {
        return Err(fail(Errno::EPIPE));
    }
    Ok((length, descriptors))
}

/// Forks the server. The pipe delivers a failure, or closes when the program
/// runs. The helper's copies of the stdio ends are closed on return, so that
/// the server's are the last.
pub(super) fn fork_server(
    request: &LaunchRequest,
    stdio: Vec<OwnedFd>,
    hold: &mut TreeHold,
) -> Result<(Pid, PipeReader), LaunchFailure> {
    let (status, mut status_theirs) = io::pipe().map_err(LaunchFailure::io(LaunchStage::Fork))?;
    let helper = Pid::this();
    match split().map_err(LaunchFailure::at(LaunchStage::Fork))? {
        ForkResult::Parent { child } => {
            hold.launched(child);
            Ok((child, status))
        }
        ForkResult::Child => {
            let Err(failure) = become_server(request, &stdio, hold, helper);
            let _ = status_theirs.write_all(&HelperReport::Failed(failure).encode());
            std::process::exit(127)
        }
    }
}

/// `fork`, for a process that is known to have one thread.
#[expect(
    unsafe_code,
    reason = "fork; the helper has one thread, so the child may do anything"
)]
pub(super) fn split() -> nix::Result<ForkResult> {
    // SAFETY: no other thread exists whose locks the child could find held.
    unsafe { fork() }
}

fn become_server(
    request: &LaunchRequest,
    stdio: &[OwnedFd],
    hold: &TreeHold,
    helper: Pid,
) -> Result<Infallible, LaunchFailure> {
    setsid().map_err(LaunchFailure::at(LaunchStage::Fork))?;
    hold.enter(helper)?;
    if request.is_probe() {
        std::process::exit(0);
    }
    if let [stdin, stdout, stderr] = stdio {
        dup2_stdin(stdin)
            .and_then(|()| dup2_stdout(stdout))
            .and_then(|()| dup2_stderr(stderr))
            .map_err(LaunchFailure::at(LaunchStage::Stdio))?;
    }
    // Before the working directory: the server could not use one that only a
    // capability opens.
    if !request.keep_privileges {
        drop_privileges()?;
    }
    chdir(request.cwd.as_c_str()).map_err(LaunchFailure::at(LaunchStage::Chdir))?;
    let none = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&none), None)
        .map_err(LaunchFailure::at(LaunchStage::Fork))?;
    let errno = execute(&request.path, &request.args, &request.env);
    Err(LaunchFailure {
        stage: LaunchStage::Exec,
        errno,
    })
}

#[cfg(target_os = "linux")]
fn drop_privileges() -> Result<(), LaunchFailure> {
    super::privileges::drop().map_err(|error| LaunchFailure {
        stage: LaunchStage::Privileges,
        errno: Errno::from_raw(error.raw_os_error()),
    })
}

/// Other systems have no equivalent.
#[cfg(not(target_os = "linux"))]
fn drop_privileges() -> Result<(), LaunchFailure> {
    Ok(())
}

/// An ignored signal stays ignored through exec. No server expects that, and
/// with SIGCHLD ignored the helper itself could not wait for its children.
#[expect(unsafe_code, reason = "signal(2); only the default action is set")]
pub(super) fn reset_signals() {
    for number in Signal::iterator() {
        // SAFETY: SIG_DFL runs no code of ours. SIGKILL and SIGSTOP refuse.
        let _ = unsafe { signal(number, SigHandler::SigDfl) };
    }
}

/// Like `execvp`, runs a script without a `#!` line with the shell.
fn execute(path: &CStr, args: &[CString], env: &[CString]) -> Errno {
    let Err(errno) = execve(path, args, env);
    if errno != Errno::ENOEXEC || !is_text(path) {
        return errno;
    }
    let mut shell_args = vec![SHELL, path];
    shell_args.extend(args.iter().skip(1).map(CString::as_c_str));
    let Err(errno) = execve(SHELL, &shell_args, env);
    errno
}

fn is_text(path: &CStr) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
    let mut start = [0; 256];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|count| !start[..count].contains(&0))
}
