//! `portway logs`.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::remote::{AskArgs, Remote};
use super::servers::{path_of, text};
use super::terminal::{Terminal, Tint, note, safe};
use super::when;
use store::Timestamp;

/// The number of lines that Portway keeps of a server.
const ALL: u64 = 1000;
const PAUSE: Duration = Duration::from_millis(300);
/// The pause between two attempts to reach a gateway that has gone.
const LONG_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Name of the server
    name: String,
    /// Keep printing new lines until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Number of lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: u64,
    /// Only lines since: a duration such as 5m, or a time such as
    /// 2026-11-15T10:11:12Z
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<Timestamp>,
    #[command(flatten)]
    ask: AskArgs,
}

pub(super) async fn main(args: &LogsArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let lines = recent(args, &remote).await?;
    if args.ask.json && !args.follow {
        out.json(&Value::Array(lines));
        return out.done(true);
    }
    for line in &lines {
        tell(line, args.ask.json, &mut out);
    }
    if !args.follow {
        return out.done(true);
    }
    let last = match lines.last() {
        Some(line) => Some(LastLine::of(line)),
        // No line was shown, so the existing ones are not new.
        None => read(&remote, args, 0, 1).await?.last().map(LastLine::of),
    };
    follow(args, environment, remote, last, &mut out).await?;
    out.done(true)
}

async fn recent(args: &LogsArgs, remote: &Remote) -> CliResult<Vec<Value>> {
    let limit = match args.since {
        Some(_) => ALL,
        None => args.lines,
    };
    let mut lines = read(remote, args, 0, limit).await?;
    if let Some(since) = args.since {
        lines.retain(|line| line["at"].as_u64() >= Some(since.as_millis()));
    }
    let extra = lines.len().saturating_sub(args.lines as usize);
    Ok(lines.split_off(extra))
}

async fn read(remote: &Remote, args: &LogsArgs, from: u64, limit: u64) -> CliResult<Vec<Value>> {
    let path = format!("{}/logs?from={from}&limit={limit}", path_of(&args.name));
    match remote.get(&path).await? {
        Value::Array(lines) => Ok(lines),
        _ => Ok(Vec::new()),
    }
}

/// The last line that was shown; the next lines come after it.
#[derive(Clone, Copy, Default)]
struct LastLine {
    seq: u64,
    at: u64,
}

impl LastLine {
    fn of(line: &Value) -> LastLine {
        LastLine {
            seq: line["seq"].as_u64().unwrap_or(0),
            at: line["at"].as_u64().unwrap_or(0),
        }
    }
}

async fn follow(
    args: &LogsArgs,
    environment: &Environment,
    mut remote: Remote,
    mut last: Option<LastLine>,
    out: &mut Terminal,
) -> CliResult<()> {
    let mut lost = false;
    while out.is_read() {
        match fresh(args, &remote, last).await {
            Ok(lines) => {
                if std::mem::take(&mut lost) {
                    note("Portway is back");
                }
                for line in &lines {
                    tell(line, args.ask.json, out);
                }
                last = lines.last().map(LastLine::of).or(last);
                tokio::time::sleep(PAUSE).await;
            }
            // A gateway that is shutting down still answers, but with errors.
            Err(Failure::Unreachable { .. } | Failure::NotHere { .. }) => {
                if !std::mem::replace(&mut lost, true) {
                    note("Portway has gone; waiting for it to come back");
                }
                tokio::time::sleep(LONG_PAUSE).await;
                remote = again(args, environment, remote)?;
            }
            Err(Failure::Refused { status, .. }) if status.is_server_error() => {
                tokio::time::sleep(LONG_PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// A restarted gateway may have another address, which it publishes itself.
fn again(args: &LogsArgs, environment: &Environment, known: Remote) -> CliResult<Remote> {
    let found = Remote::new(&args.ask.remote, environment)?;
    // Otherwise the program at the default port is another gateway.
    let same = found.is_at_home() || !known.is_at_home();
    Ok(if same { found } else { known })
}

/// The lines after `last`. Requests that line too: if it is missing, the
/// gateway has restarted and counts from 0 again.
async fn fresh(args: &LogsArgs, remote: &Remote, last: Option<LastLine>) -> CliResult<Vec<Value>> {
    let Some(last) = last else {
        return read(remote, args, 0, ALL).await;
    };
    let mut lines = read(remote, args, last.seq, ALL).await?;
    let first = lines.first().map(LastLine::of);
    match first {
        Some(first) if first.seq == last.seq && first.at == last.at => {
            lines.remove(0);
        }
        Some(first) if first.seq > last.seq => {
            let missed = first.seq - last.seq - 1;
            if missed > 0 {
                note(&format!("{missed} lines came too fast to be kept"));
            }
        }
        _ => {
            lines = read(remote, args, 0, ALL).await?;
            lines.retain(|line| LastLine::of(line).at > last.at);
        }
    }
    Ok(lines)
}

fn tell(line: &Value, json: bool, out: &mut Terminal) {
    if json {
        return out.json_line(&line.to_string());
    }
    let stream = text(line, "stream");
    let when = out.paint(Tint::Faint, &when::moment(&line["at"]));
    let from = match stream {
        "portway" => out.paint(Tint::Busy, &format!("{stream:8}")),
        "protocol" => out.paint(Tint::Bad, &format!("{stream:8}")),
        _ => safe(&format!("{stream:8}")),
    };
    // Indented, so that no line of the text looks like another log line.
    let said = safe(text(line, "text")).replace('\n', "\n    ");
    out.line(&format!("{when} {from} {said}"));
}
