//! What one call costs, counted by callgrind: the difference of two runs that
//! differ in the number of calls alone.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context;

use crate::BenchEra;
use crate::lab::{BenchServers, Portway, TOKEN, Upstream};
use crate::series::Series;

const FEW: u64 = 500;
const MANY: u64 = 2500;

/// The functions of the allocator that Rust calls for new memory.
const ALLOCATING: [&str; 4] = [
    "mi_malloc",
    "mi_malloc_aligned",
    "mi_zalloc",
    "mi_zalloc_aligned",
];

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
        let few = count(portway, era, server, FEW)?;
        let many = count(portway, era, server, MANY)?;
        let [instructions, allocations] =
            [0, 1].map(|of| (many[of] - few[of]) / (MANY - FEW) as f64);
        let count = InstructionCount {
            name,
            instructions,
            allocations,
        };
        eprintln!(
            "{name}: {:.0} instructions, {:.1} allocations a call",
            count.instructions, count.allocations
        );
        all.push(count);
    }
    Ok(all)
}

/// The instructions and the allocations of a whole run.
fn count(portway: &Path, era: BenchEra, server: &str, calls: u64) -> anyhow::Result<[f64; 2]> {
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
    let instructions = total.context("callgrind gave no total")?.trim().parse()?;
    Ok([instructions, allocations(&text)])
}

/// The calls of the allocator's functions. A function is `(number) name` where
/// it is first named, and `(number)` from then on.
fn allocations(profile: &str) -> f64 {
    let mut names = HashMap::new();
    let (mut called, mut sum) = ("", 0.0);
    for line in profile.lines() {
        if let Some(function) = line.strip_prefix("cfn=").or(line.strip_prefix("fn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            called = names.get(number).copied().unwrap_or_default();
        } else if let Some(calls) = line.strip_prefix("calls=")
            && ALLOCATING.contains(&called)
        {
            let count = calls.split(' ').next().unwrap_or_default();
            sum += count.parse::<f64>().unwrap_or_default();
        }
    }
    sum
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
