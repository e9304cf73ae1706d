//! `portway completions` and `portway man`.

use std::process::ExitCode;

use clap::Args;

use super::failure::{self, Failure};

#[derive(Debug, Args)]
pub struct CompletionsArgs {}

#[derive(Debug, Args)]
pub struct ManArgs {}

pub fn main(_: &CompletionsArgs) -> ExitCode {
    failure::run(async { Err(Failure::other("is not built yet")) })
}

pub fn man(_: &ManArgs) -> ExitCode {
    failure::run(async { Err(Failure::other("is not built yet")) })
}
