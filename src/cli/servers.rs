//! `portway ls`, `add`, `rm`, `start`, `stop`, `restart`.

mod act;
mod add;
mod ls;

use serde_json::Value;

use super::failure::CliResult;
use super::remote::{Remote, segment};
use super::terminal::{Terminal, Tint, in_one_line};
use lab::counted;

pub(super) use act::{ActArgs, RemoveServerArgs, act, rm};
pub(super) use add::{AddArgs, add, bare_command, header};
pub(super) use ls::{LsArgs, ls};

/// The API path of a server.
pub(super) fn path_of(name: &str) -> String {
    format!("/api/mcp/servers/{}", segment(name))
}

/// All servers, as the API lists them.
pub(super) async fn list(remote: &Remote) -> CliResult<Vec<Value>> {
    match remote.get("/api/mcp/servers").await? {
        Value::Array(servers) => Ok(servers),
        _ => Err(remote.stranger()),
    }
}

/// A member that is text; empty where there is none.
pub(super) fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record[member].as_str().unwrap_or_default()
}

/// A text as the name of a server: letters, digits and dashes.
pub(super) fn plain_name(text: &str, default: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = text.chars().map(plain).collect();
    match name.trim_matches('-') {
        "" => default.to_owned(),
        name => name.to_owned(),
    }
}

/// A list; empty where there is none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The status of a server that has the wanted status, for a terminal.
fn painted(record: &Value, out: &Terminal) -> String {
    let tint = Tint::of_status(text(record, "status"));
    out.paint(tint, &in_one_line(&told(record)))
}

/// The status of a server in one line; with the error, if there is one.
fn told(record: &Value) -> String {
    let status = text(record, "status");
    match text(record, "error") {
        "" if status == "connected" => {
            let tools = record["toolCount"].as_u64().unwrap_or(0);
            format!("{status}, {}", counted(tools as usize, "tool"))
        }
        "" => status.to_owned(),
        error => format!("{status}: {error}"),
    }
}
