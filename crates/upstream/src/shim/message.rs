//! The messages between Portway and its helper on the control socket.
//!
//! Portway sends one [`LaunchRequest`] and later single-byte orders; the helper
//! answers with [`HelperReport`]s of a fixed size. Both are the same binary, so
//! there is no version to negotiate.

use std::ffi::{CStr, CString};
use std::fmt;

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::containment::ContainmentStep;

/// Order: SIGTERM to the whole tree.
pub(crate) const TERMINATE: u8 = b'T';
/// Order: SIGKILL to the whole tree.
pub const KILL: u8 = b'K';

/// More than the kernel's limit for `execve`, so nothing valid is refused.
pub(crate) const REQUEST_LIMIT: usize = 16 << 20;

pub(crate) const REPORT_SIZE: usize = 10;

/// The command, and its containment. Without a path it is a probe: set the
/// containment up, report the result, remove it.
pub struct LaunchRequest {
    pub step: ContainmentStep,
    /// Leave the server the privileges that Portway has.
    pub keep_privileges: bool,
    /// Directories that are empty for the server.
    pub hidden: Vec<CString>,
    /// The value of the environment marker, unique to this process tree.
    pub marker: CString,
    pub cwd: CString,
    pub path: CString,
    pub args: Vec<CString>,
    pub env: Vec<CString>,
}

impl LaunchRequest {
    pub fn probe(step: ContainmentStep, marker: CString) -> LaunchRequest {
        LaunchRequest {
            step,
            keep_privileges: false,
            hidden: Vec::new(),
            marker,
            cwd: CString::default(),
            path: CString::default(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// The length of the body, and the body.
    pub fn encode(&self) -> ([u8; 4], Vec<u8>) {
        let mut body = vec![self.step as u8, u8::from(self.keep_privileges)];
        body.extend((self.hidden.len() as u32).to_le_bytes());
        body.extend((self.args.len() as u32).to_le_bytes());
        let lone = [&self.marker, &self.cwd, &self.path];
        let listed = self.hidden.iter().chain(&self.args).chain(&self.env);
        for text in lone.into_iter().chain(listed) {
            body.extend(text.as_bytes_with_nul());
        }
        ((body.len() as u32).to_le_bytes(), body)
    }

    pub fn decode(body: &[u8]) -> Option<LaunchRequest> {
        let (&[step, keep], rest) = body.split_first_chunk::<2>()?;
        let (hidden, rest) = rest.split_first_chunk::<4>()?;
        let (argc, mut rest) = rest.split_first_chunk::<4>()?;
        let mut texts = Vec::new();
        while !rest.is_empty() {
            let text = CStr::from_bytes_until_nul(rest).ok()?;
            rest = &rest[text.to_bytes_with_nul().len()..];
            texts.push(text.to_owned());
        }
        let mut texts = texts.into_iter();
        Some(LaunchRequest {
            step: ContainmentStep::ALL
                .into_iter()
                .find(|known| *known as u8 == step)?,
            keep_privileges: keep != 0,
            marker: texts.next()?,
            cwd: texts.next()?,
            path: texts.next()?,
            hidden: texts
                .by_ref()
                .take(u32::from_le_bytes(*hidden) as usize)
                .collect(),
            args: texts
                .by_ref()
                .take(u32::from_le_bytes(*argc) as usize)
                .collect(),
            env: texts.collect(),
        })
    }

    pub(crate) fn is_probe(&self) -> bool {
        self.path.is_empty()
    }
}

/// The stage that the helper reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LaunchStage {
    Request,
    Unshare,
    IdMap,
    Proc,
    Cgroup,
    Subreaper,
    Fork,
    Stdio,
    Privileges,
    Chdir,
    Exec,
}

impl LaunchStage {
    const ALL: [LaunchStage; 11] = [
        LaunchStage::Request,
        LaunchStage::Unshare,
        LaunchStage::IdMap,
        LaunchStage::Proc,
        LaunchStage::Cgroup,
        LaunchStage::Subreaper,
        LaunchStage::Fork,
        LaunchStage::Stdio,
        LaunchStage::Privileges,
        LaunchStage::Chdir,
        LaunchStage::Exec,
    ];
}

impl fmt::Display for LaunchStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LaunchStage::Request => "reading what to run",
            LaunchStage::Unshare => "making the namespaces",
            LaunchStage::IdMap => "mapping the user into its namespace",
            LaunchStage::Proc => "mounting /proc in the namespace",
            LaunchStage::Cgroup => "making a cgroup with cgroup.kill",
            LaunchStage::Subreaper => "becoming a subreaper",
            LaunchStage::Fork => "forking",
            LaunchStage::Stdio => "handing over stdin, stdout and stderr",
            LaunchStage::Privileges => "dropping privileges",
            LaunchStage::Chdir => "changing to the working directory",
            LaunchStage::Exec => "running the program",
        })
    }
}

/// The reason why the server did not start, as the helper reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchFailure {
    pub stage: LaunchStage,
    pub errno: Errno,
}

