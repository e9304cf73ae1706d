//! The helper between Portway and one server: our own binary, started again.
//!
//! One thread, no runtime, a few pages of memory. It holds one end of a socket
//! whose other end only Portway has. When that end closes, for any reason, the
//! helper kills everything below it. It also reaps, forwards SIGTERM, and
//! reports how the server ended.
//!
//! ```text
//! portway ── control socket ── helper ─┬─ server ── anything
//!                                      └─ init (in the namespace step)
//! ```

pub(super) mod cgroup;
mod guard;
mod hold;
mod launch;
pub mod message;
#[cfg(target_os = "linux")]
mod namespace;
mod platform;
#[cfg(target_os = "linux")]
mod privileges;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::setsid;

use super::process::descriptors;

use self::guard::TreeGuard;
use self::hold::TreeHold;
use self::message::{HelperReport, LaunchFailure, LaunchRequest, LaunchStage, REQUEST_LIMIT};

/// The first argument that makes the binary a helper.
pub(crate) const ARGUMENT: &str = "__shim";

/// Becomes the helper, for good, if this process was started as one. Must be
/// called before anything else: before threads, before arguments are parsed.
pub fn run_if_asked() {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == ARGUMENT)
    {
        std::process::exit(run());
    }
}

fn run() -> i32 {
    let Ok(mut control) = detach() else {
        return 1;
    };
    let report = match start(&control) {
        Ok(Some(guard)) => {
            guard.watch();
            return 0;
        }
        Ok(None) => HelperReport::Started {
            server: 0,
            init: 0,
            hides: false,
        },
        Err(failure) => HelperReport::Failed(failure),
    };
    // If Portway is gone, there is no reader: ignore the error.
    let _ = control.write_all(&report.encode());
    0
}

/// Drops all inherited state except the control socket, which is stdin:
/// session, signals, working directory, descriptors leaked by Portway's parent.
fn detach() -> io::Result<UnixStream> {
    let _ = setsid();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
    launch::reset_signals();
    descriptors::restore();
    std::env::set_current_dir("/")?;
    close_inherited();
    platform::set_name(c"portway-shim");
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(UnixStream::from(control))
}

fn close_inherited() {
    let list = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    let Ok(entries) = std::fs::read_dir(list) else {
        return;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let open: Vec<i32> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The descriptor of the directory listing itself is already closed.
        let _ = nix::unistd::close(descriptor);
    }
}

/// `None` for a successful probe. After a failure or a probe, the containment
/// is removed again when this returns.
fn start(control: &UnixStream) -> Result<Option<TreeGuard<'_>>, LaunchFailure> {
    let (request, stdio) = receive(control)?;
    let hold = TreeHold::take(&request, control, &stdio)?;
    let mut guard = TreeGuard::new(control, hold)?;
    let launched = guard.launch(&request, stdio);
    if launched.is_err() || request.is_probe() {
        guard.clear();
    }
    launched?;
    Ok((!request.is_probe()).then_some(guard))
}

fn receive(control: &UnixStream) -> Result<(LaunchRequest, Vec<OwnedFd>), LaunchFailure> {
    let (length, stdio) = launch::receive_descriptors(control)?;
    let length = u32::from_le_bytes(length) as usize;
    let mut body = vec![0; length.min(REQUEST_LIMIT)];
    (&mut &*control)
        .read_exact(&mut body)
        .map_err(LaunchFailure::io(LaunchStage::Request))?;
    match LaunchRequest::decode(&body) {
        Some(request) if request.is_probe() || stdio.len() == 3 => Ok((request, stdio)),
        _ => Err(LaunchFailure {
            stage: LaunchStage::Request,
            errno: Errno::EINVAL,
        }),
    }
}
