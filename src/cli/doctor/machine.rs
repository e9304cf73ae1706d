//! Checks the machine: containment of process trees, limits, the clock.

use std::time::{Duration, SystemTime};

use config::Privileges;
use config::settings::Settings;
use lab::Finding;
use upstream::containment::{self, ContainmentStep};
use upstream::process;

/// The date of the protocol revision: a correct clock shows no earlier one.
const NOT_BEFORE: Duration = Duration::from_secs(1_785_196_800);

/// Descriptors of the program itself, and of one server.
const OWN_FILES: u64 = 64;
const FILES_PER_SERVER: u64 = 8;
/// The least number of clients that the limits should leave room for.
const CLIENTS: u64 = 256;
const PROCESSES_PER_SERVER: u64 = 8;

pub(super) async fn examine(settings: &Settings, servers: usize) -> Vec<Finding> {
    let mut findings = containment().await;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    findings.extend(open_files(&limits, servers as u64));
    findings.extend(processes(&limits, servers as u64));
    findings.push(clock(settings));
    findings
}

async fn containment() -> Vec<Finding> {
    let id = "containment";
    let todo = "servers cannot be started safely: look at free memory, processes and files";
    let ladder = match process::own_binary() {
        Ok(shim) => containment::ladder(&shim)
            .await
            .map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let ladder = match ladder {
        Ok(ladder) => ladder,
        Err(error) => return vec![Finding::bad(id, error, todo)],
    };
    let works: Vec<&str> = ladder.works().iter().map(|step| step.as_str()).collect();
    let strongest = ladder.works().first();
    let strongest = strongest.copied().unwrap_or(ContainmentStep::Group);
    let found = format!("{} (works here: {})", meaning(strongest), works.join(", "));
    let mut findings = vec![match strongest {
        ContainmentStep::Group => Finding::warn(
            id,
            found,
            "a server's process that leaves its group is found only by a mark in its environment",
        ),
        _ => Finding::ok(id, found),
    }];
    let gaps = containment::gaps(strongest, Privileges::default());
    findings.extend(gaps.iter().map(|gap| Finding::note(id, *gap)));
    if strongest != ContainmentStep::Namespace {
        let found = "servers can read Portway's data directory, and the keys in it";
        findings.push(Finding::note(id, found).with(remedy(ContainmentStep::Namespace)));
    }
    for (step, reason) in ladder.refused() {
        let found = format!("{step} does not work here: {reason}");
        findings.push(Finding::note(id, found).with(remedy(*step)));
    }
    findings
}

fn meaning(step: ContainmentStep) -> &'static str {
    match step {
        ContainmentStep::Namespace => "the kernel ends all of a server, whoever is killed first",
        ContainmentStep::Cgroup => "a helper ends all of a server by its cgroup",
        ContainmentStep::Subreaper => {
            "a helper ends all of a server, daemons too, as long as it lives"
        }
        ContainmentStep::Group => "a server's process group is ended",
    }
}

fn remedy(step: ContainmentStep) -> &'static str {
    match step {
        ContainmentStep::Namespace => {
            "user namespaces are off, or closed by a container: \
             sysctl kernel.unprivileged_userns_clone, AppArmor, or the container's security options"
        }
        ContainmentStep::Cgroup => {
            "it needs a cgroup of its own to write to (systemd: Delegate=yes)"
        }
        ContainmentStep::Subreaper | ContainmentStep::Group => "it needs Linux",
    }
}

/// One row of `/proc/self/limits`: the soft limit. `None` for no limit.
fn limit(limits: &str, name: &str) -> Option<Option<u64>> {
    let row = limits.lines().find_map(|line| line.strip_prefix(name))?;
    Some(row.split_ascii_whitespace().next()?.parse().ok())
}

fn open_files(limits: &str, servers: u64) -> Option<Finding> {
    let id = "open files";
    let Some(limit) = limit(limits, "Max open files")? else {
        return Some(Finding::ok(id, "no limit"));
    };
    let taken = OWN_FILES + FILES_PER_SERVER * servers;
    let room = limit.saturating_sub(taken);
    let found = format!("{limit}: room for about {room} client connections beside the servers");
    if room >= CLIENTS {
        return Some(Finding::ok(id, found));
    }
    let enough = taken + 4096;
    let todo = format!("raise it: ulimit -n {enough} (systemd: LimitNOFILE=)");
    Some(Finding::warn(id, found, todo))
}

fn processes(limits: &str, servers: u64) -> Option<Finding> {
    let id = "processes";
    let Some(limit) = limit(limits, "Max processes")? else {
        return Some(Finding::ok(id, "no limit"));
    };
    let wanted = PROCESSES_PER_SERVER * servers + 64;
    let found = format!("{limit} for this user");
    if limit >= wanted {
        return Some(Finding::ok(id, found));
    }
    let found = format!("{found}, and the servers may want {wanted}");
    let todo = format!("raise it: ulimit -u {} (systemd: TasksMax=)", wanted * 4);
    Some(Finding::warn(id, found, todo))
}

fn clock(settings: &Settings) -> Finding {
    let todo = "set the clock (timedatectl set-ntp true)";
    let now = SystemTime::now();
    let since = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    if since < NOT_BEFORE {
        let found = "the clock shows a date before this program was made";
        return Finding::bad("clock", found, todo);
    }
    let files = std::fs::read_dir(&settings.data_dir).into_iter().flatten();
    let changed = files
        .flatten()
        .filter_map(|entry| entry.metadata().ok()?.modified().ok());
    let newest = changed.max();
    let ahead = newest.and_then(|newest| newest.duration_since(now).ok());
    match ahead {
        Some(ahead) if ahead > Duration::from_secs(60) => {
            let ahead = ahead.as_secs();
            let found = format!("files in the data directory are {ahead} s in the future");
            Finding::warn("clock", found, todo)
        }
        _ => Finding::ok("clock", "plausible"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Severity;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                          Max processes             unlimited            unlimited            processes\n\
                          Max open files            256                  4096                 files\n";

    #[test]
    fn k7_doctor_reads_limits_and_says_what_they_mean() {
        let files = open_files(LIMITS, 4).unwrap();
        assert_eq!(files.mark, Severity::Warn);
        assert!(
            files.found.starts_with("256: room for about 160"),
            "{files:?}"
        );
        assert!(files.todo.unwrap().contains("ulimit -n 4192"));
        assert_eq!(processes(LIMITS, 4).unwrap().mark, Severity::Ok);
        let few = LIMITS.replace(
            "unlimited            unlimited ",
            "70                   70 ",
        );
        assert_eq!(processes(&few, 4).unwrap().mark, Severity::Warn);
        assert!(open_files("", 1).is_none());
    }
}
