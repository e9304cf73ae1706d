//! `portway doctor`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::failure::{self, Failure};
use super::remote::RemoteArgs;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

pub fn main(args: &DoctorArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let _ = (&args.remote, environment);
    failure::run(async { Err(Failure::other("is not built yet")) })
}
