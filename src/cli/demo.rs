//! `portway demo`: a project with two harmless servers that are part of the
//! program, so that a first call needs neither a network nor another program.

mod server;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::call::{self, CallArgs};
use super::failure::{CommandResult, Failure};
use super::{Environment, ServeArgs, serve};

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Directory of the project; made if it does not exist
    #[arg(value_name = "DIR", default_value = "portway-demo")]
    directory: PathBuf,
    /// Address to listen on [default: 127.0.0.1:7420, or a free port]
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
}

#[derive(Debug, Args)]
pub struct DemoServerArgs {
    server: DemoServer,
}

/// A server that `portway demo` starts.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum DemoServer {
    Demo,
    Notes,
}

/// Runs the gateway on the project; returns its exit code.
pub(super) fn main(args: DemoArgs, environment: Environment) -> ExitCode {
    if let Err(failure) = prepare(&args.directory) {
        return failure.report();
    }
    let serve_args = ServeArgs {
        listen: args.listen,
        project: Some(args.directory),
        demo: true,
        ..ServeArgs::default()
    };
    serve::main(serve_args, environment)
}

/// Makes the project. Its file is the user's: an existing one is kept.
fn prepare(directory: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::of_path(directory, error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let file = directory.join(".mcp.json");
    if file.exists() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(Failure::other)?;
    let server = |name: &str| json!({ "command": program, "args": ["demo-server", name] });
    let servers = json!({ "mcpServers": { "demo": server("demo"), "notes": server("notes") } });
    let text = format!("{servers:#}\n");
    std::fs::write(&file, text).map_err(|error| Failure::of_path(&file, error))
}

/// The first call, as a user would make it.
pub(super) async fn first_call(project: &Path, environment: &Environment) {
    let typed = "portway call demo:add a=2 b=3";
    serve::say(&format!("\n{typed} --project {}\n", project.display()));
    let call = CallArgs::of("demo:add", ["a=2", "b=3"], project);
    if let Err(error) = call::main(&call, environment).await {
        tracing::warn!("the first call failed: {error}");
    }
}

pub(super) async fn serve_one(args: &DemoServerArgs) -> CommandResult {
    server::run(args.server).map_err(Failure::other)?;
    Ok(ExitCode::SUCCESS)
}
