//! The containment of process trees, and the methods that work on this machine.

use std::ffi::CString;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use tokio::sync::OnceCell;

use super::process::helper::Helper;
use super::process::{self, SpawnError};
use super::shim::message::{HelperReport, LaunchRequest};
use config::{Containment, Privileges};

/// One method of containing a tree, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum ContainmentStep {
    /// A PID namespace: the kernel kills every member when its init dies,
    /// whichever process was killed first.
    Namespace,
    /// `cgroup.kill`, written by a helper that must be alive for it.
    Cgroup,
    /// Orphans become children of the helper, which kills until none is left.
    Subreaper,
    /// The server's process group, and on Linux every process that still has
    /// the environment marker. The only method outside Linux.
    Group,
}

impl ContainmentStep {
    pub const ALL: [ContainmentStep; 4] = [
        ContainmentStep::Namespace,
        ContainmentStep::Cgroup,
        ContainmentStep::Subreaper,
        ContainmentStep::Group,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ContainmentStep::Namespace => "namespace",
            ContainmentStep::Cgroup => "cgroup",
            ContainmentStep::Subreaper => "subreaper",
            ContainmentStep::Group => "group",
        }
    }

    /// The gap of this step; `None` for the step that contains everything.
    pub fn gap(self) -> Option<&'static str> {
        match self {
            ContainmentStep::Namespace => None,
            ContainmentStep::Cgroup => Some(
                "if Portway and its helper are killed together, processes stay until the next start",
            ),
            ContainmentStep::Subreaper => Some(
                "a process that keeps forking can escape, and if Portway and its helper are killed \
                 together, processes stay until the next start",
            ),
            ContainmentStep::Group => Some(
                "a process that leaves its group is found only by a mark in its environment, and if \
                 Portway and its helper are killed together, processes stay until the next start",
            ),
        }
    }

    /// The step that a definition selects; `auto` selects none.
    pub fn named(wish: Containment) -> Option<ContainmentStep> {
        match wish {
            Containment::Auto => None,
            Containment::Namespace => Some(ContainmentStep::Namespace),
            Containment::Cgroup => Some(ContainmentStep::Cgroup),
            Containment::Subreaper => Some(ContainmentStep::Subreaper),
            Containment::Group => Some(ContainmentStep::Group),
        }
    }
}

impl fmt::Display for ContainmentStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The actions that this containment does not prevent, a sentence each.
pub fn gaps(step: ContainmentStep, privileges: Privileges) -> Vec<&'static str> {
    let keeps = privileges == Privileges::Keep;
    let reads = step != ContainmentStep::Namespace && (keeps || !has_capabilities());
    let gaps = [
        step.gap(),
        reads.then_some("it can read Portway's environment and memory, and the keys in them"),
        keeps.then_some("it keeps Portway's privileges (\"privileges\": \"keep\")"),
    ];
    gaps.into_iter().flatten().collect()
}

/// Whether Portway has a capability. If so, the kernel stops a process of the
/// same user without capabilities from inspecting Portway.
fn has_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.is_some_and(|set| set.trim().bytes().any(|digit| digit != b'0'))
}

/// The steps that work here and, for the others, the reasons why not.
#[derive(Debug)]
pub struct Ladder {
    works: Vec<ContainmentStep>,
    refused: Vec<(ContainmentStep, String)>,
}

impl Ladder {
    /// Strongest first; never empty.
    pub fn works(&self) -> &[ContainmentStep] {
        &self.works
    }

    pub fn refused(&self) -> &[(ContainmentStep, String)] {
        &self.refused
    }

    /// The steps to try for a definition, in order. `auto` may fall back: a step
    /// that worked at start can fail later, at a limit on namespaces for instance.
    pub(super) fn choose(&self, wish: Containment) -> Result<&[ContainmentStep], SpawnError> {
        let Some(step) = ContainmentStep::named(wish) else {
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

    fn why_not(&self, step: ContainmentStep) -> String {
        let found = self.refused.iter().find(|(refused, _)| *refused == step);
        found.map_or_else(String::new, |(_, reason)| reason.clone())
    }
}

static LADDER: OnceCell<Ladder> = OnceCell::const_new();

/// Probed once per process; the helper tries each step for real: kernels,
/// containers and security modules refuse in too many ways to guess.
pub async fn ladder(shim: &Path) -> Result<&'static Ladder, SpawnError> {
    LADDER.get_or_try_init(|| probe(shim)).await
}

/// Whether [`ladder`] has its result.
pub(super) fn is_known() -> bool {
    LADDER.initialized()
}

async fn probe(shim: &Path) -> Result<Ladder, SpawnError> {
    let mut ladder = Ladder {
        works: Vec::new(),
        refused: Vec::new(),
    };
    let (namespace, cgroup, subreaper) = tokio::join!(
        probe_step(shim, ContainmentStep::Namespace),
        probe_step(shim, ContainmentStep::Cgroup),
        probe_step(shim, ContainmentStep::Subreaper),
    );
    let found = [
        (ContainmentStep::Namespace, namespace?),
        (ContainmentStep::Cgroup, cgroup?),
        (ContainmentStep::Subreaper, subreaper?),
        (ContainmentStep::Group, None),
    ];
    for (step, refusal) in found {
        match refusal {
            None => ladder.works.push(step),
            Some(reason) => ladder.refused.push((step, reason)),
        }
    }
    Ok(ladder)
}

/// `None` if the step works, else the reason. An error is a temporary problem
/// and says nothing about the step.
async fn probe_step(shim: &Path, step: ContainmentStep) -> Result<Option<String>, SpawnError> {
    if cfg!(not(target_os = "linux")) {
        return Ok(Some("is made of Linux features".into()));
    }
    let marker = CString::new(process::marker("probe")).unwrap_or_default();
    let request = LaunchRequest::probe(step, marker);
    match Helper::start(shim, "probe", &request, &[]).await {
        Ok((_, HelperReport::Failed(failure))) => {
            match SpawnError::reported(failure, step, Path::new(""), Path::new("")) {
                SpawnError::Refused { reason, .. } => Ok(Some(reason)),
                other => Err(other),
            }
        }
        Ok(_) => Ok(None),
        // A system call filter may kill the process instead of refusing.
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
            works: vec![ContainmentStep::Subreaper, ContainmentStep::Group],
            refused: vec![
                (
                    ContainmentStep::Namespace,
                    "making the namespaces: Operation not permitted".into(),
                ),
                (
                    ContainmentStep::Cgroup,
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
            [ContainmentStep::Subreaper, ContainmentStep::Group]
        );
        assert_eq!(
            ladder.choose(Containment::Group).unwrap(),
            [ContainmentStep::Group]
        );
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
