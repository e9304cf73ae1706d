use clap::Args;
use serde_json::Value;

use super::{items, list, path_of, text};
use crate::cli::Environment;
use crate::cli::failure::CommandResult;
use crate::cli::remote::AskArgs;
use crate::cli::terminal::{Cell, Table, Terminal, Tint, note, safe};
use crate::cli::when;

#[derive(Debug, Args)]
pub struct LsArgs {
    /// Only this server, in full detail
    name: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) async fn ls(args: &LsArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    if let Some(name) = &args.name {
        let record = remote.get(&path_of(name)).await?;
        if args.ask.json {
            out.json(&record);
        } else {
            details(&record, &mut out);
        }
        return out.done(true);
    }
    let servers = list(&remote).await?;
    if args.ask.json {
        out.json(&Value::Array(servers));
    } else if servers.is_empty() {
        note("no servers yet: add one with `portway add NAME -- COMMAND`");
    } else {
        table(&servers).print(&mut out);
    }
    out.done(true)
}

fn table(servers: &[Value]) -> Table<7> {
    let mut table = Table::new([
        "NAME", "STATUS", "ERA", "TRANSPORT", "TOOLS", "SINCE", "ERROR",
    ]);
    for server in servers {
        let status = text(server, "status");
        let tools = match status {
            "connected" => server["toolCount"].to_string(),
            _ => String::new(),
        };
        table.row([
            text(server, "name").into(),
            Cell::new(status, Tint::of_status(status)),
            text(server, "era").into(),
            text(server, "transport").into(),
            tools.into(),
            when::ago(&server["since"]).into(),
            Cell::with_end(without_path(&why(server))),
        ]);
    }
    table
}

/// The search path of a program is long; only `ls NAME` shows it.
fn without_path(error: &str) -> &str {
    match error
        .strip_suffix(')')
        .and_then(|error| error.rsplit_once(" ("))
    {
        Some((start, _)) if start.ends_with(" in PATH") => start,
        _ => error,
    }
}

/// The problem of a server, if it has one.
fn why(server: &Value) -> String {
    if let Some(error) = server["error"].as_str() {
        return error.to_owned();
    }
    let problems = items(&server["problems"]).iter();
    let told = problems.map(|problem| match text(problem, "field") {
        "" => text(problem, "message").to_owned(),
        field => format!("{field}: {}", text(problem, "message")),
    });
    told.collect::<Vec<_>>().join("\n")
}

fn details(record: &Value, out: &mut Terminal) {
    let status = text(record, "status");
    let since = format!(
        "{} ({} ago)",
        when::moment(&record["since"]),
        when::ago(&record["since"])
    );
    let era = match text(record, "protocolVersion") {
        "" => String::new(),
        version => format!("{} ({version})", text(record, "era")),
    };
    let info = &record["serverInfo"];
    let is = format!("{} {}", text(info, "name"), text(info, "version"));
    let number = |member: &str| record[member].as_u64().map(|number| number.to_string());
    let number = |member: &str| number(member).unwrap_or_default();
    let rows = [
        ("name", text(record, "name").to_owned()),
        ("id", text(record, "id").to_owned()),
        ("status", out.paint(Tint::of_status(status), status)),
        ("since", since),
        ("error", safe(&why(record))),
        ("transport", text(record, "transport").to_owned()),
        ("era", safe(&era)),
        ("server", safe(is.trim())),
        ("tools", number("toolCount")),
        ("pid", number("pid")),
        ("containment", text(record, "containment").to_owned()),
        ("restarts", number("restarts")),
        ("source", safe(text(record, "source"))),
        ("instructions", safe(text(record, "instructions"))),
    ];
    for (label, value) in rows {
        out.field(13, label, &value);
    }
    if record["config"].is_object() {
        out.field(13, "config", &safe(&format!("{:#}", record["config"])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_the_list_names_a_missing_program_without_the_whole_path() {
        let error = "cannot start: no program \"npx\" in PATH (/bin:/usr/bin)";
        assert_eq!(
            without_path(error),
            "cannot start: no program \"npx\" in PATH"
        );
        assert_eq!(
            without_path("it ended (exit code 7)"),
            "it ended (exit code 7)"
        );
    }
}
