//! Finds the gateway of the project, or starts it. If several clients start one
//! at once, one gateway gets the data directory and all clients use it.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::gateway_link::ask;
use super::plan::{ConnectPlan, GatewayAddress};
use crate::cli::background;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::ENTRY_KEY;

pub(super) const PATIENCE: Duration = Duration::from_secs(20);
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// The limit for the stderr of a gateway that cannot start.
const WORDS: u64 = 4096;

pub(super) async fn find(plan: &ConnectPlan) -> CliResult<GatewayAddress> {
    if plan.fixed {
        let target = plan.target()?;
        return match ask(&target.health).await {
            Some(_) => Ok(target.awaited()),
            None => Err(Failure::unreachable(&target.url, "nobody is there")),
        };
    }
    let deadline = Instant::now() + PATIENCE;
    let mut started: Option<JoinHandle<String>> = None;
    loop {
        let in_use = store::is_in_use(&plan.directory);
        if in_use && store::known_address(&plan.directory).is_some() {
            let target = plan.target()?;
            if ask(&target.health).await.is_some() {
                return Ok(target.awaited());
            }
        }
        match &mut started {
            _ if in_use => {}
            None if !plan.may_start => return Err(plan.nobody().await),
            None => started = Some(start(plan).await?),
            Some(words) if words.is_finished() => {
                let words = words.await.unwrap_or_default();
                let words = words.trim();
                return Err(Failure::other(format!(
                    "no Portway can be started here:\n{words}"
                )));
            }
            Some(_) => {}
        }
        if Instant::now() > deadline {
            let what = "one is starting, or cannot be reached";
            return Err(Failure::unreachable(&plan.target()?.url, what));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Starts `portway serve` as an independent process. Returns its stderr: the
/// output before it has a log, which closes when the process exits.
pub(super) async fn spawn(plan: &ConnectPlan) -> std::io::Result<ChildStderr> {
    let mut command = Command::new(background::program()?);
    command.args(["serve", background::DETACH]);
    command.arg("--project").arg(&plan.project);
    if plan.names_directory {
        command.arg("--data-dir").arg(&plan.directory);
    }
    command
        .arg("--until-idle")
        .arg(plan.linger.as_secs_f64().to_string())
        .env_remove(ENTRY_KEY)
        .current_dir(&plan.project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let stderr = child.stderr.take();
    // The child only starts the gateway process: killing the bridge and its
    // children must not end a gateway that other clients use.
    let _ = tokio::time::timeout(PATIENCE, child.wait()).await;
    stderr.ok_or_else(|| std::io::Error::other("it has no stderr"))
}

/// Starts a gateway; returns what it writes to stderr before it exits.
async fn start(plan: &ConnectPlan) -> CliResult<JoinHandle<String>> {
    let cannot = |error| {
        let project = plan.project.display();
        Failure::other(format!(
            "cannot start a Portway in {project}: {error}\nname another with --project"
        ))
    };
    let stderr = spawn(plan).await.map_err(cannot)?;
    Ok(tokio::spawn(async move {
        let mut text = Vec::new();
        let _ = stderr.take(WORDS).read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }))
}
