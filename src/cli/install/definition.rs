//! The definition of Portway for a client, made from the command line.

use std::path::Path;

use super::InstallArgs;
use super::entry::{KeyReference, PortwayDefinition};
use crate::cli::Environment;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::{ENTRY_KEY, Remote, endpoint};
use config::Secret;
use config::import::ClientApp;
use config::settings::Settings;

/// A shorter key could not be reliably masked in the output.
const SHORTEST_KEY: usize = 8;
const ADMIN_TOKEN: &str = "PORTWAY_ADMIN_TOKEN";

/// The entry's key: from the argument, or from the environment, which other
/// users of the machine cannot read.
pub(super) fn given(args: &InstallArgs, environment: &Environment) -> Option<Secret> {
    let kept = environment.get(ENTRY_KEY).filter(|key| !key.is_empty());
    match (&args.entry, args.admin || args.server.is_some()) {
        (Some(key), _) => Some(key.clone()),
        (None, true) => None,
        (None, false) => kept.map(Secret::new),
    }
}

pub(super) fn entry(
    args: &InstallArgs,
    given: Option<&Secret>,
    remote: &Remote,
    settings: &Settings,
) -> CliResult<PortwayDefinition> {
    if given.is_none() && !args.admin {
        return Err(not_the_admin(args));
    }
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::other(format!("where is portway? {error}")))?;
    Ok(PortwayDefinition {
        url: endpoint(remote.base(), args.server.as_deref()).to_string(),
        key: key(args, given, remote)?,
        command: text(&program)?,
        args: connect(args, settings)?,
    })
}

fn not_the_admin(args: &InstallArgs) -> Failure {
    let client = args.target.client;
    let what = match args.server {
        Some(_) => "reaching one server as it is takes",
        None => "this would take",
    };
    Failure::usage(format!(
        "{what} the admin token, with which {} could use every tool and change every server\n\
         make an entry with the tools it needs: portway entries create {} --tool SERVER:TOOL\n\
         and give it that: portway install {} --entry KEY\n\
         or say --admin if everything is what you want",
        client.title(),
        client.name(),
        client.name(),
    ))
}

fn key(args: &InstallArgs, given: Option<&Secret>, remote: &Remote) -> CliResult<KeyReference> {
    let variable = match given {
        Some(_) => ENTRY_KEY,
        None => ADMIN_TOKEN,
    };
    // Claude Desktop starts a command, which finds the token of this machine by
    // itself but gets no variables.
    let desktop = args.target.client == ClientApp::ClaudeDesktop;
    if desktop && given.is_none() {
        return Ok(KeyReference::Unneeded);
    }
    let value = match given {
        Some(key) => Some(checked(key)?),
        None => remote.known_token().cloned(),
    };
    if !desktop && !args.with_key {
        return Ok(KeyReference::Variable(variable.to_owned()));
    }
    let Some(value) = value else {
        return Err(Failure::usage(
            "--with-key: no admin token is known here: set PORTWAY_ADMIN_TOKEN, \
             or name the data directory with --data-dir",
        ));
    };
    Ok(KeyReference::Written {
        variable: variable.to_owned(),
        value,
    })
}

/// The key, if it is valid in a header.
fn checked(key: &Secret) -> CliResult<Secret> {
    let text = key.expose();
    let fits = text.len() >= SHORTEST_KEY && text.bytes().all(|b| b.is_ascii_graphic());
    if !fits || text.contains(['"', '\\', '$', '{']) {
        let message = "--entry: this is no key; `portway entries` makes and rotates them";
        return Err(Failure::usage(message));
    }
    Ok(key.clone())
}

/// The arguments for a client that can only start commands.
fn connect(args: &InstallArgs, settings: &Settings) -> CliResult<Vec<String>> {
    let mut words = vec!["connect".to_owned()];
    if let Some(url) = &args.remote.url {
        words.extend(["--url".to_owned(), url.clone()]);
    }
    let project = settings.project.canonicalize();
    let project = project.unwrap_or_else(|_| settings.project.clone());
    words.extend(["--project".to_owned(), text(&project)?]);
    if args.remote.data_dir.is_some() {
        words.extend(["--data-dir".to_owned(), text(&settings.data_dir)?]);
    }
    if let Some(server) = &args.server {
        words.extend(["--server".to_owned(), server.clone()]);
    }
    Ok(words)
}

fn text(path: &Path) -> CliResult<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::of_path(path, "is not UTF-8"))
}
