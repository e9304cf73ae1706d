//! The memory limit of the process, as the system reports it.

use std::fs;
use std::path::{Path, PathBuf};

/// The divisor of the process's limit that gives the share of clients: a
/// response in flight briefly exists up to three times, and the catalogs and
/// records also need memory.
const PART: u64 = 4;

/// The budget where no limit is set.
const MOST: u64 = 512 << 20;

/// A smaller budget would refuse single responses.
const LEAST: u64 = 32 << 20;

/// The budget if no setting gives one: a quarter of the control group's limit
/// or of the machine's memory, between 32 and 512 MiB.
pub fn default_budget() -> usize {
    let limits = [control_group(), machine()];
    let limit = limits.into_iter().flatten().min();
    let budget = limit.map_or(MOST, |limit| limit / PART);
    usize::try_from(budget.clamp(LEAST, MOST)).unwrap_or(usize::MAX)
}

/// The total memory of the machine.
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    smallest(&groups, Path::new("/sys/fs/cgroup"))
}

/// The smallest limit of the process's group and of its ancestors, in version 2
/// (`0::/path`) and version 1 (`5:memory:/path`).
pub(super) fn smallest(groups: &str, root: &Path) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // Inside a container the path may be the host's, and the group's own
        // files are at the mount itself.
        let group = mount.join(path.trim_start_matches('/'));
        let around = group.ancestors().take_while(|at| at.starts_with(&mount));
        let files = around.map(|at: &Path| -> PathBuf { at.join(file) });
        limits.extend(files.filter_map(|file| read(&file)));
    }
    limits.into_iter().min()
}

/// `max`, and the huge number that version 1 uses instead, mean no limit.
fn read(file: &Path) -> Option<u64> {
    let limit: u64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (limit < 1 << 60).then_some(limit)
}
