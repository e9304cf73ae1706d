//! `portway connect`: Portway as a stdio MCP server, for clients that can only
//! start a command. A bridge, not a gateway: each message of the client is
//! posted unchanged, each response is written unchanged. The bridge follows the
//! gateway through restarts and exits with its client.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::Environment;
use super::failure::{CliResult, CommandResult, DENIED};
use super::remote::RemoteArgs;
use super::terminal::note;
use config::Secret;
use store::Presence;

mod bridge;
mod ending;
mod error;
mod gateway_link;
mod legacy;
mod listen;
mod memory;
mod modern;
mod open_requests;
mod out;
mod own_stream;
mod plan;
mod reply;
mod start;
mod stdin;

use bridge::Bridge;
use gateway_link::GatewayLink;
use plan::ConnectPlan;

/// The time for the last responses after the client has closed stdin.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// Use the entry with this key, with its tools only. Other users of
    /// this machine can read arguments: PORTWAY_ENTRY_KEY is safer
    #[arg(long, value_name = "KEY", value_parser = super::secret, conflicts_with_all = ["server", "filter"])]
    entry: Option<Secret>,
    /// Use only this server, with its own names
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Use this filter of .portway.json
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// Fail if no Portway runs, instead of starting one
    #[arg(long)]
    no_start: bool,
    /// How long a gateway started by this command stays after its last client
    #[arg(long, value_name = "DURATION", value_parser = super::seconds, default_value = "60s")]
    linger: Duration,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) async fn main(args: &ConnectArgs, environment: &Environment) -> CommandResult {
    let stop = ending::stop()?;
    let plan = ConnectPlan::new(args, environment)?;
    if std::io::stdin().is_terminal() {
        let what = "this speaks MCP on stdin and stdout: it is for a client to start";
        note(&format!("{what}; `portway connect --help`"));
    }
    let begin = async {
        let presence = join(&plan).await?;
        Ok((presence, start::find(&plan).await?))
    };
    let (_presence, target) = tokio::select! {
        begun = begin => begun?,
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    let mut lines = stdin::lines(plan.longest_line);
    let out = out::open(stop.clone());
    let bridge = Arc::new(Bridge::new(GatewayLink::new(plan, target), out));
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            line = lines.recv() => line,
        };
        match line {
            Some(line) => bridge.take(line),
            None => {
                let _ = tokio::time::timeout(LAST_ANSWERS, bridge.answered()).await;
                break;
            }
        }
    }
    let denied = bridge.end().await;
    bridge.out.written(LAST_ANSWERS).await;
    Ok(ExitCode::from(if denied { DENIED } else { 0 }))
}

/// Registers this client, so that a gateway which runs only for its clients
/// does not exit. Waits for a gateway that is just exiting.
async fn join(plan: &ConnectPlan) -> CliResult<Option<Presence>> {
    if !plan.has_directory() {
        return Ok(None);
    }
    if plan.may_start {
        plan.claim()?;
    }
    let deadline = tokio::time::Instant::now() + start::PATIENCE;
    loop {
        let joined = Presence::join(&plan.directory).map_err(|error| plan.no_directory(&error))?;
        if joined.is_some() || tokio::time::Instant::now() > deadline {
            return Ok(joined);
        }
        tokio::time::sleep(start::PAUSE).await;
    }
}
