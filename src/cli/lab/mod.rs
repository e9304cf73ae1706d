//! `portway lab`: tries a server out, by itself and not through a running
//! Portway, and reports how it behaves.

mod advice;
mod answers;
mod bench;
mod calls;
mod cost;
mod ending;
mod eras;
mod line;
mod local;
mod pipe;
mod remote;
mod report;
mod schemas;
mod target;
mod truth;
mod web;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use self::advice::Advice;
use self::bench::{Bench, Subject};
use self::eras::Hello;
use self::report::{Part, Report};
use self::target::Target;
use super::failure::{self, Failure};
use super::finding::{Finding, Style};
use super::remote::RemoteArgs;
use config::{Redactor, view};
use upstream::printable;
use upstream::process::{self, Command};

#[derive(Debug, Args)]
pub struct LabArgs {
    /// A server of the project's files, or the URL of one
    #[arg(value_name = "SERVER|URL")]
    target: Option<String>,
    /// A command that starts one
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "target")]
    command: Vec<String>,
    /// A variable for the command, NAME=VALUE; may be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header for the URL, NAME=VALUE or "Name: value"; may be given more than once
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// Call this tool with these arguments, a JSON object: best a slow one
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"])]
    call: Vec<String>,
    /// Call the tools that say they only read and want no argument
    #[arg(long)]
    safe_calls: bool,
    /// For everything together, from 5s to 1h
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: Duration,
    /// Directory of the project [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn limit(text: &str) -> Result<Duration, String> {
    let limit = super::seconds(text)?;
    let fits = (Duration::from_secs(5)..=Duration::from_secs(3600)).contains(&limit);
    fits.then_some(limit)
        .ok_or_else(|| "must be between 5s and 1h".to_owned())
}

/// Which tools may be called.
pub(super) struct Wishes {
    call: Option<(String, Value)>,
    safe_calls: bool,
    /// For one call.
    limit: Duration,
}

impl Wishes {
    fn called(&self) -> Option<(&str, &Value)> {
        self.call
            .as_ref()
            .map(|(name, arguments)| (name.as_str(), arguments))
    }

    fn new(args: &LabArgs) -> Result<Wishes, Failure> {
        let call = match &args.call[..] {
            [name, text] => {
                let arguments: Value = serde_json::from_str(text).map_err(|error| {
                    Failure::usage(format!("--call: {text:?} is not JSON: {error}"))
                })?;
                if !arguments.is_object() {
                    return Err(Failure::usage(
                        "--call: the arguments must be a JSON object, {} for none",
                    ));
                }
                Some((name.clone(), arguments))
            }
            _ => None,
        };
        Ok(Wishes {
            call,
            safe_calls: args.safe_calls,
            limit: args.timeout / 3,
        })
    }
}

/// Exits with 1 if something breaks its use.
pub(super) fn main(args: &LabArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    failure::run(async {
        let wishes = Wishes::new(args)?;
        let target = target::find(args, environment)?;
        if !args.json && std::io::stderr().is_terminal() {
            let title = printable(&view::title(&target.spec));
            let limit = args.timeout.as_secs();
            let _ = writeln!(std::io::stderr(), "trying {title} (at most {limit} s)…");
        }
        let report = examine(target, &wishes, args, environment).await?;
        let text = match args.json {
            true => report.as_json(),
            false => report.as_text(Style::of_stdout(environment.get("NO_COLOR"))),
        };
        // A reader that is gone needs no more of it.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::from(u8::from(!report.is_fine())))
    })
}

async fn examine(
    target: Target,
    wishes: &Wishes,
    args: &LabArgs,
    environment: &BTreeMap<String, String>,
) -> Result<Report, Failure> {
    let Target {
        name,
        spec,
        project,
    } = target;
    let lookup = |variable: &str| environment.get(variable).cloned();
    let launch = config::expand(&spec, &lookup)
        .map_err(|problems| Failure::usage(config::problem::in_lines(&problems)))?;
    let redactor = Arc::new(Redactor::new(launch.secrets()));
    let shim = process::own_binary().map_err(Failure::other)?;
    let base: Vec<(String, String)> = environment.clone().into_iter().collect();
    // One that is only being tried is the least to be shown the keys.
    let here = RemoteArgs {
        project: Some(project.clone()),
        ..RemoteArgs::default()
    };
    let settings = here.settings(environment);
    let hidden = settings.map_or_else(|_| Vec::new(), |it| store::hidden_directories(&it));
    let command = Command::of(&launch, &project, &base, spec.containment).map(|command| Command {
        privileges: spec.privileges,
        hidden,
        instance: format!("lab-{}", std::process::id()),
        shim,
        ..command
    });
    let mut report = Report::new(view::title(&spec), spec.transport().as_str(), redactor);
    report.server = name.clone();
    let shown = name.unwrap_or_else(|| target::suggested(&spec));
    report.advice = Advice::new(&shown, &spec, Some(&launch));
    let limit = args.timeout;
    let mut bench = Bench {
        launch,
        command,
        patience: limit / 4,
        name: shown,
    };
    let work = async {
        match bench.command.is_some() {
            true => local::examine(&mut bench, wishes, &mut report).await,
            false => remote::examine(&bench, wishes, &mut report).await,
        }
    };
    // What is dropped here ends with all it started.
    if tokio::time::timeout(limit, work).await.is_err() {
        report.complete = false;
        let found = format!("not all could be looked at within {} s", limit.as_secs());
        let todo = "--timeout allows more";
        let finding = match report.spoke {
            true => Finding::warn("time", found, todo),
            false => Finding::bad("time", format!("{found}: no handshake yet"), todo),
        };
        report.add(Part::Cost, finding);
    }
    Ok(report)
}

/// What is looked at in every server that speaks; `listed` is told when the
/// lists are there.
async fn exam(
    subject: &mut Subject,
    hello: &Hello,
    bench: &Bench,
    wishes: &Wishes,
    report: &mut Report,
    listed: impl FnOnce(&Subject, &mut Report),
) {
    report.spoke = true;
    let lists = truth::lists(&mut subject.line).await;
    listed(subject, report);
    let line = &mut subject.line;
    truth::examine(line, hello, &lists, report).await;
    let over_http = bench.command.is_none();
    schemas::examine(&bench.name, &lists.tools.items, over_http, report);
    answers::examine(line, hello, report).await;
    calls::examine(line, hello, &lists.tools.items, wishes, report).await;
}
