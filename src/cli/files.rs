//! `portway check` and `portway plan`: check the files without running
//! anything.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::terminal::Terminal;
use config::Problem;
use fleet::registry::{ConfigPlan, LoadedSources, SourceFiles};
use lab::counted;
use upstream::printable;

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

/// The canonical path of a project.
pub(super) fn project(path: &Path) -> CliResult<PathBuf> {
    let found = path.canonicalize();
    found.map_err(|error| Failure::usage(format!("--project: {}: {error}", path.display())))
}

/// No client's file is this large.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The text of another client's file.
pub(super) fn client_file(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("is too large to be a client's file"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("is not UTF-8 text"))
}

/// The configuration files of a project, in all layers.
pub(super) fn sources(project: PathBuf, environment: &Environment) -> SourceFiles {
    SourceFiles::new(project, environment.get("HOME").map(Into::into))
}

fn files(given: Option<&Path>, environment: &Environment) -> CliResult<SourceFiles> {
    let project = project(given.unwrap_or(Path::new(".")))?;
    Ok(sources(project, environment))
}

/// The files with a candidate in place of `.mcp.json`. The owner and mode of
/// the candidate are not checked: they matter only at the final path.
fn candidate(files: &SourceFiles, path: &Path) -> CliResult<(SourceFiles, LoadedSources)> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let files = files.with_mcp_at(path);
    let others = files.load_now(&LoadedSources::default());
    let loaded = files.with_file(&others, &files.mcp(), &bytes);
    Ok((files, loaded))
}

/// Exits with 1 when something is wrong with a file.
pub(super) async fn check(args: &CheckArgs, environment: &Environment) -> CommandResult {
    let mut out = Terminal::new(environment);
    let files = files(args.project.as_deref(), environment)?;
    let mut reports = match &args.file {
        Some(path) => {
            let (files, loaded) = candidate(&files, path)?;
            files.reports(&loaded)
        }
        None => files.reports(&files.load_now(&LoadedSources::default())),
    };
    reports.extend(files.filters_report());
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    let (mut paths, mut servers, mut faults) = (BTreeSet::new(), 0, 0);
    for report in &reports {
        // A file may hold more than one layer; its error is reported once.
        let first = paths.insert(&report.path);
        let error = report.error.iter().filter(|_| first);
        servers += report.servers.len();
        let of_servers = report.servers.iter().flat_map(|server| &server.problems);
        for problem in error.chain(&report.problems).chain(of_servers) {
            faults += 1;
            lines.push(complaint(&report.path, problem));
        }
        // This is not an error, but the user may not expect it.
        for server in &report.servers {
            if let Some(winner) = &server.shadowed_by {
                let (path, name) = (&report.path, printable(&server.name));
                notes.push(format!("{path}: server \"{name}\" is shadowed by {winner}"));
            }
        }
    }
    if args.json {
        out.json(&serde_json::to_value(&reports).map_err(Failure::other)?);
        return out.done(faults == 0);
    }
    for line in lines.iter().chain(&notes) {
        out.line(line);
    }
    out.line(&format!(
        "{}, {}, {}",
        counted(paths.len(), "file"),
        counted(servers, "server"),
        counted(faults, "problem")
    ));
    out.done(faults == 0)
}

/// `file:line:column: problem`, which editors and CI make clickable.
pub(super) fn complaint(path: &str, problem: &Problem) -> String {
    let place = match (problem.line, problem.column) {
        (Some(line), Some(column)) => format!(":{line}:{column}"),
        _ => String::new(),
    };
    let bare = Problem {
        line: None,
        column: None,
        ..problem.clone()
    };
    format!("{path}{place}: {}", printable(&bare.to_string()))
}

/// Exits with 1 when the candidate itself has problems; problems of other files
/// are only printed.
pub(super) async fn plan(args: &PlanArgs, environment: &Environment) -> CommandResult {
    let mut out = Terminal::new(environment);
    let files = files(args.project.as_deref(), environment)?;
    let now = files.load_now(&LoadedSources::default());
    let (files, then) = candidate(&files, &args.file)?;
    let source = files.mcp();
    let mut plan = ConfigPlan::between(&now, &then);
    if then.problem(&source).is_some() {
        // It would change nothing: the last good state stays.
        plan = ConfigPlan {
            problems: plan.problems,
            ..ConfigPlan::between(&now, &now)
        };
    }
    let path = source.to_string();
    let good = plan.problems.iter().all(|fault| fault.file != path);
    if args.json {
        out.json(&serde_json::to_value(&plan).map_err(Failure::other)?);
        return out.done(good);
    }
    for (sign, names) in [
        ("+ added    ", &plan.added),
        ("- removed  ", &plan.removed),
        ("~ restarted", &plan.restarted),
        ("= kept     ", &plan.kept),
    ] {
        for name in names {
            out.line(&format!("{sign} {}", printable(name)));
        }
    }
    for fault in &plan.problems {
        out.line(&complaint(&fault.file, &fault.problem));
    }
    out.done(good)
}
