//! Others' programs as judges: what `tests/tools` holds, run to its end.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

/// Judges load the machine, and each of them starts many processes: this many at a time.
static SEATS: Semaphore = Semaphore::const_new(2);

pub(crate) struct ToolOutput {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

/// A path below `tests`.
pub(crate) fn tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(path)
}

/// Runs a script of `tests/tools` with the Node the official suite needs.
pub(crate) async fn node(script: &str, args: &[&str], limit: Duration) -> ToolOutput {
    let mut command = Command::new(installed("node/node-22"));
    command.arg(tests("tools").join(script)).args(args);
    judge(command, limit).await
}

/// A program that `make tools` has installed.
pub(crate) fn installed(path: &str) -> PathBuf {
    let path = tests(".tools").join(path);
    assert!(path.exists(), "run `make tools` first: no {path:?}");
    path
}

/// Whatever a judge started ends with it, also when the test gives up.
struct KilledGroup(Pid);

impl Drop for KilledGroup {
    fn drop(&mut self) {
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}

pub(crate) async fn judge(mut command: Command, limit: Duration) -> ToolOutput {
    let _seat = SEATS.acquire().await.unwrap();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let _group = KilledGroup(Pid::from_raw(child.id().unwrap() as i32));
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let work = async {
        let (_, _, status) = tokio::join!(
            stdout.read_to_end(&mut said),
            stderr.read_to_end(&mut complained),
            child.wait()
        );
        status.unwrap()
    };
    let status = tokio::time::timeout(limit, work).await;
    let stderr = String::from_utf8_lossy(&complained).into_owned();
    let Ok(status) = status else {
        panic!("not done within {limit:?}: {stderr}")
    };
    ToolOutput {
        ok: status.success(),
        stdout: String::from_utf8_lossy(&said).into_owned(),
        stderr,
    }
}
