//! `portway tools`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::failure::{self, Failure};
use super::remote::RemoteArgs;

#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

pub fn main(args: &ToolsArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}
