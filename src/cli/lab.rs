//! `portway lab`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::failure::{self, Failure};
use super::remote::RemoteArgs;

#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

pub fn main(args: &LabArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}
