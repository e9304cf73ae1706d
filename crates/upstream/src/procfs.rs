//! Process information from `/proc`. Any entry may vanish during the read: an
//! unreadable entry counts as absent.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::unistd::{SysconfVar, sysconf};

use super::process::ProcessInfo;

/// The limit of processes followed below one root: a fork bomb must not exhaust
/// our own memory. The next walk finds those left out.
const WALK_LIMIT: usize = 4096;

/// The maximum length of an environment under default kernel limits.
const ENVIRON_LIMIT: u64 = 2 << 20;

/// Every process below `root`, parents before their children.
pub(super) fn descendants(root: i32) -> Vec<i32> {
    let listed = Path::new(&format!("/proc/{root}/task/{root}/children")).exists();
    // Kernels without CONFIG_PROC_CHILDREN: one scan of all processes.
    let by_parent = if listed { HashMap::new() } else { by_parent() };
    let children = |pid: i32| match listed {
        true => children(pid),
        false => by_parent.get(&pid).cloned().unwrap_or_default(),
    };
    let mut found = children(root);
    let mut next = 0;
    while next < found.len() && found.len() < WALK_LIMIT {
        let below = children(found[next]);
        found.extend(below);
        next += 1;
    }
    found
}

/// Any thread may have forked, so each has its own list.
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = threads.flatten().filter_map(|thread| {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        Some(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>(),
        )
    });
    lists.flatten().collect()
}

fn by_parent() -> HashMap<i32, Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in all() {
        if let Some((_, parent)) = name_and_parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// Every process visible to this one, read lazily: a process that starts
/// meanwhile mostly comes later in the order.
pub(super) fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(super) fn info(pid: i32) -> Option<ProcessInfo> {
    let (command, parent) = name_and_parent(pid)?;
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let page = sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .unwrap_or(4096);
    Some(ProcessInfo {
        pid: pid.unsigned_abs(),
        ppid: parent.unsigned_abs(),
        command,
        rss: pages * page.unsigned_abs(),
        since: since(pid)?,
    })
}

/// The start time of a process, computed from the boot time: the time of its
/// directory in `/proc` is that of the first access.
fn since(pid: i32) -> Option<SystemTime> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: u64 = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let rate = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    let after_boot = Duration::from_millis(ticks * 1000 / rate.unsigned_abs().max(1));
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age = Duration::try_from_secs_f64(uptime)
        .ok()?
        .saturating_sub(after_boot);
    SystemTime::now().checked_sub(age)
}

pub(super) fn parent(pid: i32) -> Option<i32> {
    Some(name_and_parent(pid)?.1)
}

/// The name is in parentheses and may contain any character, also these.
fn name_and_parent(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some((name.into(), parent))
}

/// Whether the process is neither gone nor a zombie.
pub(super) fn is_alive(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

/// Whether the initial environment of a process has a variable whose text
/// starts with `beginning`. A zombie has no environment any more.
pub(super) fn has_environment(pid: i32, beginning: &str) -> bool {
    let mut environ = Vec::new();
    let read = fs::File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRON_LIMIT).read_to_end(&mut environ));
    let mut variables = environ.split(|byte| *byte == 0);
    read.is_ok() && variables.any(|variable| variable.starts_with(beginning.as_bytes()))
}
