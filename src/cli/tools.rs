//! `portway tools`.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::Value;

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::remote::{AskArgs, Remote};
use super::servers::{items, path_of, text};
use super::terminal::{Table, note};

/// The format in which MCP lists tools.
const MCP: &str = "mcp";
const SERVER: &str = "portway/server";
const TOOL: &str = "portway/tool";

#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// Only tools whose name, title or description has all these words
    #[arg(long, value_name = "WORDS", num_args = 1..)]
    search: Vec<String>,
    /// Only tools of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Print the list of tools as a vendor's API takes it
    #[arg(long, value_parser = [MCP, "openai", "anthropic", "copilot"])]
    format: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

pub(super) async fn main(args: &ToolsArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let mut answer = listed(&remote, MCP).await?;
    retain(&mut answer, |tool| args.wants(tool));
    let wanted: BTreeSet<String> = each(&answer).map(|tool| name(tool).to_owned()).collect();
    if let Some(server) = &args.server
        && wanted.is_empty()
    {
        // An unknown server name is an error, unlike a server without
        // tools.
        remote.get(&path_of(server)).await?;
    }
    if let Some(format) = args.format.as_deref().filter(|format| *format != MCP) {
        answer = listed(&remote, format).await?;
        retain(&mut answer, |tool| wanted.contains(name(tool)));
    }
    match (args.ask.json, &args.format) {
        (true, _) => out.json(&answer),
        (false, Some(_)) => out.json(&answer["tools"]),
        (false, None) if wanted.is_empty() => note("no tools"),
        (false, None) => table(&answer).print(&mut out),
    }
    out.done(true)
}

impl ToolsArgs {
    fn wants(&self, tool: &Value) -> bool {
        let other = |name: &str| tool["_meta"][SERVER] != name;
        if self.server.as_deref().is_some_and(other) {
            return false;
        }
        let (server, own) = key(tool);
        let key = format!("{server}:{own}");
        let hay = [
            name(tool),
            &key,
            text(tool, "title"),
            text(tool, "description"),
        ];
        let hay = hay.join("\n").to_lowercase();
        let mut words = self
            .search
            .iter()
            .flat_map(|words| words.split_whitespace());
        words.all(|word| hay.contains(&word.to_lowercase()))
    }
}

async fn listed(remote: &Remote, format: &str) -> CliResult<Value> {
    remote.get(&format!("/api/mcp/tools?format={format}")).await
}

/// The tools of all servers, as the API lists them: under the names for models,
/// each with its server and its own name.
pub(super) async fn all(remote: &Remote) -> CliResult<Vec<Value>> {
    Ok(items(&listed(remote, MCP).await?["tools"]).to_vec())
}

/// The server and the tool in `server:tool`.
pub(super) fn split(typed: &str) -> CliResult<(&str, &str)> {
    match typed.split_once(':') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => Ok((server, tool)),
        _ => Err(Failure::usage(format!("`{typed}` is not server:tool"))),
    }
}

/// The server of a listed tool, and the tool's name there.
pub(super) fn key(tool: &Value) -> (&str, &str) {
    (text(&tool["_meta"], SERVER), text(&tool["_meta"], TOOL))
}

fn each(answer: &Value) -> impl Iterator<Item = &Value> {
    items(&answer["tools"]).iter()
}

fn retain(answer: &mut Value, wanted: impl Fn(&Value) -> bool) {
    if let Some(tools) = answer["tools"].as_array_mut() {
        tools.retain(wanted);
    }
}

/// The name of a tool in any format.
fn name(tool: &Value) -> &str {
    match tool["name"].as_str() {
        Some(name) => name,
        None => text(&tool["function"], "name"),
    }
}

fn table(answer: &Value) -> Table<2> {
    let mut table = Table::new(["TOOL", "DESCRIPTION"]);
    for tool in each(answer) {
        let (server, own) = key(tool);
        let said = match text(tool, "description") {
            "" => text(tool, "title"),
            description => description,
        };
        let key = match server {
            "" => name(tool).to_owned(),
            server => format!("{server}:{own}"),
        };
        table.row([key.into(), said.into()]);
    }
    table
}
