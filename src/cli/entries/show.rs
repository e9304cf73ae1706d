use futures_util::StreamExt;
use serde_json::{Value, json};

use super::OneArgs;
use super::find::{self, ENTRIES};
use crate::cli::Environment;
use crate::cli::failure::{CliResult, CommandResult, Failure};
use crate::cli::remote::{AskArgs, ENTRY_KEY, Remote};
use crate::cli::servers::{items, plain_name, text};
use crate::cli::terminal::{Cell, Table, Terminal, Tint, in_one_line, note};

/// Entries requested in parallel.
const TOGETHER: usize = 8;

pub(super) async fn ls(args: &AskArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.open(environment)?;
    let entries = find::all(&remote, ENTRIES).await?;
    if args.json {
        let total = entries.len();
        out.json(&json!({"items": entries, "total": total}));
    } else if entries.is_empty() {
        note("no entries yet: make one with `portway entries create NAME --tool server:tool`");
    } else {
        let heads = [
            "ID", "NAME", "STATUS", "TOOLS", "KEY", "LAST USED", "EXPIRES",
        ];
        let mut table = Table::new(heads);
        let mut counts = futures_util::stream::iter(&entries)
            .map(async |entry| (entry, tools(&remote, entry).await))
            .buffered(TOGETHER);
        while let Some((entry, tools)) = counts.next().await {
            let key = &entry["key"];
            table.row([
                text(entry, "mcp_instance_id").into(),
                text(entry, "name").into(),
                status(&entry["status"]),
                tools?.into(),
                hint(key).into(),
                text(key, "last_used_at").into(),
                text(key, "expires_at").into(),
            ]);
        }
        table.print(&mut out);
    }
    out.done(true)
}

/// The number of tools; empty if the entry has just been removed.
async fn tools(remote: &Remote, entry: &Value) -> CliResult<String> {
    let path = format!("{}/tools?include_disabled=true", find::path(entry));
    match remote.get(&path).await {
        Ok(bound) => Ok(items(&bound["items"]).len().to_string()),
        Err(Failure::Refused { .. }) => Ok(String::new()),
        Err(failure) => Err(failure),
    }
}

/// The end of a key, which is the only stored part of it.
fn hint(key: &Value) -> String {
    format!("…{}", text(key, "hint"))
}

fn status(value: &Value) -> Cell {
    match value.as_bool() {
        Some(true) => Cell::new("enabled", Tint::Good),
        _ => Cell::new("disabled", Tint::Faint),
    }
}

pub(super) async fn one(args: &OneArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let mut entry = find::entry(&remote, &args.entry).await?;
    let path = format!("{}/tools?include_disabled=true", find::path(&entry));
    let bound = remote.get(&path).await?["items"].take();
    if args.ask.json {
        let bound = items(&bound).iter();
        let bound = bound.filter(|tool| !tool["tool_id"].is_null());
        entry["bindings"] = bound.cloned().collect();
        out.json(&entry);
        return out.done(true);
    }
    let key = &entry["key"];
    let on = entry["status"] == true;
    let patterns = |member: &str| {
        let patterns = items(&entry["filter"][member]).iter();
        patterns
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (label, value) in [
        ("id", text(&entry, "mcp_instance_id")),
        ("name", text(&entry, "name")),
        ("status", if on { "enabled" } else { "disabled" }),
        ("key", &hint(key)),
        ("made", text(&entry, "created_at")),
        ("expires", text(key, "expires_at")),
        ("last used", text(key, "last_used_at")),
        ("allow", &patterns("allow")),
        ("deny", &patterns("deny")),
    ] {
        out.field(10, label, &in_one_line(value));
    }
    let bound = items(&bound);
    if bound.is_empty() {
        note("it has no tools: give it some with `portway entries bind ENTRY SERVER:TOOL`");
        return out.done(true);
    }
    out.line("");
    let mut table = Table::new(["NAME", "STATUS", "TOOL"]);
    for tool in bound {
        let key = format!("{}:{}", text(tool, "server"), text(tool, "tool"));
        table.row([
            text(tool, "name").into(),
            status(&tool["status"]),
            key.into(),
        ]);
    }
    table.print(&mut out);
    out.done(true)
}

/// Prints a new key: it cannot be shown again.
pub(super) fn given(answer: &Value, remote: &Remote, out: &mut Terminal) {
    let (key, base) = (text(answer, "api_key"), remote.url());
    if key.is_empty() {
        return;
    }
    let name = plain_name(text(answer, "name"), "portway");
    let settings = json!({"mcpServers": {&name: {
        "type": "http",
        "url": format!("{base}/mcp"),
        "headers": {"Authorization": format!("Bearer {key}")},
    }}});
    out.line("Its key is shown this once; only a digest of it is kept.\n");
    let url = format!("{base}{}", text(answer, "url"));
    out.field(13, "key", &in_one_line(key));
    out.field(13, "url", &in_one_line(&url));
    out.line("");
    let claude = format!(
        "claude mcp add --transport http {name} {base}/mcp --header \"Authorization: Bearer {key}\""
    );
    // Clients start it in any directory, and other users can read arguments.
    let command = format!("{ENTRY_KEY}={key} portway connect --url {base}");
    for (label, value) in [
        ("Claude Code", claude),
        ("a JSON file", settings.to_string()),
        ("a command", command),
    ] {
        out.field(13, label, &in_one_line(&value));
    }
}
