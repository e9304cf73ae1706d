//! Processes that lost their helper, found by the marker in their environment
//! and by the name of their cgroup.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;

use super::process::MARKER;
use super::procfs;
use super::shim::cgroup;

/// The limit for killing a tree that keeps forking.
const LIMIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(2);

/// One scan can miss a process that starts, or changes its program, while the
/// table is read.
const EMPTY_LOOKS: u32 = 2;

/// Kills every process whose marker starts with `beginning`, until none is
/// found, and returns how many there were.
pub(super) fn kill(beginning: &str) -> usize {
    cgroup::clear(beginning);
    let wanted = format!("{MARKER}={beginning}");
    let spared = own_line();
    let mut killed = HashSet::new();
    let mut empty_looks = 0;
    let deadline = Instant::now() + LIMIT;
    while empty_looks < EMPTY_LOOKS && Instant::now() < deadline {
        empty_looks += 1;
        let marked = |pid: &i32| !spared.contains(pid) && procfs::has_environment(*pid, &wanted);
        for pid in procfs::all().filter(marked) {
            empty_looks = 0;
            if send(Pid::from_raw(pid), Signal::SIGKILL).is_ok() {
                killed.insert(pid);
            }
        }
        if empty_looks < EMPTY_LOOKS {
            std::thread::sleep(PAUSE);
        }
    }
    killed.len()
}

/// Waits for a dying process. An init does not become a zombie before the last
/// process of its namespace is gone.
pub(super) fn await_end(pid: i32) {
    let deadline = Instant::now() + LIMIT;
    while procfs::is_alive(pid) && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
}

/// This process and its ancestors: a Portway restarted by a tool of one of its
/// own servers has that server's marker itself.
fn own_line() -> HashSet<i32> {
    let mut line = HashSet::new();
    let mut next = Some(Pid::this().as_raw());
    while let Some(pid) = next.filter(|pid| *pid > 0 && line.insert(*pid)) {
        next = procfs::parent(pid);
    }
    line
}
