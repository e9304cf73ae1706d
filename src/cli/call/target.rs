//! The tool of a call: found by its server and name, or by its name on `/mcp`.

use serde_json::Value;

use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::{Remote, segment};
use crate::cli::servers::{items, path_of, text};
use crate::cli::tools;

/// The number of known names listed in an error.
const TOLD: usize = 10;

pub(super) struct CallTarget {
    /// The server's name, for messages.
    pub server: String,
    /// The endpoint that the call goes to, and the tool's name there.
    pub path: String,
    pub name: String,
    pub schema: Value,
}

pub(super) async fn find(remote: &Remote, typed: &str) -> CliResult<CallTarget> {
    if !typed.contains(':') {
        return by_name(remote, typed).await;
    }
    let (server, tool) = tools::split(typed)?;
    of_server(remote, server, tool).await
}

async fn of_server(remote: &Remote, server: &str, tool: &str) -> CliResult<CallTarget> {
    let listed = match remote.get(&format!("{}/tools", path_of(server))).await {
        Ok(listed) => listed,
        // A name that is not a configured server may have tools on `/mcp`.
        Err(refused @ Failure::Refused { .. }) => {
            let tools = tools::all(remote).await?;
            let found = tools
                .iter()
                .find(|known| tools::key(known) == (server, tool));
            return found.map(on_front).ok_or(refused);
        }
        Err(failure) => return Err(failure),
    };
    let listed = items(&listed);
    match listed.iter().find(|known| known["name"] == tool) {
        Some(found) => Ok(CallTarget {
            server: server.to_owned(),
            path: format!("/servers/{}/mcp", segment(server)),
            name: tool.to_owned(),
            schema: found["inputSchema"].clone(),
        }),
        None => Err(missing(remote, server, tool, listed).await?),
    }
}

/// The tool as every client of `/mcp` sees it.
fn on_front(tool: &Value) -> CallTarget {
    CallTarget {
        server: tools::key(tool).0.to_owned(),
        path: "/mcp".to_owned(),
        name: text(tool, "name").to_owned(),
        schema: tool["inputSchema"].clone(),
    }
}

/// The tool with a name as on `/mcp`: `mcp_<server>_<tool>`.
async fn by_name(remote: &Remote, typed: &str) -> CliResult<CallTarget> {
    let tools = tools::all(remote).await?;
    if let Some(found) = tools.iter().find(|tool| tool["name"] == typed) {
        return Ok(on_front(found));
    }
    let alike: Vec<String> = tools
        .iter()
        .map(tools::key)
        .filter(|(_, own)| *own == typed)
        .map(|(server, own)| format!("{server}:{own}"))
        .take(TOLD)
        .collect();
    if alike.is_empty() {
        let message = format!("no tool is called {typed:?}: see `portway tools`");
        return Err(Failure::other(message));
    }
    let alike = alike.join(", ");
    Err(Failure::usage(format!("say whose tool it is: {alike}")))
}

/// The error for a tool that a server does not have.
async fn missing(
    remote: &Remote,
    server: &str,
    tool: &str,
    listed: &[Value],
) -> CliResult<Failure> {
    let record = remote.get(&path_of(server)).await?;
    let status = text(&record, "status");
    if status != "connected" {
        let why = match text(&record, "error") {
            "" => String::new(),
            error => format!(": {error}"),
        };
        return Ok(Failure::other(format!(
            "the server {server:?} is not connected, its status is {status}{why}"
        )));
    }
    let low = tool.to_lowercase();
    let near = listed.iter().map(|known| text(known, "name"));
    let near: Vec<&str> = near
        .filter(|name| {
            let name = name.to_lowercase();
            name.contains(&low) || low.contains(&name)
        })
        .take(TOLD)
        .collect();
    let hint = match near[..] {
        [] => format!("see `portway tools --server {server}`"),
        _ => format!("did you mean {}?", near.join(", ")),
    };
    Ok(Failure::other(format!(
        "{server:?} has no tool called {tool:?}: {hint}"
    )))
}
