//! `portway doctor`: looks for problems, with and without a running gateway,
//! and suggests a fix for each. It changes nothing.

mod files;
mod gateway;
mod machine;
mod place;
mod programs;
mod servers;

use clap::Args;
use serde_json::{Value, json};

use super::Environment;
use super::failure::{CliResult, CommandResult};
use super::files::project;
use super::remote::RemoteArgs;
use super::terminal::Terminal;
use config::settings::{Settings, variable_names};
use lab::{Finding, Severity, counted};

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

type DoctorSection = (&'static str, Vec<Finding>);

/// Exits with 1 if a finding is bad.
pub(super) async fn main(args: &DoctorArgs, environment: &Environment) -> CommandResult {
    let sections = examine(args, environment).await?;
    let findings = || sections.iter().flat_map(|(_, findings)| findings);
    let count = |severity| findings().filter(|one| one.mark == severity).count();
    let (bad, warnings) = (count(Severity::Bad), count(Severity::Warn));
    let mut out = Terminal::new(environment);
    if args.json {
        out.json(&to_json(&sections, bad == 0));
    } else {
        print(&sections, bad, warnings, &mut out);
    }
    out.done(bad == 0)
}

async fn examine(args: &DoctorArgs, environment: &Environment) -> CliResult<Vec<DoctorSection>> {
    let (settings, wrong) = settings(args, environment)?;
    let files = files::examine(&settings, environment);
    let running = gateway::find(args, &settings, environment).await;
    let (machine, servers, storage) = tokio::join!(
        machine::examine(&settings, files.servers.len()),
        servers::examine(&files.servers, &settings, environment),
        place::storage(&settings),
    );
    let mut portway = wrong;
    portway.extend(running.findings);
    let mut servers = servers;
    if !running.answers {
        servers.extend(servers::gaps(&files.servers));
    }
    let mut place = place::examine(&settings, running.answers);
    place.extend(storage);
    Ok(vec![
        ("Portway", portway),
        ("Data", place),
        ("Configuration files", files.findings),
        ("Servers", [servers, running.servers].concat()),
        ("This machine", machine),
    ])
}

/// The settings that `serve` would use. Invalid ones become a finding, and the
/// other checks run without them.
fn settings(args: &DoctorArgs, environment: &Environment) -> CliResult<(Settings, Vec<Finding>)> {
    let error = match args.remote.settings(environment) {
        Ok(settings) => {
            let todo = "unset it, or correct its name";
            let unknown = settings.unknown.iter();
            let unknown = unknown.map(|said| Finding::warn("settings", said.to_string(), todo));
            let findings = unknown.collect();
            return Ok((resolved(settings)?, findings));
        }
        Err(error) => error,
    };
    let todo = "`portway --help` lists every setting and what it takes";
    let finding = Finding::bad("settings", error.to_string(), todo);
    let ours =
        |name: &str| name.starts_with("PORTWAY_") || variable_names().any(|known| known == name);
    let kept = environment.iter().filter(|(name, _)| !ours(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    let settings = args.remote.settings(&kept.collect())?;
    Ok((resolved(settings)?, vec![finding]))
}

/// The settings with the project's canonical path, as `serve` has it.
fn resolved(mut settings: Settings) -> CliResult<Settings> {
    settings.project = project(&settings.project)?;
    Ok(settings)
}

fn to_json(sections: &[DoctorSection], ok: bool) -> Value {
    let findings = sections.iter().flat_map(|(title, findings)| {
        let to_json = |finding: &Finding| finding.to_json(title);
        findings.iter().map(to_json)
    });
    json!({
        "ok": ok,
        "version": env!("CARGO_PKG_VERSION"),
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn print(sections: &[DoctorSection], bad: usize, warnings: usize, out: &mut Terminal) {
    for (title, findings) in sections {
        out.section(title, findings);
    }
    out.line("");
    out.heading(&match (bad, warnings) {
        (0, 0) => "no problems found".to_owned(),
        (0, warnings) => format!("no errors; {}", counted(warnings, "warning")),
        (bad, warnings) => format!(
            "{}, {}",
            counted(bad, "problem"),
            counted(warnings, "warning")
        ),
    });
}
