//! `portway entries`.

mod change;
mod find;
mod show;

use clap::{Args, Subcommand};

use super::Environment;
use super::failure::CommandResult;
use super::remote::AskArgs;
use super::when;
use store::Timestamp;

#[derive(Debug, Args)]
pub struct EntriesArgs {
    #[command(subcommand)]
    command: EntriesCommand,
}

#[derive(Debug, Subcommand)]
enum EntriesCommand {
    /// List the entries
    Ls(AskArgs),
    /// Create an entry and print its key, once
    Create(CreateArgs),
    /// Show one entry and its tools
    Show(OneArgs),
    /// Change an entry's name or its patterns
    Change(ChangeArgs),
    /// Bind tools to an entry
    Bind(BindArgs),
    /// Remove tools from an entry
    Unbind(UnbindArgs),
    /// Enable an entry, or some of its tools
    Enable(SwitchArgs),
    /// Disable an entry, or some of its tools
    Disable(SwitchArgs),
    /// Replace an entry's key; the old key stops working
    Rotate(RotateKeyArgs),
    /// Remove an entry
    Rm(RemoveEntryArgs),
}

#[derive(Debug, Args)]
struct OneArgs {
    /// Its name or id
    entry: String,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
struct PatternArgs {
    /// Give it all tools whose SERVER:TOOL matches, also later ones: a pattern
    /// with * and ?; may be given more than once
    #[arg(long = "allow", value_name = "PATTERN")]
    allow: Vec<String>,
    /// Never give it tools whose SERVER:TOOL matches, also bound ones
    #[arg(long = "deny", value_name = "PATTERN")]
    deny: Vec<String>,
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Name of the server
    name: String,
    /// A tool to give to it, or all that a server has now (SERVER:*); may be
    /// given more than once
    #[arg(long = "tool", value_name = "SERVER:TOOL")]
    tools: Vec<String>,
    /// What the entry calls the tool [default: as the server does]; one for
    /// each --tool, in their order
    #[arg(long = "as", value_name = "NAME")]
    names: Vec<String>,
    /// Take tools that are not there now
    #[arg(long)]
    allow_missing: bool,
    #[command(flatten)]
    patterns: PatternArgs,
    /// When its key ends: a span such as 30d, or a moment such as
    /// 2026-11-15T10:11:12Z
    #[arg(long, value_name = "WHEN", value_parser = when::future)]
    expires: Option<Timestamp>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
struct ChangeArgs {
    /// Name of the server
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    patterns: PatternArgs,
    /// Take its patterns away
    #[arg(long, conflicts_with_all = ["allow", "deny"])]
    no_filter: bool,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(Debug, Args)]
struct BindArgs {
    /// Its name or id
    entry: String,
    /// The tools to give to it; SERVER:* for all that a server has now
    #[arg(required = true, value_name = "SERVER:TOOL")]
    tools: Vec<String>,
    /// What the entry calls the tool [default: as the server does]; one for
    /// each tool, in their order
    #[arg(long = "as", value_name = "NAME")]
    names: Vec<String>,
    /// Take tools that are not there now
    #[arg(long)]
    allow_missing: bool,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
struct UnbindArgs {
    /// Its name or id
    entry: String,
    /// Which of its tools: server:tool, or what the entry calls it
    #[arg(required = true, value_name = "TOOL")]
    tools: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
struct SwitchArgs {
    /// Only this tool of it; may be given more than once
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(Debug, Args)]
struct RotateKeyArgs {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// When the new key ends: a span such as 30d, or a moment
    #[arg(long, value_name = "WHEN", value_parser = when::future)]
    expires: Option<Timestamp>,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(Debug, Args)]
struct RemoveEntryArgs {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    one: OneArgs,
}

pub(super) async fn main(args: &EntriesArgs, environment: &Environment) -> CommandResult {
    match &args.command {
        EntriesCommand::Ls(args) => show::ls(args, environment).await,
        EntriesCommand::Show(args) => show::one(args, environment).await,
        EntriesCommand::Create(args) => change::create(args, environment).await,
        EntriesCommand::Change(args) => change::change(args, environment).await,
        EntriesCommand::Bind(args) => change::bind(args, environment).await,
        EntriesCommand::Unbind(args) => change::unbind(args, environment).await,
        EntriesCommand::Enable(args) => change::switch(args, environment, true).await,
        EntriesCommand::Disable(args) => change::switch(args, environment, false).await,
        EntriesCommand::Rotate(args) => change::rotate(args, environment).await,
        EntriesCommand::Rm(args) => change::rm(args, environment).await,
    }
}
