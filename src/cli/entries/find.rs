//! Finds the entry and the tools that a user names.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::Remote;
use crate::cli::servers::{items, path_of, text};
use crate::cli::tools;
use store::KEY_PREFIX;

pub(super) const ENTRIES: &str = "/api/v1/mcp_v2";
const TOOLS: &str = "/api/v1/tools";
/// Records per request, and the maximum number of requests.
const PAGE: usize = 1000;
const PAGES: usize = 1000;

/// All records of a paged list.
pub(super) async fn all(remote: &Remote, path: &str) -> CliResult<Vec<Value>> {
    let mut all = Vec::new();
    for _ in 0..PAGES {
        let skip = all.len();
        let asked = format!("{path}?skip={skip}&limit={PAGE}");
        let mut page = remote.get(&asked).await?;
        let Value::Array(items) = page["items"].take() else {
            break;
        };
        let count = items.len();
        all.extend(items);
        if count < PAGE {
            break;
        }
    }
    Ok(all)
}

/// An entry by its id or its name.
pub(super) async fn entry(remote: &Remote, typed: &str) -> CliResult<Value> {
    if typed.starts_with(KEY_PREFIX) {
        return Err(Failure::usage(
            "name the entry by its name or id, not by its key: see `portway entries ls`",
        ));
    }
    let entries = all(remote, ENTRIES).await?;
    let id = |entry: &&Value| text(entry, "mcp_instance_id") == typed;
    let by_id = entries.iter().find(id);
    let named = entries.iter().filter(|entry| text(entry, "name") == typed);
    let named: Vec<&Value> = named.collect();
    match (by_id, &named[..]) {
        (Some(entry), _) | (None, &[entry]) => Ok(entry.clone()),
        (None, []) => Err(Failure::other(format!(
            "there is no entry {typed:?}: see `portway entries ls`"
        ))),
        (None, several) => {
            let ids = several.iter().map(|one| text(one, "mcp_instance_id"));
            let ids = ids.collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!(
                "several entries are called {typed:?}; name one by its id: {ids}"
            )))
        }
    }
}

/// The API path of an entry.
pub(super) fn path(entry: &Value) -> String {
    format!("{ENTRIES}/{}", text(entry, "mcp_instance_id"))
}

/// The bindings for tools given as `server:tool`; missing tool records are
/// created.
pub(super) async fn bindings(
    remote: &Remote,
    owner: &str,
    tools: &[String],
    names: &[String],
    allow_missing: bool,
) -> CliResult<Vec<Value>> {
    if !names.is_empty() && names.len() != tools.len() {
        return Err(Failure::usage(format!(
            "--as: give one name for each tool, in their order: {} tools, {} names",
            tools.len(),
            names.len()
        )));
    }
    let mut keys = Vec::new();
    for typed in tools {
        match tools::split(typed)? {
            (_, "*") if !names.is_empty() => {
                let message = format!("--as: `{typed}` is more than one tool");
                return Err(Failure::usage(message));
            }
            (server, "*") => {
                let all = of_server(remote, server).await?;
                keys.extend(all.into_iter().map(|tool| (server, tool)));
            }
            (server, tool) => keys.push((server, tool.to_owned())),
        }
    }
    let mut seen = HashSet::new();
    if names.is_empty() {
        keys.retain(|key| seen.insert(key.clone()));
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let known = all(remote, TOOLS).await?;
    let mut bindings = Vec::new();
    for (at, (server, tool)) in keys.into_iter().enumerate() {
        let name = names.get(at).unwrap_or(&tool);
        let same = |record: &&Value| {
            let is = |member: &str, wanted: &str| text(record, member) == wanted;
            is("server", server) && is("tool", &tool) && is("name", name) && is("user_id", owner)
        };
        let id = match known.iter().find(same) {
            Some(record) => record["id"].clone(),
            None => {
                let mut new = json!({"name": name, "server": server, "tool": tool});
                if allow_missing {
                    new["allow_missing"] = json!(true);
                }
                remote.post(TOOLS, &new).await?["id"].take()
            }
        };
        bindings.push(json!({"tool_id": id, "status": true}));
    }
    Ok(bindings)
}

/// The tools of a server, or of a name that is no configured server.
async fn of_server(remote: &Remote, server: &str) -> CliResult<Vec<String>> {
    let listed = remote.get(&format!("{}/tools", path_of(server))).await;
    let (names, none): (Vec<String>, Failure) = match listed {
        Ok(listed) => {
            let names = items(&listed)
                .iter()
                .map(|tool| text(tool, "name").to_owned());
            let none = format!("{server:?} has no tools at the moment: see `portway ls {server}`");
            (names.collect(), Failure::other(none))
        }
        Err(refused @ Failure::Refused { .. }) => {
            let all = tools::all(remote).await?;
            let here = all.iter().map(tools::key).filter(|(of, _)| *of == server);
            (here.map(|(_, tool)| tool.to_owned()).collect(), refused)
        }
        Err(failure) => return Err(failure),
    };
    if names.is_empty() {
        Err(none)
    } else {
        Ok(names)
    }
}

/// The tools of an entry, named as `server:tool` or by the entry's own name.
pub(super) async fn bound(
    remote: &Remote,
    entry: &Value,
    typed: &[String],
) -> CliResult<Vec<Value>> {
    let path = format!("{}/bindings", path(entry));
    let mut answer = remote.get(&path).await?;
    let Value::Array(all) = answer["items"].take() else {
        return Ok(Vec::new());
    };
    let mut meant = Vec::new();
    for typed in typed {
        let fits = |bound: &&Value| {
            let key = format!("{}:{}", text(bound, "server"), text(bound, "tool"));
            key == *typed || text(bound, "name") == typed
        };
        let before = meant.len();
        meant.extend(all.iter().filter(fits).cloned());
        if meant.len() == before {
            return Err(Failure::other(format!(
                "the entry has no tool {typed:?}: see `portway entries show {}`",
                text(entry, "mcp_instance_id")
            )));
        }
    }
    Ok(meant)
}
