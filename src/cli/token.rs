//! `portway token` and `portway sessions`: access to Portway itself.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::failure::{self, Failure};
use super::remote::{AskArgs, Remote};
use super::servers::text;
use super::terminal::{Cell, Table};
use super::terminal::{Terminal, confirm, is_attended, note};

const SESSIONS: &str = "/api/console/sessions";

#[derive(Debug, Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a new admin token; the old one and the console's sessions end
    Rotate(RotateTokenArgs),
}

#[derive(Debug, Args)]
struct RotateTokenArgs {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List the browsers that are signed in
    Ls(AskArgs),
    /// Sign browsers out
    End(EndArgs),
}

#[derive(Debug, Args)]
struct EndArgs {
    /// Which sessions, by their ids
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    ask: AskArgs,
}

pub(super) fn token(args: &TokenArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let TokenCommand::Rotate(args) = &args.command;
    failure::run(rotate(args, environment))
}

async fn rotate(
    args: &RotateTokenArgs,
    environment: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let question = "Make a new admin token? The old one and all console sessions end.";
    // A script that rotates tokens is not asked for confirmation.
    if is_attended() && !confirm(question, args.yes)? {
        return out.done(ExitCode::FAILURE);
    }
    let answer = remote.ask(Method::POST, "/api/token/rotate", None).await?;
    if args.ask.json {
        out.json(&answer);
    } else {
        out.line(text(&answer, "token"));
        note("this is the new admin token; it is kept in the data directory");
    }
    out.done(ExitCode::SUCCESS)
}

pub(super) fn sessions(args: &SessionsArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    match &args.command {
        SessionsCommand::Ls(ask) => failure::run(list(ask, environment)),
        SessionsCommand::End(args) => failure::run(end(args, environment)),
    }
}

async fn list(ask: &AskArgs, environment: &BTreeMap<String, String>) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let sessions = remote.get(SESSIONS).await?;
    if ask.json {
        out.json(&sessions);
        return out.done(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "signed in", "last used", "ends", "browser"]);
    for session in sessions.as_array().into_iter().flatten() {
        let cell = |name: &str| Cell::from(text(session, name));
        table.row([
            cell("id"),
            cell("created_at"),
            cell("last_used_at"),
            cell("expires_at"),
            cell("agent"),
        ]);
    }
    table.print(&mut out);
    out.done(ExitCode::SUCCESS)
}

async fn end(args: &EndArgs, environment: &BTreeMap<String, String>) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let paths: Vec<String> = if args.all {
        vec![SESSIONS.to_owned()]
    } else {
        args.ids
            .iter()
            .map(|id| format!("{SESSIONS}/{id}"))
            .collect()
    };
    for path in &paths {
        remote.ask(Method::DELETE, path, None).await?;
    }
    if args.ask.json {
        out.json(&json!({"ended": if args.all { Value::from("all") } else { json!(args.ids) }}));
    } else {
        out.line("signed out");
    }
    out.done(ExitCode::SUCCESS)
}