impl LaunchFailure {
    pub fn at(stage: LaunchStage) -> impl Fn(Errno) -> LaunchFailure {
        move |errno| LaunchFailure { stage, errno }
    }

    /// For `std::io` calls, whose errors come from the kernel here.
    pub fn io(stage: LaunchStage) -> impl Fn(std::io::Error) -> LaunchFailure {
        move |error| LaunchFailure {
            stage,
            errno: Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32)),
        }
    }
}

/// How a server's own process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The helper was killed, and then the kernel killed the server.
    HelperKilled,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::HelperKilled => f.write_str(
                "signal 9 (SIGKILL), because the helper process that holds it was killed",
            ),
            Exit::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "signal {number} ({signal})"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperReport {
    /// The program runs. `init` is the namespace's first process, else 0.
    Started {
        server: i32,
        init: i32,
        /// Whether the directories to hide are hidden.
        hides: bool,
    },
    Failed(LaunchFailure),
    Exited(Exit),
}

impl HelperReport {
    pub fn encode(self) -> [u8; REPORT_SIZE] {
        let (kind, first, second, flag) = match self {
            HelperReport::Started {
                server,
                init,
                hides,
            } => (1, server, init, hides),
            HelperReport::Failed(LaunchFailure { stage, errno }) => {
                (2, stage as i32, errno as i32, false)
            }
            HelperReport::Exited(Exit::Code(code)) => (3, code, 0, false),
            HelperReport::Exited(Exit::Signal(signal)) => (4, signal, 0, false),
            HelperReport::Exited(Exit::HelperKilled) => (5, 0, 0, false),
        };
        let mut bytes = [kind; REPORT_SIZE];
        bytes[1..5].copy_from_slice(&first.to_le_bytes());
        bytes[5..9].copy_from_slice(&second.to_le_bytes());
        bytes[9] = u8::from(flag);
        bytes
    }

    pub fn decode(bytes: &[u8; REPORT_SIZE]) -> Option<HelperReport> {
        let (kind, rest) = bytes.split_first()?;
        let (first, rest) = rest.split_first_chunk::<4>()?;
        let first = i32::from_le_bytes(*first);
        let (second, rest) = rest.split_first_chunk::<4>()?;
        let second = i32::from_le_bytes(*second);
        Some(match kind {
            1 => HelperReport::Started {
                server: first,
                init: second,
                hides: rest.first() != Some(&0),
            },
            2 => HelperReport::Failed(LaunchFailure {
                stage: LaunchStage::ALL
                    .into_iter()
                    .find(|stage| *stage as i32 == first)?,
                errno: Errno::from_raw(second),
            }),
            3 => HelperReport::Exited(Exit::Code(first)),
            4 => HelperReport::Exited(Exit::Signal(first)),
            5 => HelperReport::Exited(Exit::HelperKilled),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_socket() {
        let text = |text: &str| CString::new(text).unwrap();
        let request = LaunchRequest {
            step: ContainmentStep::Cgroup,
            keep_privileges: true,
            hidden: vec![text("/data"), text("/state")],
            marker: text("mark.1"),
            cwd: text("/tmp"),
            path: text("/bin/echo"),
            args: vec![text("echo"), text(""), text("two words")],
            env: vec![text("A=1"), text("EMPTY=")],
        };
        let (length, body) = request.encode();
        assert_eq!(u32::from_le_bytes(length) as usize, body.len());
        let back = LaunchRequest::decode(&body).unwrap();
        assert_eq!(back.step, request.step);
        assert!(back.keep_privileges);
        assert_eq!(back.hidden, request.hidden);
        assert_eq!(back.marker, request.marker);
        assert_eq!(back.cwd, request.cwd);
        assert_eq!(back.path, request.path);
        assert_eq!(back.args, request.args);
        assert_eq!(back.env, request.env);
        assert!(!back.is_probe());
        assert!(LaunchRequest::decode(&body[..body.len() - 1]).is_none());
        assert!(LaunchRequest::decode(b"").is_none());
    }

    #[test]
    fn a_report_survives_the_socket() {
        let failures = LaunchStage::ALL.map(|stage| {
            HelperReport::Failed(LaunchFailure {
                stage,
                errno: Errno::EPERM,
            })
        });
        let others = [
            HelperReport::Started {
                server: 4711,
                init: 1,
                hides: true,
            },
            HelperReport::Started {
                server: 4711,
                init: 0,
                hides: false,
            },
            HelperReport::Exited(Exit::HelperKilled),
            HelperReport::Exited(Exit::Code(-1)),
            HelperReport::Exited(Exit::Signal(9)),
        ];
        for report in failures.into_iter().chain(others) {
            assert_eq!(HelperReport::decode(&report.encode()), Some(report));
        }
        assert_eq!(HelperReport::decode(&[9; REPORT_SIZE]), None);
    }

    #[test]
    fn an_exit_reads_as_a_person_would_say_it() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal(40).to_string(), "signal 40");
    }
}
