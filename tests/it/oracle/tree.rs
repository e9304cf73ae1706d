//! Who runs below Portway.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::app::{App, eventually};

/// One process. Its number alone could come back as somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessIdentity {
    pub pid: i32,
    started: u64,
    pub name: String,
}

struct Stat {
    seen: ProcessIdentity,
    parent: i32,
    home: bool,
}

/// All that Portway started and that still runs: below it, or, wherever it
/// has gone, with the home directory that only this test has.
pub(super) fn below(app: &App) -> Vec<ProcessIdentity> {
    let own = app.pid();
    let all = processes(app.setup.path());
    let mut found: Vec<i32> = vec![own];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        let children = all.iter().filter(|(_, stat)| stat.parent == parent);
        found.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    all.into_iter()
        .filter(|(pid, stat)| *pid != own && (stat.home || found.contains(pid)))
        .map(|(_, stat)| stat.seen)
        .collect()
}

/// Waits until nothing of these is left, nor anything else with `home`.
pub(super) async fn all_gone(what: &str, seen: &[ProcessIdentity], home: &Path) {
    let left = || {
        let all = processes(home);
        let same =
            |one: &&ProcessIdentity| all.get(&one.pid).is_some_and(|stat| stat.seen == **one);
        let strays = all.values().filter(|stat| stat.home);
        let strays = strays.map(|stat| stat.seen.clone());
        seen.iter()
            .filter(same)
            .cloned()
            .chain(strays)
            .collect::<Vec<_>>()
    };
    eventually(&format!("{what}: {:?} are gone", left()), || {
        left().is_empty()
    })
    .await;
}

/// Those that run, by number; zombies do not.
fn processes(home: &Path) -> BTreeMap<i32, Stat> {
    let home = format!("HOME={}", home.display());
    let names = fs::read_dir("/proc").unwrap().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, stat(pid, &home)?)))
        .collect()
}

fn stat(pid: i32, home: &str) -> Option<Stat> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    if matches!(fields[0], "Z" | "X") {
        return None;
    }
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    Some(Stat {
        seen: ProcessIdentity {
            pid,
            started: fields[19].parse().ok()?,
            name: name.to_owned(),
        },
        parent: fields[1].parse().ok()?,
        home: environ
            .split(|byte| *byte == 0)
            .any(|one| one == home.as_bytes()),
    })
}
