use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use http::Method;
use serde_json::{Value, json};

use super::{items, painted, path_of, text, told};
use crate::cli::Environment;
use crate::cli::failure::{CliResult, CommandResult, Failure};
use crate::cli::remote::{AskArgs, Remote};
use crate::cli::terminal::{Terminal, confirm, in_one_line, note};

/// Portway answers a start or a stop within 30 seconds, whatever the result;
/// this limit also covers the network.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this time a user who waits for a start sees a note.
const SOON: Duration = Duration::from_secs(2);
/// Servers requested in parallel.
const TOGETHER: usize = 8;

#[derive(Debug, Args)]
pub struct ActArgs {
    /// Names of the servers
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub struct RemoveServerArgs {
    /// Names of the servers
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    ask: AskArgs,
}

/// Starts, stops or restarts each server, after which its status should be
/// `wanted`. A failure does not affect the others.
pub(crate) async fn act(
    args: &ActArgs,
    environment: &Environment,
    verb: &str,
    wanted: &str,
) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let mut answers = futures_util::stream::iter(&args.names)
        .map(async |name| {
            let path = format!("{}/{verb}", path_of(name));
            let asked = remote.ask_within(PATIENCE, Method::POST, &path, None);
            (name, asked.await)
        })
        .buffered(TOGETHER);
    let (mut records, mut failed) = (Vec::new(), false);
    let mut slow = pin!(tokio::time::sleep(SOON));
    let mut patient = verb == "stop" || !std::io::stderr().is_terminal();
    loop {
        let answer = tokio::select! {
            answer = answers.next() => answer,
            () = &mut slow, if !patient => {
                patient = true;
                note("being started; Ctrl-C leaves it to itself");
                continue;
            }
        };
        let Some((name, answer)) = answer else { break };
        let record = match answer {
            Ok(record) => record,
            Err(Failure::Refused { code, message, .. }) => {
                failed = true;
                note(&format!("{name}: {message}"));
                records.push(refused(name, &code, &message));
                continue;
            }
            // The others would fail in the same way.
            Err(failure) => return Err(failure),
        };
        let fits = record["status"] == wanted;
        failed |= !fits;
        if !args.ask.json {
            tell(&record, fits, &mut out);
        }
        for warning in items(&record["warnings"]) {
            note(&format!("{name}: {}", warning.as_str().unwrap_or_default()));
        }
        records.push(record);
    }
    if args.ask.json {
        out.json(&Value::Array(records));
    }
    out.done(!failed)
}

fn tell(record: &Value, fits: bool, out: &mut Terminal) {
    let name = in_one_line(text(record, "name"));
    if !fits {
        return note(&format!("{name}: {}", told(record)));
    }
    let status = painted(record, out);
    out.line(&format!("{name}: {status}"));
}

fn refused(name: &str, code: &str, message: &str) -> Value {
    json!({"name": name, "error": {"code": code, "message": message}})
}

pub(crate) async fn rm(args: &RemoveServerArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let (mut gone, mut failed) = (Vec::new(), false);
    for name in &args.names {
        match remove(&remote, name, args.yes).await {
            Ok(true) => {
                if !args.ask.json {
                    out.line(&format!("{}: removed", in_one_line(name)));
                }
                gone.push(json!({"name": name, "removed": true}));
            }
            Ok(false) => failed = true,
            Err(Failure::Refused { code, message, .. }) => {
                failed = true;
                note(&format!("{name}: {message}"));
                gone.push(refused(name, &code, &message));
            }
            Err(failure) => return Err(failure),
        }
    }
    if args.ask.json {
        out.json(&Value::Array(gone));
    }
    out.done(!failed)
}

async fn remove(remote: &Remote, name: &str, yes: bool) -> CliResult<bool> {
    let record = remote.get(&path_of(name)).await?;
    let question = format!(
        "Remove the server {} from {}?",
        text(&record, "name"),
        text(&record, "source")
    );
    if !confirm(&question, yes)? {
        return Ok(false);
    }
    let path = path_of(text(&record, "id"));
    let asked = remote.ask_within(PATIENCE, Method::DELETE, &path, None);
    asked.await.map(|_| true)
}
