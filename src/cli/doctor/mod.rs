//! `portway doctor`: looks for what is wrong here, with and without a running
//! Portway, and says what to do. It changes nothing.

mod files;
mod gateway;
mod machine;
mod place;
mod programs;
mod servers;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::failure::{self, Failure};
use super::finding::{Finding, Mark, Style, counted};
use super::out::safe;
use super::remote::RemoteArgs;
use config::settings::{Settings, VARIABLES};

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One part of the report.
struct Section {
    title: &'static str,
    findings: Vec<Finding>,
}

/// Exits with 1 if something is bad.
pub(super) fn main(args: &DoctorArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    failure::run(async {
        let sections = examine(args, environment).await?;
        let worst = sections.iter().flat_map(|section| &section.findings);
        let bad = worst.filter(|one| one.mark == Mark::Bad).count();
        let text = match args.json {
            true => as_json(&sections, bad == 0),
            false => as_text(&sections, Style::of_stdout(environment.get("NO_COLOR"))),
        };
        // A reader that is gone needs no more of it.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::from(u8::from(bad > 0)))
    })
}

async fn examine(
    args: &DoctorArgs,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<Section>, Failure> {
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
    let sections = [
        ("Portway", portway),
        ("Data", place),
        ("Configuration files", files.findings),
        ("Servers", [servers, running.servers].concat()),
        ("This machine", machine),
    ];
    let sections = sections.into_iter();
    Ok(sections
        .map(|(title, findings)| Section { title, findings })
        .collect())
}

/// The settings a start would have. Bad ones are a finding, and the rest is
/// looked at without them.
fn settings(
    args: &DoctorArgs,
    environment: &BTreeMap<String, String>,
) -> Result<(Settings, Vec<Finding>), Failure> {
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
    let ours = |name: &str| {
        name.starts_with("PORTWAY_") || VARIABLES.iter().any(|(known, _)| *known == name)
    };
    let kept = environment.iter().filter(|(name, _)| !ours(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    let settings = args.remote.settings(&kept.collect())?;
    Ok((resolved(settings)?, vec![finding]))
}

/// With the project's own path, as `serve` has it.
fn resolved(mut settings: Settings) -> Result<Settings, Failure> {
    settings.project = settings.project.canonicalize().map_err(|error| {
        Failure::usage(format!(
            "--project: {}: {error}",
            settings.project.display()
        ))
    })?;
    Ok(settings)
}

fn as_json(sections: &[Section], ok: bool) -> String {
    let findings: Vec<_> = sections
        .iter()
        .flat_map(|section| {
            section.findings.iter().map(|finding| {
                let mut value = serde_json::to_value(finding).unwrap_or_default();
                value["section"] = json!(section.title);
                value
            })
        })
        .collect();
    let report = json!({
        "ok": ok,
        "version": env!("CARGO_PKG_VERSION"),
        "findings": findings,
    });
    safe(&format!("{report:#}\n"))
}

fn as_text(sections: &[Section], style: Style) -> String {
    let mut text = String::new();
    let count = |mark: Mark| {
        let all = sections.iter().flat_map(|section| &section.findings);
        all.filter(|finding| finding.mark == mark).count()
    };
    for section in sections.iter().filter(|one| !one.findings.is_empty()) {
        text += &style.heading(section.title);
        for finding in &section.findings {
            text += &style.line(finding);
        }
    }
    let verdict = match (count(Mark::Bad), count(Mark::Warn)) {
        (0, 0) => "nothing is wrong".to_owned(),
        (0, warnings) => format!("nothing is broken; {}", counted(warnings, "warning")),
        (bad, warnings) => format!(
            "{}, {}",
            counted(bad, "problem"),
            counted(warnings, "warning")
        ),
    };
    text + &style.heading(&verdict)
}
