//! `portway check` and `portway plan`: the files, judged without running
//! anything.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::BAD_USE;
use crate::config::Problem;
use crate::registry::{Files, Loaded, Plan};

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Directory of .mcp.json and .kode.json [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Check this file as the project's .mcp.json instead
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The candidate for the project's .mcp.json
    file: PathBuf,
    /// Directory of .mcp.json and .kode.json [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Exits with 1 when something is wrong with a file.
pub fn check(args: &CheckArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    finish(run_check(args, environment))
}

/// Exits with 1 when the candidate has problems.
pub fn plan(args: &PlanArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    finish(run_plan(args, environment))
}

fn finish(outcome: anyhow::Result<(String, bool)>) -> ExitCode {
    match outcome {
        Ok((text, good)) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(u8::from(!good))
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "portway: {error:#}");
            ExitCode::from(BAD_USE)
        }
    }
}

fn files(project: Option<&Path>, environment: &BTreeMap<String, String>) -> anyhow::Result<Files> {
    let project = project.unwrap_or(Path::new("."));
    let found = project.canonicalize();
    Ok(Files {
        project: found.with_context(|| format!("--project: {}", project.display()))?,
        home: environment.get("HOME").map(Into::into),
    })
}

fn load(files: &Files) -> anyhow::Result<Loaded> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(runtime.block_on(files.load(&Loaded::default())))
}

/// With the file's own problem as the outer error.
fn candidate(files: &Files, loaded: &Loaded, path: &Path) -> anyhow::Result<Loaded> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let parsed = files.with_mcp(loaded, &text);
    parsed.map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))
}

fn run_check(
    args: &CheckArgs,
    environment: &BTreeMap<String, String>,
) -> anyhow::Result<(String, bool)> {
    let files = files(args.project.as_deref(), environment)?;
    let mut loaded = load(&files)?;
    if let Some(path) = &args.file {
        loaded = candidate(&files, &loaded, path)?;
    }
    let reports = loaded.reports();
    let own = |path: &str| match &args.file {
        Some(file) if *path == files.mcp().to_string() => file.display().to_string(),
        _ => path.to_owned(),
    };
    let mut lines = String::new();
    let (mut servers, mut faults) = (0, 0);
    for report in &reports {
        let path = own(&report.path);
        if let Some(error) = &report.error {
            faults += 1;
            lines += &format!("{path}: {error}\n");
        }
        servers += report.servers.len();
        let of_servers = report.servers.iter().flat_map(|server| &server.problems);
        for problem in report.problems.iter().chain(of_servers) {
            faults += 1;
            lines += &complaint(&path, problem);
        }
    }
    if args.json {
        let text = serde_json::to_string_pretty(&reports)?;
        return Ok((text + "\n", faults == 0));
    }
    let files = reports.len();
    lines += &format!("{files} files, {servers} servers, {faults} problems\n");
    Ok((lines, faults == 0))
}

/// `file:line:column: what is wrong`, which editors and CI make clickable.
fn complaint(path: &str, problem: &Problem) -> String {
    let place = match (problem.line, problem.column) {
        (Some(line), Some(column)) => format!(":{line}:{column}"),
        _ => String::new(),
    };
    let bare = Problem {
        line: None,
        column: None,
        ..problem.clone()
    };
    format!("{path}{place}: {bare}\n")
}

fn run_plan(
    args: &PlanArgs,
    environment: &BTreeMap<String, String>,
) -> anyhow::Result<(String, bool)> {
    let files = files(args.project.as_deref(), environment)?;
    let loaded = load(&files)?;
    let plan = Plan::between(&loaded, &candidate(&files, &loaded, &args.file)?);
    let good = plan.problems.is_empty();
    if args.json {
        return Ok((serde_json::to_string_pretty(&plan)? + "\n", good));
    }
    let mut text = String::new();
    for (sign, names) in [
        ("+ added    ", &plan.added),
        ("- removed  ", &plan.removed),
        ("~ restarted", &plan.restarted),
        ("= kept     ", &plan.kept),
    ] {
        for name in names {
            text += &format!("{sign} {name}\n");
        }
    }
    for problem in &plan.problems {
        text += &complaint(&args.file.display().to_string(), problem);
    }
    Ok((text, good))
}
