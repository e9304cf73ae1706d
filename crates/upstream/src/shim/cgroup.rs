//! A separate cgroup for one tree, killed by one write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A killed process leaves its cgroup shortly after it is reaped.
const REMOVE_LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

const PREFIX: &str = "portway-";

pub(super) struct Cgroup {
    path: PathBuf,
    procs: File,
}

impl Cgroup {
    /// Below Portway's own cgroup, so that its limits stay in force.
    pub(super) fn make(marker: &str) -> io::Result<Cgroup> {
        let path = own()?.join(format!("{PREFIX}{marker}"));
        fs::create_dir(&path)?;
        match open(&path) {
            Ok(procs) => Ok(Cgroup { path, procs }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Moves the calling process into the cgroup.
    pub(super) fn join(&self) -> io::Result<()> {
        (&mut &self.procs).write_all(b"0")
    }

    pub(super) fn kill(&self) {
        kill(&self.path);
    }

    pub(super) fn remove(&self) {
        remove(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Linux before 5.14 has cgroups without `cgroup.kill`.
    OpenOptions::new()
        .write(true)
        .open(path.join("cgroup.kill"))?;
    OpenOptions::new()
        .write(true)
        .open(path.join("cgroup.procs"))
}

fn kill(path: &Path) {
    let _ = OpenOptions::new()
        .write(true)
        .open(path.join("cgroup.kill"))
        .and_then(|mut file| file.write_all(b"1"));
}

/// Removes the cgroup and those that the server has made in it.
fn remove(path: &Path) {
    let deadline = Instant::now() + REMOVE_LIMIT;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(_) if Instant::now() > deadline => return,
            Err(_) => {}
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            remove(&entry.path());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills and removes the cgroups whose marker starts with `beginning`.
pub(crate) fn clear(beginning: &str) {
    let Ok(own) = own() else {
        return;
    };
    let beginning = format!("{PREFIX}{beginning}");
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&beginning) {
            kill(&entry.path());
            remove(&entry.path());
        }
    }
}

/// The directory of this process's cgroup.
fn own() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let cgroups = fs::read_to_string("/proc/self/cgroup")?;
    locate(&mounts, &cgroups).ok_or_else(|| ErrorKind::NotFound.into())
}

/// The mount point of version 2 (on hybrid systems not at the usual place),
/// joined with our own path below it.
fn locate(mounts: &str, cgroups: &str) -> Option<PathBuf> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut fields = front.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        (back.split(' ').next() == Some("cgroup2")).then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_wherever_version_2_is_mounted() {
        let usual = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
        let hybrid = "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      40 25 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        let bound = "30 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let cases = [
            (
                usual,
                "0::/user.slice/a.service\n",
                Some("/sys/fs/cgroup/user.slice/a.service"),
            ),
            (usual, "0::/\n", Some("/sys/fs/cgroup")),
            (
                hybrid,
                "4:memory:/x\n0::/\n",
                Some("/sys/fs/cgroup/unified"),
            ),
            (bound, "0::/docker/ab/sub\n", Some("/sys/fs/cgroup/sub")),
            (bound, "0::/elsewhere\n", None),
            (hybrid, "4:memory:/x\n", None),
            (
                "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
                "0::/\n",
                None,
            ),
        ];
        for (mounts, cgroups, expected) in cases {
            assert_eq!(
                locate(mounts, cgroups).as_deref(),
                expected.map(Path::new),
                "{mounts}"
            );
        }
    }
}
