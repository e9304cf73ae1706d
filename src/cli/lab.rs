//! `portway lab`: selects the server under test, and prints the report.

mod target;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::remote::RemoteArgs;
use super::terminal::Terminal;
use config::view;
use gateway::naming;
use lab::{Experiment, LabError, LabReport, Section, Severity, counted};
use upstream::printable;

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
    /// Call this tool with these arguments (a JSON object); choose a slow one
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"])]
    call: Vec<String>,
    /// Call the tools that declare themselves read-only and need no arguments
    #[arg(long)]
    safe_calls: bool,
    /// Time limit for the whole test, from 5s to 1h
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

/// Exits with 1 if the server has a problem that breaks its use.
pub(super) async fn main(args: &LabArgs, environment: &Environment) -> CommandResult {
    let experiment = experiment(args, environment)?;
    if !args.json && std::io::stderr().is_terminal() {
        let title = printable(&view::title(&experiment.spec));
        let limit = args.timeout.as_secs();
        let _ = writeln!(std::io::stderr(), "testing {title} (at most {limit} s)…");
    }
    let examined = lab::examine(&experiment).await;
    let report = examined.map_err(|error| match error {
        LabError::Definition(_) => Failure::usage(error),
        LabError::OwnBinary(_) => Failure::other(error),
    })?;
    let mut out = Terminal::new(environment);
    if args.json {
        out.json(&report.to_json());
    } else {
        print(&report, &mut out);
    }
    out.done(report.is_fine())
}

fn experiment(args: &LabArgs, environment: &Environment) -> CliResult<Experiment> {
    let call = requested_call(args)?;
    let (name, spec, project) = target::find(args, environment)?;
    let remote = RemoteArgs {
        project: Some(project.clone()),
        ..RemoteArgs::default()
    };
    // A server under test must not read Portway's keys either.
    let settings = remote.settings(environment);
    let hidden = settings.map_or_else(|_| Vec::new(), |it| store::hidden_directories(&it));
    Ok(Experiment {
        shown_name: name.clone().unwrap_or_else(|| target::suggested(&spec)),
        name,
        spec,
        project,
        environment: environment.clone(),
        hidden,
        capabilities: gateway::all_capabilities(),
        respelled_names,
        call,
        safe_calls: args.safe_calls,
        timeout: args.timeout,
    })
}

fn requested_call(args: &LabArgs) -> CliResult<Option<(String, Value)>> {
    let [name, text] = &args.call[..] else {
        return Ok(None);
    };
    let arguments: Value = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("--call: {text:?} is not JSON: {error}")))?;
    if !arguments.is_object() {
        let message = "--call: the arguments must be a JSON object, {} for none";
        return Err(Failure::usage(message));
    }
    Ok(Some((name.clone(), arguments)))
}

fn respelled_names(server: &str, own: &[&str]) -> Vec<(String, String)> {
    let names = naming::names(own.iter().map(|own| (server, *own)));
    let pairs = own.iter().zip(names);
    let respelled = pairs.filter(|(own, shown)| shown.name != naming::start(server) + own);
    respelled
        .map(|(own, shown)| ((*own).to_owned(), shown.name))
        .collect()
}

fn print(report: &LabReport, out: &mut Terminal) {
    out.heading(&format!("{} ({})", report.title, report.transport));
    for section in Section::ALL {
        out.section(section.title(), report.section(section));
    }
    if let Some((settings, reasons)) = report.settings() {
        out.line("");
        out.heading("Settings for .mcp.json");
        for line in format!("{settings:#}").lines() {
            out.line(&format!("  {}", printable(line)));
        }
        for (field, reason) in reasons {
            out.line(&format!("  {}: {}", printable(&field), printable(&reason)));
        }
    }
    let warnings = counted(report.count(Severity::Warn), "warning");
    out.line("");
    out.heading(&match report.count(Severity::Bad) {
        0 if report.count(Severity::Warn) == 0 => "no problems found".to_owned(),
        0 => format!("usable; {warnings}"),
        1 => format!("1 problem that breaks its use, {warnings}"),
        bad => format!("{bad} problems that break its use, {warnings}"),
    });
}
