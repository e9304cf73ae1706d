//! `portway install` and `uninstall`: add Portway to a client's own file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::Environment;
use super::clients::{self, ClientPaths, FileScope};
use super::failure::{CliResult, CommandResult, Failure};
use super::files;
use super::remote::{ENTRY_KEY, Remote, RemoteArgs};
use config::edit::graft::{GraftResult, graft};
use config::edit::prune::prune;
use config::import::ClientApp;
use config::{Redactor, Secret};
use entry::{InstallTarget, InstalledServer, KeyReference, Ownership};
use file::{ClientFile, FileChange, ReplaceOutcome, TRIES};
use upstream::printable;

mod definition;
mod entry;
mod file;

const KEEPS_CHANGING: &str = "keeps changing while it is edited; close the client and try again";

/// Which server of which file.
#[derive(Debug, Args)]
struct InstallTargetArgs {
    /// Which client
    #[arg(value_parser = clients::parser())]
    client: ClientApp,
    /// Which settings file: the user's or the project's
    #[arg(long, value_enum, default_value = "user")]
    scope: FileScope,
    /// Name of the server in the client's settings
    #[arg(long, value_name = "NAME", default_value = "portway")]
    name: String,
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    #[command(flatten)]
    target: InstallTargetArgs,
    /// Key of the entry for the client [env: PORTWAY_ENTRY_KEY]
    #[arg(long, value_name = "KEY", value_parser = super::secret, conflicts_with_all = ["server", "admin"])]
    entry: Option<Secret>,
    /// Expose one server directly; needs --admin
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Give the client the admin token: full access
    #[arg(long)]
    admin: bool,
    /// Write the key itself into the file, where the client could also read a variable
    #[arg(long)]
    with_key: bool,
    /// Only show what would be written
    #[arg(long)]
    dry_run: bool,
    /// Print the settings without changing the file
    #[arg(long, conflicts_with = "dry_run")]
    print: bool,
    /// Replace it even if it was edited
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    target: InstallTargetArgs,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Remove it even if it was edited
    #[arg(long)]
    force: bool,
    /// Directory of the project [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

pub(super) async fn install(args: &InstallArgs, environment: &Environment) -> CommandResult {
    let settings = args.remote.settings(environment)?;
    let remote = Remote::new(&args.remote, environment)?;
    let target = args.target.found_in(&settings.project)?;
    let given = definition::given(args, environment);
    let entry = definition::entry(args, given.as_ref(), &remote, &settings)?;
    let secrets: Vec<&Secret> = match &entry.key {
        KeyReference::Written { value, .. } => vec![value],
        _ => Vec::new(),
    };
    let redactor = Redactor::new(secrets.iter().map(|secret| secret.expose()));
    let path = path_of(&target, environment)?;
    if args.print {
        let fail = |error| Failure::of_path(&path, error);
        let grafts = target.grafts("", &entry).map_err(fail)?;
        let text = graft("", &grafts).map_err(fail)?.text;
        say(&redactor.redact(&text));
        return Ok(ExitCode::SUCCESS);
    }
    for _ in 0..TRIES {
        let file = ClientFile::read(path.clone(), target.is_shared())?;
        let fail = |error| Failure::of_path(&file.path, error);
        let base = base(&file, &target, args.force)?;
        let grafts = target.grafts(&base, &entry).map_err(fail)?;
        let grafted = graft(&base, &grafts).map_err(fail)?;
        if file.found.as_deref() == Some(&grafted.text) {
            say(&format!(
                "{} has it already: {}",
                target.client.title(),
                path.display()
            ));
            return Ok(ExitCode::SUCCESS);
        }
        if args.dry_run {
            say(&redactor.redact(&diff(&path, &grafted)));
            return Ok(ExitCode::SUCCESS);
        }
        let private = !secrets.is_empty();
        match file.replace(&FileChange::Text(&grafted.text), private)? {
            ReplaceOutcome::Changed => {}
            ReplaceOutcome::Done { backup } => {
                say(&installed(&target, &entry.key, &path, backup.as_deref()));
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    Err(Failure::of_path(&path, KEEPS_CHANGING))
}

/// The text without an existing entry of Portway, if `install` wrote it.
fn base(file: &ClientFile, target: &InstallTarget, force: bool) -> CliResult<String> {
    let fail = |error| Failure::of_path(&file.path, error);
    let Some(InstalledServer { fields, grafts }) = target.found(file.text()).map_err(fail)? else {
        return Ok(file.text().to_owned());
    };
    let name = &target.name;
    match target.whose(&fields) {
        Ownership::Foreign => Err(Failure::of_path(
            &file.path,
            format!("has another server {name:?}; give Portway another name with --name"),
        )),
        Ownership::Edited if !force => Err(Failure::of_path(
            &file.path,
            format!("somebody has edited {name:?}; --force replaces it"),
        )),
        _ => {
            let pruned = prune(file.text(), &grafts, &file.before()).map_err(fail)?;
            Ok(pruned.unwrap_or_default())
        }
    }
}

pub(super) async fn uninstall(args: &UninstallArgs, environment: &Environment) -> CommandResult {
    let settings = RemoteArgs {
        project: args.project.clone(),
        ..RemoteArgs::default()
    }
    .settings(environment)?;
    let target = args.target.found_in(&settings.project)?;
    let path = path_of(&target, environment)?;
    for _ in 0..TRIES {
        let file = ClientFile::read(path.clone(), false)?;
        let fail = |error| Failure::of_path(&file.path, error);
        let Some(InstalledServer { fields, grafts }) = target.found(file.text()).map_err(fail)?
        else {
            return Err(Failure::of_path(&path, not_there(&target, environment)));
        };
        let name = &target.name;
        let reason = match target.whose(&fields) {
            Ownership::Ours => None,
            Ownership::Edited => Some("somebody has edited it"),
            Ownership::Foreign => Some("it does not look like Portway"),
        };
        if let Some(reason) = reason.filter(|_| !args.force) {
            let message = format!("{name:?} stays: {reason}; --force takes it out all the same");
            return Err(Failure::of_path(&path, message));
        }
        let pruned = prune(file.text(), &grafts, &file.before()).map_err(fail)?;
        let next = match &pruned {
            Some(text) => FileChange::Text(text),
            // A symbolic link belongs to the user.
            None if path.is_symlink() => FileChange::Text("{}\n"),
            None => FileChange::Gone {
                ours: reason.is_none(),
            },
        };
        if args.dry_run {
            say(&match next {
                FileChange::Gone { .. } => {
                    format!("{} would be removed: nothing else is in it", path.display())
                }
                FileChange::Text(_) => format!("{name:?} would be taken out of {}", path.display()),
            });
            return Ok(ExitCode::SUCCESS);
        }
        if let ReplaceOutcome::Done { backup } = file.replace(&next, false)? {
            let mut text = match next {
                FileChange::Gone { .. } => {
                    format!("{} is removed: nothing else was in it.", path.display())
                }
                FileChange::Text(_) => format!("{name:?} is out of {}.", path.display()),
            };
            text += &backup_note(backup.as_deref());
            say(&text);
            return Ok(ExitCode::SUCCESS);
        }
    }
    Err(Failure::of_path(&path, KEEPS_CHANGING))
}

impl InstallTargetArgs {
    fn found_in(&self, project: &Path) -> CliResult<InstallTarget> {
        let name = &self.name;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            let message = "--name: 1 to 64 letters, digits, '_' or '-': clients take no others";
            return Err(Failure::usage(message));
        }
        Ok(InstallTarget {
            client: self.client,
            scope: self.scope,
            name: name.clone(),
            project: files::project(project)?,
        })
    }
}

fn path_of(target: &InstallTarget, environment: &Environment) -> CliResult<PathBuf> {
    let places = ClientPaths::new(environment, &target.project);
    let path = places.to_write(target.client, target.scope);
    path.ok_or_else(|| match target.scope {
        FileScope::User => Failure::usage("there is no home directory: set HOME"),
        FileScope::Project => Failure::usage(format!(
            "--scope: {} has no file of a project; leave it out",
            target.client.title()
        )),
    })
}

fn not_there(target: &InstallTarget, environment: &Environment) -> String {
    let name = &target.name;
    let (scope, word) = match target.scope {
        FileScope::User => (FileScope::Project, "project"),
        FileScope::Project => (FileScope::User, "user"),
    };
    let other = InstallTarget {
        scope,
        project: target.project.clone(),
        name: name.clone(),
        ..*target
    };
    let elsewhere = path_of(&other, environment)
        .and_then(|path| ClientFile::read(path, false))
        .is_ok_and(|file| matches!(other.found(file.text()), Ok(Some(_))));
    if elsewhere {
        return format!("has no server {name:?}, but that of the {word} has: --scope {word}");
    }
    format!("has no server {name:?}; nothing to take out")
}

fn installed(
    target: &InstallTarget,
    key: &KeyReference,
    path: &Path,
    backup: Option<&Path>,
) -> String {
    let client = target.client.title();
    let mut text = format!(
        "{client} has Portway as {:?}: {}",
        target.name,
        path.display()
    );
    text += &backup_note(backup);
    text += &match key {
        KeyReference::Variable(_) if target.client == ClientApp::VsCode => {
            "\nIt asks for the key when it first starts it; the key is not in the file.".to_owned()
        }
        KeyReference::Variable(name) => {
            let what = if name == ENTRY_KEY {
                "the entry's key"
            } else {
                "the admin token"
            };
            format!(
                "\nSet {name} to {what} where {client} is started; it is not in the file:\n  \
                 export {name}=…\n\
                 One that is started from a desktop sees no such variable: --with-key writes \
                 it into the file."
            )
        }
        KeyReference::Written { .. } => {
            "\nThe key is in the file, which only you may read from now on.".to_owned()
        }
        KeyReference::Unneeded => String::new(),
    };
    if target.is_shared() && matches!(key, KeyReference::Written { .. }) {
        text += "\nKeep that file out of git.";
    }
    if target.client == ClientApp::ClaudeCode && target.scope == FileScope::Project {
        text +=
            "\nIt counts for you in this directory; .mcp.json is Portway's own list of servers.";
    }
    text
}

fn backup_note(backup: Option<&Path>) -> String {
    match backup {
        Some(path) => format!("\nAs it was: {}", path.display()),
        None => String::new(),
    }
}

/// The added lines only: the rest of the file may be secret.
fn diff(path: &Path, grafted: &GraftResult) -> String {
    let mut text = format!("+++ {}\n", path.display());
    for added in &grafted.added {
        let new = added.text.trim_matches(['\r', '\n']);
        let skipped = added.text.len() - added.text.trim_start_matches(['\r', '\n']).len();
        let line = added.line + added.text[..skipped].matches('\n').count();
        text += &format!("@@ line {line} @@\n");
        for line in new.lines() {
            text += &format!("+{line}\n");
        }
    }
    text
}

fn say(text: &str) {
    for line in text.lines() {
        let _ = writeln!(std::io::stdout(), "{}", printable(line));
    }
}
