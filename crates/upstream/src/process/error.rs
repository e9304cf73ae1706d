//! Errors from starting a server's process.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use thiserror::Error;

use crate::containment::ContainmentStep;
use crate::shim::message::{LaunchFailure, LaunchStage};

#[derive(Debug, Error)]
pub enum SpawnError {
    #[error("no program {program:?} in {searched}{}", hint(program))]
    NotFound { program: String, searched: String },
    #[error("{} cannot be run: {reason}", path.display())]
    NotExecutable { path: PathBuf, reason: String },
    #[error("the working directory {} cannot be used: {reason}", cwd.display())]
    BadCwd { cwd: PathBuf, reason: String },
    /// A NUL byte, an environment name with `=` in it, a bad instance.
    #[error("{field} holds a character that a process cannot be given")]
    Invalid { field: &'static str },
    #[error(
        "containment \"{step}\" does not work here ({reason}); what works: {}",
        list(works)
    )]
    Refused {
        step: ContainmentStep,
        reason: String,
        works: Vec<ContainmentStep>,
    },
    #[error(
        "{field} names {}, which lies in {}, a directory of Portway's own that servers cannot \
         see; move it elsewhere, or give Portway another directory (--data-dir)",
        path.display(),
        directory.display()
    )]
    Hidden {
        field: String,
        path: PathBuf,
        directory: PathBuf,
    },
    #[error("{doing}: {source}")]
    Io {
        doing: &'static str,
        source: io::Error,
    },
}

impl SpawnError {
    /// Whether the same definition would fail the same way again. `Io` is a
    /// temporary lack of the machine: descriptors, memory, processes.
    pub fn permanent(&self) -> bool {
        !matches!(self, SpawnError::Io { .. })
    }

    pub(super) fn io(doing: &'static str) -> impl Fn(io::Error) -> SpawnError {
        move |source| SpawnError::Io { doing, source }
    }

    /// The failure that the helper reported, in terms of the command.
    pub(crate) fn reported(
        failure: LaunchFailure,
        step: ContainmentStep,
        path: &Path,
        cwd: &Path,
    ) -> SpawnError {
        let LaunchFailure { stage, errno } = failure;
        let io = |doing| SpawnError::Io {
            doing,
            source: errno.into(),
        };
        match stage {
            LaunchStage::Chdir => SpawnError::BadCwd {
                cwd: cwd.into(),
                reason: errno.desc().into(),
            },
            LaunchStage::Exec => match unrunnable(errno) {
                Some(reason) => SpawnError::NotExecutable {
                    path: path.into(),
                    reason: reason.into(),
                },
                None => io("running the program"),
            },
            LaunchStage::Request => io("telling the helper what to run"),
            LaunchStage::Stdio => io("handing over stdin, stdout and stderr"),
            LaunchStage::Fork => io("forking"),
            LaunchStage::Privileges => io("dropping privileges"),
            LaunchStage::Unshare
            | LaunchStage::IdMap
            | LaunchStage::Proc
            | LaunchStage::Cgroup
            | LaunchStage::Subreaper => SpawnError::Refused {
                step,
                reason: format!("{stage}: {}", errno.desc()),
                works: Vec::new(),
            },
        }
    }
}

/// A hint for a whole command line in the place of the program.
fn hint(program: &str) -> &'static str {
    match program.contains(' ') {
        true => "; arguments do not stand in \"command\" but in \"args\"",
        false => "",
    }
}

/// The errors of `execve` that are caused by the file itself.
fn unrunnable(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        // The file existed a moment ago, so its interpreter or loader is missing.
        Errno::ENOENT => "the interpreter named in its first line, or its loader, does not exist",
        Errno::ENOEXEC => "it is not a program for this machine",
        Errno::E2BIG => "its arguments and environment are too long",
        Errno::EACCES | Errno::EPERM | Errno::ENOTDIR | Errno::EISDIR | Errno::ELOOP => {
            errno.desc()
        }
        _ => return None,
    })
}

fn list(steps: &[ContainmentStep]) -> String {
    steps
        .iter()
        .map(|step| step.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
