//! The errors of a command: their messages and exit codes.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::StatusCode;
use serde_json::Value;

use super::BAD_USE;
use super::servers::items;
use super::terminal::note;

/// The exit code when no Portway answers.
pub(super) const NOT_RUNNING: u8 = 3;
/// The exit code for a missing or a wrong token.
pub(super) const DENIED: u8 = 4;

pub(super) type CliResult<T> = Result<T, Failure>;

/// The exit code of a command, or the error that ended it.
pub(super) type CommandResult = CliResult<ExitCode>;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// A wrong argument or setting.
    #[error("{0}")]
    Usage(String),
    #[error(
        "no Portway answers at {url}: {reason}\n\
         start one with `portway`, or name another with --url or PORTWAY_URL"
    )]
    Unreachable { url: String, reason: String },
    /// No address was given, and no gateway runs for this project.
    #[error("{}", not_here(.directory, .other.as_deref()))]
    NotHere {
        directory: PathBuf,
        /// The address of another project's gateway, if one answers.
        other: Option<String>,
    },
    /// The data directory is not trusted.
    #[error("{0}")]
    Untrusted(String),
    #[error("{}", denied(.url, *.given))]
    Denied { url: String, given: bool },
    /// Portway refused the request, with a reason.
    #[error("{message}")]
    Refused {
        status: StatusCode,
        code: String,
        message: String,
    },
    #[error("{0}")]
    Other(String),
}

fn not_here(directory: &Path, other: Option<&str>) -> String {
    let directory = directory.display();
    let nobody = format!("no Portway runs for this project ({directory})");
    match other {
        Some(url) => format!(
            "{nobody}; the one at {url} is another one's\n\
             start one beside it with `portway --listen 127.0.0.1:0`, or name that one with \
             --project, --data-dir, --url or PORTWAY_URL"
        ),
        None => format!(
            "{nobody}\n\
             start one with `portway`, or name another with --project, --data-dir, --url or \
             PORTWAY_URL"
        ),
    }
}

fn denied(url: &str, given: bool) -> String {
    let (what, to) = if given {
        ("does not take this token", " to its own")
    } else {
        ("asks for a token", "")
    };
    format!(
        "the Portway at {url} {what}: set PORTWAY_ADMIN_TOKEN{to}, \
         or name its data directory with --data-dir"
    )
}

impl Failure {
    /// Prints it; returns the exit code.
    pub(super) fn report(&self) -> ExitCode {
        note(&self.to_string());
        ExitCode::from(self.exit_code())
    }

    pub(super) fn usage(text: impl Display) -> Failure {
        Failure::Usage(text.to_string())
    }

    pub(super) fn other(text: impl Display) -> Failure {
        Failure::Other(text.to_string())
    }

    pub(super) fn unreachable(url: &str, reason: impl Display) -> Failure {
        Failure::Unreachable {
            url: url.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// An error about one file or directory.
    pub(super) fn of_path(path: &Path, reason: impl Display) -> Failure {
        Failure::other(format!("{}: {reason}", path.display()))
    }

    /// From the body of an error response.
    pub(super) fn refused(status: StatusCode, body: &Value) -> Failure {
        let error = &body["error"];
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        let mut message = text("message").unwrap_or_else(|| status.to_string());
        // The message already includes the first detail.
        for detail in items(&error["details"]).iter().skip(1) {
            if let (Some(field), Some(problem)) =
                (detail["field"].as_str(), detail["message"].as_str())
            {
                message += &format!("\n  {field}: {problem}");
            }
        }
        Failure::Refused {
            status,
            code: text("code").unwrap_or_default(),
            message,
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => BAD_USE,
            // Portway rejected the arguments of the command.
            Failure::Refused { status, .. } if *status == 422 => BAD_USE,
            Failure::Unreachable { .. } | Failure::NotHere { .. } | Failure::Untrusted(_) => {
                NOT_RUNNING
            }
            Failure::Denied { .. } => DENIED,
            Failure::Refused { .. } | Failure::Other(_) => 1,
        }
    }
}

/// Runs a command; returns its exit code and prints a failure to stderr.
pub(super) fn run(work: impl Future<Output = CommandResult>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Failure::other(format!("cannot start the runtime: {error}"))),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
