//! Which tool of which server is meant.

use serde_json::Value;

use crate::cli::failure::Failure;
use crate::cli::remote::Remote;
use crate::cli::servers::{path_of, text};
use crate::cli::tools;

/// Names told to somebody who looks for one.
const TOLD: usize = 10;

pub struct Target {
    pub server: String,
    pub tool: String,
    pub schema: Value,
}

pub async fn find(remote: &Remote, typed: &str) -> Result<Target, Failure> {
    let (server, tool) = match typed.split_once(':') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
            (server.to_owned(), tool.to_owned())
        }
        Some(_) => return Err(Failure::usage(format!("`{typed}` is not server:tool"))),
        None => by_name(remote, typed).await?,
    };
    let listed = remote.get(&format!("{}/tools", path_of(&server))).await?;
    let mut listed = match listed {
        Value::Array(tools) => tools,
        _ => Vec::new(),
    };
    match listed.iter_mut().find(|known| known["name"] == tool) {
        Some(found) => Ok(Target {
            schema: found["inputSchema"].take(),
            server,
            tool,
        }),
        None => Err(missing(remote, &server, &tool, &listed).await?),
    }
}

/// Of a name as `/mcp` has it, `mcp_<server>_<tool>`.
async fn by_name(remote: &Remote, typed: &str) -> Result<(String, String), Failure> {
    let tools = tools::all(remote).await?;
    let both = |tool| {
        let (server, own) = tools::key(tool);
        (server.to_owned(), own.to_owned())
    };
    if let Some(found) = tools.iter().find(|tool| tool["name"] == typed) {
        return Ok(both(found));
    }
    let alike: Vec<String> = tools
        .iter()
        .map(tools::key)
        .filter(|(_, own)| *own == typed)
        .map(|(server, own)| format!("{server}:{own}"))
        .take(TOLD)
        .collect();
    match alike.is_empty() {
        true => Err(Failure::other(format!(
            "no tool is called {typed:?}: see `portway tools`"
        ))),
        false => Err(Failure::usage(format!(
            "say whose tool it is: {}",
            alike.join(", ")
        ))),
    }
}

/// Why a server does not have a tool.
async fn missing(
    remote: &Remote,
    server: &str,
    tool: &str,
    listed: &[Value],
) -> Result<Failure, Failure> {
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
    let hint = match near.is_empty() {
        true => format!("see `portway tools --server {server}`"),
        false => format!("did you mean {}?", near.join(", ")),
    };
    Ok(Failure::other(format!(
        "{server:?} has no tool called {tool:?}: {hint}"
    )))
}
