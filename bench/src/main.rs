//! How fast Portway is. `make bench` runs [`run`], which starts everything
//! else as processes of their own, each on its core.

mod blocking;
mod chart;
mod entries;
mod exchange;
mod figures;
mod idle;
mod lab;
mod load;
mod run;
mod scale;
mod series;
mod speeds;
mod starts;
mod syscalls;
mod table;
mod targets;
mod upstream;
mod valgrind;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(name = "portway-bench")]
struct BenchCli {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// An MCP server that does next to nothing, over HTTP or stdio.
    Upstream(upstream::UpstreamOptions),
    /// Asks as fast as it gets answers, and checks every one.
    Load(load::LoadOptions),
    /// All figures, side by side.
    Run(run::RunOptions),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BenchEra {
    Legacy,
    Modern,
}

impl BenchEra {
    fn as_str(self) -> &'static str {
        match self {
            BenchEra::Legacy => "legacy",
            BenchEra::Modern => "modern",
        }
    }
}

fn main() -> anyhow::Result<()> {
    let command = BenchCli::parse().command;
    // One thread each: a process has one core to itself.
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    match command {
        BenchCommand::Upstream(options) => match options.listen {
            Some(address) => runtime()?.block_on(upstream::http::serve(address, &options)),
            None => upstream::stdio::serve(&options),
        },
        BenchCommand::Load(options) => runtime()?.block_on(load::main(&options)),
        BenchCommand::Run(options) => run::main(&options),
    }
}
