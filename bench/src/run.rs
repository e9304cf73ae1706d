//! `run`: all measurements, and the page with their tables.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use crate::{idle, lab, scale, speeds, starts, table, targets, valgrind};

#[derive(Args)]
pub struct RunOptions {
    #[arg(long, default_value = "target/release/portway")]
    pub portway: PathBuf,
    #[arg(long, default_value = "/usr/sbin/nginx")]
    pub nginx: String,
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// The time of one series in one round.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Run only series whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// Skip system calls, which need strace, and instructions and allocations,
    /// which need valgrind.
    #[arg(long)]
    pub no_counts: bool,
    /// Skip the speeds, the starts and the memory of idle clients.
    #[arg(long)]
    no_speed: bool,
    /// Measure the cost at up to 10,000 tools, entries and clients too.
    #[arg(long)]
    scale: bool,
    /// Write the page `FIGURES.md` and `charts/*.svg` to this directory.
    #[arg(long)]
    write: Option<PathBuf>,
}

pub fn main(options: &RunOptions) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism()?;
    ensure!(cores.get() >= 2, "this needs two cores");
    if options.only.is_none() {
        lab::ensure_descriptors(12_000)?;
    }
    let mut page = String::from(
        "# Figures\n\nWritten by `make bench`. Gateway on one core, load and upstream on the \
         other; 16 connections\nunless the series has another number; every answer checked; the \
         median of all rounds, and in\nparentheses the least and the greatest.\n",
    );
    let before = load_average();
    let mut excesses = Vec::new();
    let mut memory = Vec::new();
    if !options.no_speed {
        let results = speeds::measure(options)?;
        targets::heading(&mut page);
        targets::speeds(&mut page, &results);
        if options.only.is_none() {
            let starts = starts::measure(&options.portway, options.rounds * 3)?;
            targets::start(&mut page, starts);
            memory = idle::measure(&options.portway, &options.nginx)?;
            targets::idle(&mut page, &memory);
        }
        table::speeds(&mut page, &results);
        excesses.extend(targets::system_call_excesses(&results));
    }
    let after = load_average();
    if !options.no_counts && options.only.is_none() {
        let counts = valgrind::counts(&options.portway)?;
        excesses.extend(targets::counts(&mut page, &counts));
    }
    if options.scale {
        let points = scale::measure(options)?;
        memory.extend(scale::memory(&points));
        scale::report::write(&mut page, &points, options.write.as_deref())?;
    }
    if !memory.is_empty() {
        table::memory(&mut page, &memory);
    }
    page += &format!(
        "\n{} rounds of {} s; {cores} cores, load {before} before and {after} after the speeds.\n",
        options.rounds, options.seconds
    );
    print!("{page}");
    if let Some(directory) = &options.write {
        let file = directory.join("FIGURES.md");
        std::fs::write(&file, page).with_context(|| file.display().to_string())?;
    }
    ensure!(
        excesses.is_empty(),
        "above the limit: {}",
        excesses.join("; ")
    );
    Ok(())
}

/// Of the last minute: other work of the machine distorts the figures.
fn load_average() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}
