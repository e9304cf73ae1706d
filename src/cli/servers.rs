//! `portway ls`, `add`, `rm`, `start`, `stop`, `restart`.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::failure::{self, Failure};
use super::remote::{Remote, RemoteArgs};

#[derive(Debug, Args)]
pub struct LsArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub struct AddArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub struct NamedArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

pub fn ls(args: &LsArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    failure::run(async {
        let remote = Remote::new(&args.remote, environment)?;
        let servers = remote.get("/api/mcp/servers").await?;
        let _ = writeln!(std::io::stdout(), "{servers:#}");
        Ok(ExitCode::SUCCESS)
    })
}

pub fn add(args: &AddArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}

pub fn rm(args: &NamedArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}

pub fn start(args: &NamedArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}

pub fn stop(args: &NamedArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}

pub fn restart(args: &NamedArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}
