//! `portway call`: calls one tool as any MCP client does.

mod arguments;
mod exchange;
mod form;
mod progress;
mod shown;
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::remote::{AskArgs, Remote, RemoteArgs};
use super::terminal::{Terminal, is_attended, note};
use config::settings::duration;
use exchange::{CallInput, Exchange};
use progress::ProgressLine;

/// The maximum number of times that one call may return input requests.
const ROUNDS: usize = 10;
/// The pause before a retry when the server requested a retry but no input.
const PAUSE: Duration = Duration::from_millis(250);
/// The exit code that shells use after an interrupt.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool: server:tool, or its name on /mcp
    #[arg(value_name = "SERVER:TOOL")]
    tool: String,
    /// Its arguments: a JSON object, @FILE, - for stdin, or NAME=VALUE each
    #[arg(value_name = "ARGUMENTS")]
    arguments: Vec<String>,
    /// Write images, audio and resources into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Time limit, such as 10s; each question to you restarts it
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Show the server's log messages during the call; twice for all levels
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    #[command(flatten)]
    ask: AskArgs,
}

impl CallArgs {
    /// A call in the project in `directory`.
    pub(super) fn of(tool: &str, arguments: [&str; 2], directory: &Path) -> CallArgs {
        let remote = RemoteArgs {
            project: Some(directory.to_owned()),
            ..RemoteArgs::default()
        };
        CallArgs {
            tool: tool.to_owned(),
            arguments: arguments.map(str::to_owned).to_vec(),
            output: None,
            timeout: None,
            verbose: 0,
            ask: AskArgs {
                json: false,
                remote,
            },
        }
    }
}

pub(super) async fn main(args: &CallArgs, environment: &Environment) -> CommandResult {
    // Exiting closes the connection, which cancels the call.
    tokio::select! {
        outcome = call(args, environment) => outcome,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(Failure::other)?;
            progress::wipe();
            note("cancelled");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

async fn call(args: &CallArgs, environment: &Environment) -> CommandResult {
    let typed = arguments::read(&args.arguments)?;
    let remote = Remote::new(&args.ask.remote, environment)?;
    let target = target::find(&remote, &args.tool).await?;
    let given = typed.for_schema(&target.schema)?;
    let mut exchange = Exchange {
        remote: &remote,
        target: &target,
        arguments: &given,
        limit: args.timeout,
        verbose: args.verbose,
        progress: ProgressLine::new(),
        sent: 0,
    };
    let result = finished(&mut exchange).await?;
    let mut out = Terminal::new(environment);
    let failed = shown::is_error(&result);
    if args.ask.json {
        out.json_line(wire::compact(&result).get());
        shown::save(&result, args.output.as_deref())?;
    } else {
        shown::print(&result, args.output.as_deref(), &mut out)?;
    }
    out.done(!failed)
}

/// The final result, after all input requests of the server are answered.
async fn finished(exchange: &mut Exchange<'_>) -> CliResult<Box<RawValue>> {
    let mut answers = CallInput::default();
    for _ in 0..ROUNDS {
        let result = exchange.round(&answers).await?;
        let Some(asked) = exchange::asked(&result)? else {
            return Ok(result);
        };
        if asked.members.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        answers = CallInput {
            members: answer(&exchange.target.server, asked.members).await?,
            state: asked.state,
        };
    }
    Err(Failure::other(format!(
        "the server asks on and on: no result after {ROUNDS} rounds"
    )))
}

/// The requests, each replaced by its answer.
async fn answer(server: &str, mut requests: Map<String, Value>) -> CliResult<Map<String, Value>> {
    for request in requests.values_mut() {
        let method = request["method"].as_str().unwrap_or_default();
        if method != "elicitation/create" {
            return Err(Failure::other(format!(
                "the server asks for {method}, which a command line cannot give"
            )));
        }
        let params = &request["params"];
        *request = if is_attended() {
            form::ask(server, params).await?
        } else {
            form::declined(server, params)
        };
    }
    Ok(requests)
}
