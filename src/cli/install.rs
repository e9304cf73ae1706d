//! `portway install` and `uninstall`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::failure::{self, Failure};
use super::remote::RemoteArgs;

#[derive(Debug, Args)]
pub struct InstallArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

pub fn install(args: &InstallArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}

pub fn uninstall(args: &UninstallArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}
