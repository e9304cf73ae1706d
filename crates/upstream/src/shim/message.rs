//! What Portway and its helper say to each other over the control socket.
//!
//! Portway sends one [`Request`] and later single-byte orders; the helper
//! answers with [`Report`]s of a fixed size. Both are the same binary, so
//! there is no version to negotiate.

use std::ffi::{CStr, CString};
use std::fmt;

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::containment::Step;

/// Order: SIGTERM to the whole tree.
pub(crate) const TERMINATE: u8 = b'T';
/// Order: SIGKILL to the whole tree.
pub const KILL: u8 = b'K';

/// More than the kernel lets `execve` take, so nothing valid is refused.
pub(crate) const REQUEST_LIMIT: usize = 16 << 20;

pub(crate) const REPORT_SIZE: usize = 10;

/// What to run, and how to hold it. Without a path it is a probe: set the
/// containment up, say how it went, take it down.
pub struct Request {
    pub step: Step,
    /// Leave the server the privileges that Portway has.
    pub keep_privileges: bool,
    /// Directories that the server shall find empty.
    pub hidden: Vec<CString>,
    /// The value of the environment marker, unique to this process tree.
    pub marker: CString,
    pub cwd: CString,
    pub path: CString,
    pub args: Vec<CString>,
    pub env: Vec<CString>,
}

impl Request {
    pub fn probe(step: Step, marker: CString) -> Request {
        Request {
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

    /// A length and the body it counts.
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

    pub fn decode(body: &[u8]) -> Option<Request> {
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
        Some(Request {
            step: Step::ALL.into_iter().find(|known| *known as u8 == step)?,
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

/// How far the helper got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
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

impl Stage {
    const ALL: [Stage; 11] = [
        Stage::Request,
        Stage::Unshare,
        Stage::IdMap,
        Stage::Proc,
        Stage::Cgroup,
        Stage::Subreaper,
        Stage::Fork,
        Stage::Stdio,
        Stage::Privileges,
        Stage::Chdir,
        Stage::Exec,
    ];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Request => "reading what to run",
            Stage::Unshare => "making the namespaces",
            Stage::IdMap => "mapping the user into its namespace",
            Stage::Proc => "mounting /proc in the namespace",
            Stage::Cgroup => "making a cgroup with cgroup.kill",
            Stage::Subreaper => "becoming a subreaper",
            Stage::Fork => "forking",
            Stage::Stdio => "handing over stdin, stdout and stderr",
            Stage::Privileges => "dropping privileges",
            Stage::Chdir => "changing to the working directory",
            Stage::Exec => "running the program",
        })
    }
}

/// Why there is no server, as the helper saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub stage: Stage,
    pub errno: Errno,
}

impl Failure {
    pub fn at(stage: Stage) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { stage, errno }
    }

    /// For `std::io` calls, whose errors come from the kernel here.
    pub fn io(stage: Stage) -> impl Fn(std::io::Error) -> Failure {
        move |error| Failure {
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
    /// Its helper was killed, and the kernel killed the server after it.
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
pub enum Report {
    /// The program runs. `init` is the namespace's first process, else 0.
    Started {
        server: i32,
        init: i32,
        /// Whether the directories to hide are hidden.
        hides: bool,
    },
    Failed(Failure),
    Exited(Exit),
}

impl Report {
    pub fn encode(self) -> [u8; REPORT_SIZE] {
        let (kind, first, second, flag) = match self {
            Report::Started {
                server,
                init,
                hides,
            } => (1, server, init, hides),
            Report::Failed(Failure { stage, errno }) => (2, stage as i32, errno as i32, false),
            Report::Exited(Exit::Code(code)) => (3, code, 0, false),
            Report::Exited(Exit::Signal(signal)) => (4, signal, 0, false),
            Report::Exited(Exit::HelperKilled) => (5, 0, 0, false),
        };
        let mut bytes = [kind; REPORT_SIZE];
        bytes[1..5].copy_from_slice(&first.to_le_bytes());
        bytes[5..9].copy_from_slice(&second.to_le_bytes());
        bytes[9] = u8::from(flag);
        bytes
    }

    pub fn decode(bytes: &[u8; REPORT_SIZE]) -> Option<Report> {
        let (kind, rest) = bytes.split_first()?;
        let (first, rest) = rest.split_first_chunk::<4>()?;
        let first = i32::from_le_bytes(*first);
        let (second, rest) = rest.split_first_chunk::<4>()?;
        let second = i32::from_le_bytes(*second);
        Some(match kind {
            1 => Report::Started {
                server: first,
                init: second,
                hides: rest.first() != Some(&0),
            },
            2 => Report::Failed(Failure {
                stage: Stage::ALL
                    .into_iter()
                    .find(|stage| *stage as i32 == first)?,
                errno: Errno::from_raw(second),
            }),
            3 => Report::Exited(Exit::Code(first)),
            4 => Report::Exited(Exit::Signal(first)),
            5 => Report::Exited(Exit::HelperKilled),
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
        let request = Request {
            step: Step::Cgroup,
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
        let back = Request::decode(&body).unwrap();
        assert_eq!(back.step, request.step);
        assert!(back.keep_privileges);
        assert_eq!(back.hidden, request.hidden);
        assert_eq!(back.marker, request.marker);
        assert_eq!(back.cwd, request.cwd);
        assert_eq!(back.path, request.path);
        assert_eq!(back.args, request.args);
        assert_eq!(back.env, request.env);
        assert!(!back.is_probe());
        assert!(Request::decode(&body[..body.len() - 1]).is_none());
        assert!(Request::decode(b"").is_none());
    }

    #[test]
    fn a_report_survives_the_socket() {
        let failures = Stage::ALL.map(|stage| {
            Report::Failed(Failure {
                stage,
                errno: Errno::EPERM,
            })
        });
        let others = [
            Report::Started {
                server: 4711,
                init: 1,
                hides: true,
            },
            Report::Started {
                server: 4711,
                init: 0,
                hides: false,
            },
            Report::Exited(Exit::HelperKilled),
            Report::Exited(Exit::Code(-1)),
            Report::Exited(Exit::Signal(9)),
        ];
        for report in failures.into_iter().chain(others) {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Report::decode(&[9; REPORT_SIZE]), None);
    }

    #[test]
    fn an_exit_reads_as_a_person_would_say_it() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal(40).to_string(), "signal 40");
    }
}
