//! How a process tree is held together, and which ways work on this machine.

use std::ffi::CString;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use tokio::sync::OnceCell;

use super::process::helper::Helper;
use super::process::{self, SpawnError};
use super::shim::message::{Report, Request};
use config::{Containment, Privileges};

/// One way of holding a tree, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Step {
    /// A PID namespace: the kernel kills every member when its init dies,
    /// whoever else was killed first.
    Namespace,
    /// `cgroup.kill`, by a helper that must be alive to write it.
    Cgroup,
    /// Orphans come back to the helper, which kills until none is left.
    Subreaper,
    /// The server's process group, and on Linux whatever still carries the
    /// environment marker. All there is outside Linux.
    Group,
}

impl Step {
    pub const ALL: [Step; 4] = [Step::Namespace, Step::Cgroup, Step::Subreaper, Step::Group];

    pub fn as_str(self) -> &'static str {
        match self {
            Step::Namespace => "namespace",
            Step::Cgroup => "cgroup",
            Step::Subreaper => "subreaper",
            Step::Group => "group",
        }
    }

    /// What it does not hold; `None` for the one that holds everything.
    pub fn gap(self) -> Option<&'static str> {
        match self {
            Step::Namespace => None,
            Step::Cgroup => Some(
                "if Portway and its helper are killed together, processes stay until the next start",
            ),
            Step::Subreaper => Some(
                "a process that keeps forking can escape, and if Portway and its helper are killed \
                 together, processes stay until the next start",
            ),
            Step::Group => Some(
                "a process that leaves its group is found only by a mark in its environment, and if \
                 Portway and its helper are killed together, processes stay until the next start",
            ),
        }
    }

    /// The one that a definition asks for; `auto` names none.
    pub fn named(wish: Containment) -> Option<Step> {
        match wish {
            Containment::Auto => None,
            Containment::Namespace => Some(Step::Namespace),
            Containment::Cgroup => Some(Step::Cgroup),
            Containment::Subreaper => Some(Step::Subreaper),
            Containment::Group => Some(Step::Group),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a server held like this can still do, a sentence each.
pub fn gaps(step: Step, privileges: Privileges) -> Vec<&'static str> {
    let keeps = privileges == Privileges::Keep;
    let reads = step != Step::Namespace && (keeps || !has_capabilities());
    let gaps = [
        step.gap(),
        reads.then_some("it can read Portway's environment and memory, and the keys in them"),
        keeps.then_some("it keeps Portway's privileges (\"privileges\": \"keep\")"),
    ];
    gaps.into_iter().flatten().collect()
}

/// Whether we have a capability. If so, the kernel does not let a process of
/// the same user that has none look into us.
fn has_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.is_some_and(|set| set.trim().bytes().any(|digit| digit != b'0'))
}

/// What works here and, for the rest, why not.
#[derive(Debug)]
pub struct Ladder {
    works: Vec<Step>,
    refused: Vec<(Step, String)>,
}

impl Ladder {
    /// Strongest first; never empty.
    pub fn works(&self) -> &[Step] {
        &self.works
    }

    pub fn refused(&self) -> &[(Step, String)] {
        &self.refused
    }

    /// The steps to try for a wish, in order. `auto` may go down: what worked
    /// at start can fail later, at a limit on namespaces for instance.
    pub(super) fn choose(&self, wish: Containment) -> Result<&[Step], SpawnError> {
        let Some(step) = Step::named(wish) else {
            return Ok(&self.works);
        };
        match self.works.iter().position(|works| *works == step) {
            Some(index) => Ok(&self.works[index..=index]),
            None => Err(SpawnError::Refused {
                step,
                reason: self.why_not(step),
                works: self.works.clone(),
            }),
        }
    }

    fn why_not(&self, step: Step) -> String {
        let found = self.refused.iter().find(|(refused, _)| *refused == step);
        found.map_or_else(String::new, |(_, reason)| reason.clone())
    }
}

static LADDER: OnceCell<Ladder> = OnceCell::const_new();

/// Found once per process, by having the helper try each step for real:
/// kernels, containers and security modules refuse in too many ways to guess.
pub async fn ladder(shim: &Path) -> Result<&'static Ladder, SpawnError> {
    LADDER.get_or_try_init(|| probe(shim)).await
}

async fn probe(shim: &Path) -> Result<Ladder, SpawnError> {
    let mut ladder = Ladder {
        works: Vec::new(),
        refused: Vec::new(),
    };
    let (namespace, cgroup, subreaper) = tokio::join!(
        probe_step(shim, Step::Namespace),
        probe_step(shim, Step::Cgroup),
        probe_step(shim, Step::Subreaper),
    );
    let found = [
        (Step::Namespace, namespace?),
        (Step::Cgroup, cgroup?),
        (Step::Subreaper, subreaper?),
        (Step::Group, None),
    ];
    for (step, refusal) in found {
        match refusal {
            None => ladder.works.push(step),
            Some(reason) => ladder.refused.push((step, reason)),
        }
    }
    Ok(ladder)
}

/// `None` if it works, else why it does not. An error is the trouble of the
/// moment and says nothing about the step.
async fn probe_step(shim: &Path, step: Step) -> Result<Option<String>, SpawnError> {
    if cfg!(not(target_os = "linux")) {
        return Ok(Some("is made of Linux features".into()));
    }
    let marker = CString::new(process::marker("probe")).unwrap_or_default();
    let request = Request::probe(step, marker);
    match Helper::start(shim, "probe", &request, &[]).await {
        Ok((_, Report::Failed(failure))) => {
            match SpawnError::reported(failure, step, Path::new(""), Path::new("")) {
                SpawnError::Refused { reason, .. } => Ok(Some(reason)),
                other => Err(other),
            }
        }
        Ok(_) => Ok(None),
        // A system call filter may kill instead of refusing.
        Err(SpawnError::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => {
            Ok(Some("the helper died trying".into()))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        Ladder {
            works: vec![Step::Subreaper, Step::Group],
            refused: vec![
                (
                    Step::Namespace,
                    "making the namespaces: Operation not permitted".into(),
                ),
                (
                    Step::Cgroup,
                    "making a cgroup: Read-only file system".into(),
                ),
            ],
        }
    }

    #[test]
    fn c8_auto_takes_what_works_strongest_first() {
        let ladder = ladder();
        assert_eq!(
            ladder.choose(Containment::Auto).unwrap(),
            [Step::Subreaper, Step::Group]
        );
        assert_eq!(ladder.choose(Containment::Group).unwrap(), [Step::Group]);
    }

    #[test]
    fn c8_a_step_that_does_not_work_here_says_which_do() {
        let error = ladder().choose(Containment::Cgroup).unwrap_err();
        assert!(error.permanent());
        assert_eq!(
            error.to_string(),
            "containment \"cgroup\" does not work here (making a cgroup: Read-only file system); \
             what works: subreaper, group"
        );
    }
}
