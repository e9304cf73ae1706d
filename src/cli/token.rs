//! `portway token` and `portway sessions`: access to Portway itself.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::json;

use super::Environment;
use super::failure::CommandResult;
use super::remote::AskArgs;
use super::servers::{items, text};
use super::terminal::{Cell, Table, confirm, is_attended, note};

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

pub(super) async fn token(args: &TokenArgs, environment: &Environment) -> CommandResult {
    let TokenCommand::Rotate(args) = &args.command;
    let (remote, mut out) = args.ask.open(environment)?;
    let question = "Make a new admin token? The old one and all console sessions end.";
    // A script that rotates tokens is not asked for confirmation.
    if is_attended() && !confirm(question, args.yes)? {
        return out.done(false);
    }
    let answer = remote.ask(Method::POST, "/api/token/rotate", None).await?;
    if args.ask.json {
        out.json(&answer);
    } else {
        out.line(text(&answer, "token"));
        note("this is the new admin token; it is kept in the data directory");
    }
    out.done(true)
}

pub(super) async fn sessions(args: &SessionsArgs, environment: &Environment) -> CommandResult {
    match &args.command {
        SessionsCommand::Ls(ask) => list(ask, environment).await,
        SessionsCommand::End(args) => end(args, environment).await,
    }
}

async fn list(ask: &AskArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = ask.open(environment)?;
    let sessions = remote.get(SESSIONS).await?;
    if ask.json {
        out.json(&sessions);
        return out.done(true);
    }
    let mut table = Table::new(["id", "signed in", "last used", "ends", "browser"]);
    for session in items(&sessions) {
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
    out.done(true)
}

async fn end(args: &EndArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    if args.all {
        remote.ask(Method::DELETE, SESSIONS, None).await?;
    }
    for id in &args.ids {
        let path = format!("{SESSIONS}/{id}");
        remote.ask(Method::DELETE, &path, None).await?;
    }
    let ended = if args.all {
        json!("all")
    } else {
        json!(args.ids)
    };
    out.answer(args.ask.json, &json!({ "ended": ended }), "signed out");
    out.done(true)
}
