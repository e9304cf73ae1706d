//! The lab tests one server, by itself and not through a running Portway, and
//! reports its behavior.
//!
//! It starts or reaches the server as the fleet does, with the processes and
//! the HTTP client of `upstream`, but exchanges single messages with it: ids of
//! its choice, several requests at once, requests that a good client never
//! sends. [`examine`] returns a [`LabReport`] of [`Finding`]s.

mod advice;
mod answers;
mod calls;
mod cost;
mod dialog;
mod ending;
mod eras;
mod finding;
mod http;
mod launcher;
mod lists;
mod local;
mod pipe;
mod remote;
mod report;
mod schemas;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use advice::Advice;
use config::{Problem, Redactor, ServerSpec, view};
use eras::HandshakeAnswer;
pub use finding::{Finding, Severity, counted, short};
use finding::{bad, warn};
use launcher::{Launcher, ServerCopy};
pub use report::{LabReport, Section};
use upstream::process::{self, ProcessCommand};

/// Given a server and the names of its tools, those that Portway must respell
/// for models: the tool's own name and the new one.
pub type RespelledNames = fn(&str, &[&str]) -> Vec<(String, String)>;

/// The server to test, and the options of the test.
pub struct Experiment {
    /// The name of a server of the project's files.
    pub name: Option<String>,
    /// The name of the server in the suggested settings.
    pub shown_name: String,
    pub spec: ServerSpec,
    pub project: PathBuf,
    pub environment: BTreeMap<String, String>,
    /// Directories that the server must not see.
    pub hidden: Vec<PathBuf>,
    /// The client capabilities that Portway announces to servers.
    pub capabilities: Arc<RawValue>,
    pub respelled_names: RespelledNames,
    /// A tool that the user wants to call, and its arguments.
    pub call: Option<(String, Value)>,
    /// Whether to call the tools that are read-only and need no arguments.
    pub safe_calls: bool,
    /// The time limit for everything together.
    pub timeout: Duration,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("{}", config::problem::in_lines(.0))]
    Definition(Vec<Problem>),
    #[error("cannot find Portway's own binary: {0}")]
    OwnBinary(std::io::Error),
}

/// Tests the server. When this returns, no process that it started is left.
pub async fn examine(experiment: &Experiment) -> Result<LabReport, LabError> {
    let Experiment {
        spec, environment, ..
    } = experiment;
    let lookup = |variable: &str| environment.get(variable).cloned();
    let launch = config::expand(spec, &lookup).map_err(LabError::Definition)?;
    let redactor = Arc::new(Redactor::new(launch.secrets()));
    let shim = process::own_binary().map_err(LabError::OwnBinary)?;
    let base: Vec<(String, String)> = environment.clone().into_iter().collect();
    let command = ProcessCommand::of(&launch, &experiment.project, &base, spec.containment);
    let command = command.map(|command| ProcessCommand {
        privileges: spec.privileges,
        hidden: experiment.hidden.clone(),
        instance: format!("lab-{}", std::process::id()),
        shim,
        ..command
    });
    let mut report = LabReport::new(
        view::title(spec),
        spec.transport().as_str(),
        redactor.clone(),
        Advice::new(&experiment.shown_name, spec, &launch),
    );
    report.server.clone_from(&experiment.name);
    let limit = experiment.timeout;
    let mut launcher = Launcher {
        capabilities: experiment.capabilities.clone(),
        launch,
        command,
        redactor,
        handshake_limit: limit / 4,
    };
    let work = async {
        if launcher.command.is_some() {
            local::examine(&mut launcher, experiment, &mut report).await;
        } else {
            remote::examine(&launcher, experiment, &mut report).await;
        }
    };
    // Dropping the work ends every process that it started.
    if tokio::time::timeout(limit, work).await.is_err() {
        report.complete = false;
        let found = format!("not all could be looked at within {} s", limit.as_secs());
        let todo = "--timeout allows more";
        let verdict = if report.spoke {
            warn(found, todo)
        } else {
            bad(format!("{found}: no handshake yet"), todo)
        };
        report.add(Section::Cost, "time", verdict);
    }
    Ok(report)
}

/// The checks for every server that completes a handshake; calls `after_lists`
/// when the lists have been read.
async fn examine_dialog(
    copy: &mut ServerCopy,
    hello: &HandshakeAnswer,
    experiment: &Experiment,
    report: &mut LabReport,
    after_lists: impl FnOnce(&ServerCopy, &mut LabReport),
) {
    report.spoke = true;
    let lists = lists::lists(&mut copy.dialog).await;
    after_lists(copy, report);
    let dialog = &mut copy.dialog;
    lists::examine(dialog, hello, &lists, report).await;
    schemas::examine(experiment, &lists.tools.items, report);
    answers::examine(dialog, hello, report).await;
    calls::examine(dialog, hello, &lists.tools.items, experiment, report).await;
}
