//! What one call costs, counted: instructions by callgrind, allocations by
//! dhat. Each is the difference of two runs that differ in the number of
//! calls alone.

use std::path::Path;

use anyhow::Context;

use crate::BenchEra;
use crate::lab::{BenchServers, Portway, TOKEN, Upstream};
use crate::series::Series;

const FEW: u64 = 500;
const MANY: u64 = 2500;

pub struct InstructionCount {
    pub name: &'static str,
    pub instructions: f64,
    pub allocations: f64,
}

pub fn counts(portway: &Path) -> anyhow::Result<Vec<InstructionCount>> {
    let kinds = [
        ("modern to modern", BenchEra::Modern, "modern"),
        ("legacy to legacy", BenchEra::Legacy, "legacy"),
        ("modern to legacy", BenchEra::Modern, "legacy"),
        ("legacy to modern", BenchEra::Legacy, "modern"),
    ];
    let mut all = Vec::new();
    for (name, era, server) in kinds {
        let per_call = |count: fn(&Path, BenchEra, &str, u64) -> anyhow::Result<f64>| {
            let few = count(portway, era, server, FEW)?;
            let many = count(portway, era, server, MANY)?;
            anyhow::Ok((many - few) / (MANY - FEW) as f64)
        };
        let count = InstructionCount {
            name,
            instructions: per_call(instructions)?,
            allocations: per_call(allocations)?,
        };
        eprintln!(
            "{name}: {:.0} instructions, {:.1} allocations a call",
            count.instructions, count.allocations
        );
        all.push(count);
    }
    Ok(all)
}

fn instructions(portway: &Path, era: BenchEra, server: &str, calls: u64) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("callgrind");
    let wrapper = [
        "valgrind".to_owned(),
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", out.display()),
    ];
    watched(portway, era, server, calls, &wrapper)?;
    let text = std::fs::read_to_string(out)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(total.context("callgrind gave no total")?.trim().parse()?)
}

fn allocations(portway: &Path, era: BenchEra, server: &str, calls: u64) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let (log, out) = (dir.path().join("log"), dir.path().join("dhat"));
    let wrapper = [
        "valgrind".to_owned(),
        "--tool=dhat".to_owned(),
        format!("--log-file={}", log.display()),
        format!("--dhat-out-file={}", out.display()),
    ];
    watched(portway, era, server, calls, &wrapper)?;
    let text = std::fs::read_to_string(log)?;
    let total = text.lines().find_map(|line| {
        line.split_once("Total:")?
            .1
            .split_once(" in ")?
            .1
            .split(' ')
            .next()
    });
    Ok(total
        .context("dhat gave no total")?
        .replace(',', "")
        .parse()?)
}

fn watched(
    portway: &Path,
    era: BenchEra,
    server: &str,
    calls: u64,
    wrapper: &[String],
) -> anyhow::Result<()> {
    let modern = Upstream::start(BenchEra::Modern)?;
    let legacy = Upstream::start(BenchEra::Legacy)?;
    let servers = BenchServers::default()
        .http("modern", &modern)
        .http("legacy", &legacy);
    let mut portway = Portway::start(portway, servers, wrapper)?;
    Series::new("counted", &portway.url("/mcp"), era, 4)
        .with("tool", &format!("mcp_{server}_echo"))
        .with("token", TOKEN)
        .load("calls", &calls.to_string())?;
    portway.process.stop()
}
