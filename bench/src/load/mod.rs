//! The load: a number of connections, each of which sends its next request as
//! soon as it has the last answer.

mod client;

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::BenchEra;
use crate::figures::Figures;
use crate::lab::cpu;
use client::LoadClient;
pub use client::{INITIALIZE, INITIALIZED, next_cursor};

/// The time limit of a run beyond its own time: one for all, since a timer for
/// each answer would be measured too.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Args)]
pub struct LoadOptions {
    /// `http://host:port/path`.
    #[arg(long)]
    url: String,
    #[arg(long, value_enum, default_value = "modern")]
    era: BenchEra,
    #[arg(long, value_enum, default_value = "call")]
    what: LoadKind,
    #[arg(long, default_value = "echo")]
    tool: String,
    /// The size of the text in each result.
    #[arg(long, default_value_t = 0)]
    result_bytes: usize,
    #[arg(long)]
    token: Option<String>,
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// The time to measure, after a warm-up of a fifth of it.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The number of calls to make instead, without a warm-up.
    #[arg(long)]
    calls: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadKind {
    Call,
    /// All pages of `tools/list`.
    List,
    /// Opens a session and ends it; only in the legacy era.
    Session,
}

pub async fn main(options: &LoadOptions) -> anyhow::Result<()> {
    let limit = PATIENCE + Duration::try_from_secs_f64(options.seconds * 2.0)?;
    let figures = tokio::time::timeout(limit, measure(options)).await;
    let figures = figures.context("no answer")??;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn measure(options: &LoadOptions) -> anyhow::Result<Figures> {
    let mut clients = Vec::new();
    for number in 0..options.connections {
        clients.push(LoadClient::open(options, number).await?);
    }
    if let Some(calls) = options.calls {
        return round(&mut clients, LoadEnd::Calls(calls)).await;
    }
    let time = Duration::try_from_secs_f64(options.seconds)?;
    let warmed = round(&mut clients, LoadEnd::Time(time / 5)).await?;
    let mut figures = round(&mut clients, LoadEnd::Time(time)).await?;
    figures.all_calls += warmed.calls;
    Ok(figures)
}

#[derive(Clone, Copy)]
enum LoadEnd {
    Time(Duration),
    Calls(u64),
}

async fn round(clients: &mut Vec<LoadClient>, until: LoadEnd) -> anyhow::Result<Figures> {
    let local = tokio::task::LocalSet::new();
    let asked = Rc::new(Cell::new(0));
    let (start, before) = (Instant::now(), cpu(std::process::id()));
    let work = clients.drain(..).map(|mut client| {
        let asked = asked.clone();
        local.spawn_local(async move {
            let mut waits = Vec::new();
            loop {
                let over = match until {
                    LoadEnd::Time(time) => start.elapsed() >= time,
                    LoadEnd::Calls(calls) => asked.replace(asked.get() + 1) >= calls,
                };
                if over {
                    return anyhow::Ok((client, waits));
                }
                let asked = Instant::now();
                client.ask().await?;
                waits.push(u32::try_from(asked.elapsed().as_nanos()).unwrap_or(u32::MAX));
            }
        })
    });
    let work: Vec<_> = work.collect();
    let done = local.run_until(async {
        let mut done = Vec::new();
        for task in work {
            done.push(task.await??);
        }
        anyhow::Ok(done)
    });
    let done = done.await?;
    let seconds = start.elapsed().as_secs_f64();
    let spent = cpu(std::process::id()) - before;
    let mut all = Vec::new();
    for (client, waits) in done {
        clients.push(client);
        all.extend(waits);
    }
    Ok(Figures::new(all, seconds, spent))
}
