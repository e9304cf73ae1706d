//! How fast Portway is. `make bench` runs [`run`], which starts everything
//! else as processes of their own, each on its core.

mod entries;
mod exchange;
mod figures;
mod lab;
mod load;
mod run;
mod table;
mod upstream;
mod valgrind;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(name = "portway-bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// An MCP server that does next to nothing, over HTTP or stdio.
    Upstream(upstream::Options),
    /// Asks as fast as it gets answers, and checks every one.
    Load(load::Options),
    /// All figures, side by side.
    Run(run::Options),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn as_str(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }
}

fn main() -> anyhow::Result<()> {
    let command = Cli::parse().command;
    // One thread each: a process has one core to itself.
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    match command {
        Command::Upstream(options) => match options.listen {
            Some(address) => runtime()?.block_on(upstream::http::serve(address, &options)),
            None => upstream::stdio::serve(&options),
        },
        Command::Load(options) => runtime()?.block_on(load::main(&options)),
        Command::Run(options) => run::main(&options),
    }
}
