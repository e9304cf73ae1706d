//! The server under test: one of the files, an address, or a command.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::LabArgs;
use crate::cli::Environment;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::files::{project, sources};
use crate::cli::servers::{header as split, plain_name};
use config::problem::in_lines;
use config::{RemoteKind, ServerSpec, Target};
use fleet::registry::{LoadedSources, SourceFiles};

/// The name of a server of the files, the definition, and the project.
pub(super) fn find(
    args: &LabArgs,
    environment: &Environment,
) -> CliResult<(Option<String>, ServerSpec, PathBuf)> {
    let project = project(args.project.as_deref().unwrap_or(Path::new(".")))?;
    let (name, mut spec) = match (&args.target, args.command.split_first()) {
        (None, Some((command, rest))) => {
            let target = Target::Stdio {
                command: command.clone(),
                args: rest.to_vec(),
                env: IndexMap::new(),
                cwd: None,
            };
            (None, ServerSpec::new(target))
        }
        (Some(url), _) if url.contains("://") => {
            let target = Target::Remote {
                kind: RemoteKind::Http,
                url: url.clone(),
                headers: IndexMap::new(),
            };
            (None, ServerSpec::new(target))
        }
        (Some(name), _) => {
            let files = sources(project.clone(), environment);
            (Some(name.clone()), defined(&files, name)?)
        }
        (None, None) => {
            let message = "name what to try: `portway lab SERVER|URL`, or `portway lab -- COMMAND`";
            return Err(Failure::usage(message));
        }
    };
    add(args, &mut spec)?;
    Ok((name, spec, project))
}

fn defined(files: &SourceFiles, name: &str) -> CliResult<ServerSpec> {
    let loaded = files.load_now(&LoadedSources::default());
    let Some(effective) = loaded.effective(name) else {
        let names: Vec<&str> = loaded.names().collect();
        let known = match names[..] {
            [] => "no file here defines any".to_owned(),
            _ => format!("there are {}", names.join(", ")),
        };
        return Err(Failure::usage(format!(
            "no server {name:?}: {known}\n\
             --project names another directory; a command goes behind --"
        )));
    };
    match &effective.definition {
        Ok((_, spec)) => Ok(spec.clone()),
        Err(problems) => {
            let (file, problems) = (effective.source.describe(), in_lines(problems));
            Err(Failure::usage(format!("{file}: {problems}")))
        }
    }
}

/// Adds the values of `--env` and `--header`.
fn add(args: &LabArgs, spec: &mut ServerSpec) -> CliResult<()> {
    match &mut spec.target {
        Target::Stdio { env, .. } => {
            if !args.header.is_empty() {
                return Err(Failure::usage("--header: a command takes none; use --env"));
            }
            for pair in &args.env {
                let (name, value) = pair
                    .split_once('=')
                    .ok_or_else(|| Failure::usage("--env: write NAME=VALUE"))?;
                env.insert(name.to_owned(), value.to_owned());
            }
        }
        Target::Remote { headers, .. } => {
            if !args.env.is_empty() {
                return Err(Failure::usage("--env: a URL takes none; use --header"));
            }
            for header in &args.header {
                let (name, value) =
                    split(header).ok_or_else(|| Failure::usage("--header: write NAME=VALUE"))?;
                headers.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    Ok(())
}

/// The distinctive part of a package's or a script's name.
fn telling(package: &str) -> &str {
    const COMMON: &[&str] = &[
        "index", "main", "server", "dist", "build", "src", "lib", "bin",
    ];
    let common = |part: &str| COMMON.contains(&part.split('.').next().unwrap_or_default());
    let mut parts = package.rsplit('/').filter(|part| !part.is_empty());
    parts.find(|part| !common(part)).unwrap_or(package)
}

/// A name for a definition that has none yet.
pub(super) fn suggested(spec: &ServerSpec) -> String {
    let word = match &spec.target {
        Target::Stdio { command, args, .. } => {
            const RUNNERS: &[&str] = &["npx", "uvx", "bunx", "deno", "node", "python", "docker"];
            let base = command.rsplit('/').next().unwrap_or(command);
            // `python3.12`, `node-22`.
            let family = base.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
            let package = args.iter().find(|arg| !arg.starts_with('-'));
            match (RUNNERS.contains(&family), package) {
                (true, Some(package)) => telling(package).to_owned(),
                _ => base.to_owned(),
            }
        }
        Target::Remote { url, .. } => {
            let host = url::Url::parse(url).ok();
            host.and_then(|url| url.host_str().map(str::to_owned))
                .unwrap_or_default()
        }
    };
    plain_name(word.split('@').next().unwrap_or_default(), "server")
}
