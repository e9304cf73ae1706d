//! The figures that have a wanted value, and the limits that counts must not
//! exceed.

use std::fmt::Write as _;

use crate::figures::Spread;
use crate::series::Results;
use crate::table::{MemoryRow, line};
use crate::valgrind::InstructionCount;

/// Limits of the counted cost of one call, with a margin above the measured
/// values; `run` fails above them. Lower them when a call becomes cheaper.
const MOST_INSTRUCTIONS: f64 = 66_000.0;
const MOST_ALLOCATIONS: f64 = 36.0;
const MOST_SYSTEM_CALLS: f64 = 6.0;

#[derive(Clone, Copy)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    fn is_met(self, value: f64) -> bool {
        match self {
            Wanted::AtLeast(least) => value >= least,
            Wanted::AtMost(most) => value <= most,
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wanted::AtLeast(least) => write!(f, "≥ {least}"),
            Wanted::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// The measure by which two series are compared, round by round.
#[derive(Clone, Copy)]
enum Measure {
    /// Calls per second.
    Rate,
    /// The median time of a call.
    Median,
    /// The CPU time of the gateway per call in µs, of the first series alone.
    Cpu,
}

/// A wanted relation between two series of the same rounds.
struct SpeedTarget {
    what: &'static str,
    series: [&'static str; 2],
    measure: Measure,
    wanted: Option<Wanted>,
}

const fn rate(what: &'static str, series: [&'static str; 2], least: f64) -> SpeedTarget {
    SpeedTarget {
        what,
        series,
        measure: Measure::Rate,
        wanted: Some(Wanted::AtLeast(least)),
    }
}

/// No value is wanted: a direct call to an upstream that does no work costs
/// next to nothing.
const fn shown(what: &'static str, series: [&'static str; 2]) -> SpeedTarget {
    SpeedTarget {
        what,
        series,
        measure: Measure::Rate,
        wanted: None,
    }
}

const fn cpu(what: &'static str, series: [&'static str; 2]) -> SpeedTarget {
    SpeedTarget {
        what,
        series,
        measure: Measure::Cpu,
        wanted: Some(Wanted::AtMost(28.0)),
    }
}

#[rustfmt::skip]
const TARGETS: &[SpeedTarget] = &[
    shown("calls over HTTP to direct, 2026", ["http modern", "direct modern"]),
    shown("calls over HTTP to direct, 2025", ["http legacy", "direct legacy"]),
    rate("calls over HTTP to nginx, 2026", ["http modern", "nginx modern"], 0.8),
    rate("calls over HTTP to nginx, 2025", ["http legacy", "nginx legacy"], 0.8),
    rate("128 connections to nginx, 2026", ["128 http modern", "128 nginx modern"], 0.8),
    rate("128 connections to nginx, 2025", ["128 http legacy", "128 nginx legacy"], 0.8),
    SpeedTarget {
        what: "one connection, median to nginx",
        series: ["1 http", "1 nginx"],
        measure: Measure::Median,
        wanted: Some(Wanted::AtMost(1.1)),
    },
    rate("1 MiB results to nginx, 2026", ["large http modern", "large nginx modern"], 0.8),
    rate("1 MiB results to nginx, 2025", ["large http legacy", "large nginx legacy"], 0.8),
    shown("1 MiB results to nginx with large buffers, 2026", ["large http modern", "large nginx buffered"]),
    cpu("stdio, CPU µs, 2026", ["stdio modern", "http modern"]),
    cpu("stdio, CPU µs, 2025", ["stdio legacy", "http legacy"]),
    cpu("stdio, 128 connections, CPU µs, 2026", ["128 stdio modern", "128 http modern"]),
    cpu("stdio, 128 connections, CPU µs, 2025", ["128 stdio legacy", "128 http legacy"]),
    rate("stdio, 128 connections to 16, 2026", ["128 stdio modern", "stdio modern"], 1.0),
    rate("stdio, 128 connections to 16, 2025", ["128 stdio legacy", "stdio legacy"], 1.0),
    rate("stdio to HTTP, 2026", ["stdio modern", "http modern"], 1.0),
    rate("stdio to HTTP, 2025", ["stdio legacy", "http legacy"], 1.0),
    shown("list of 100 tools to direct", ["list 100 http", "list 100 direct"]),
    rate("list of 100 tools to nginx", ["list 100 http", "list 100 nginx"], 1.3),
    rate("list of 1,000 tools to direct", ["list 1000 http", "list 1000 direct"], 1.4),
    rate("list of 1,000 tools to nginx", ["list 1000 http", "list 1000 nginx"], 1.3),
    shown("sessions opened and closed to direct", ["session http", "session direct"]),
    rate("sessions opened and closed to nginx", ["session http", "session nginx"], 1.3),
    rate("2026 client of a 2025 server to 2026", ["cross modern", "http modern"], 0.8),
    rate("2025 client of a 2026 server to 2025", ["cross legacy", "http legacy"], 0.8),
    rate("an entry's key among 10,000 to the admin token", ["keyed modern", "http modern"], 0.95),
];

pub fn heading(out: &mut String) {
    line!(
        out,
        "\n| Target | Measured | CPU µs per call (the other) | System calls per call (the other) | Wanted | Met |"
    );
    line!(out, "|---|---:|---:|---:|---:|---|");
}

fn row(out: &mut String, what: &str, value: Spread, costs: [&str; 2], wanted: Option<Wanted>) {
    let met = match wanted {
        None => "",
        Some(wanted) if wanted.is_met(value.median) => "yes",
        Some(_) => "NO",
    };
    let wanted = wanted.map_or(String::new(), |wanted| wanted.to_string());
    let decimals = if value.median < 10.0 { 2 } else { 1 };
    let ([cpu, calls], value) = (costs, value.show(decimals));
    line!(
        out,
        "| {what} | {value} | {cpu} | {calls} | {wanted} | {met} |"
    );
}

pub fn speeds(out: &mut String, results: &Results) {
    for target in TARGETS {
        let [one, other] = target.series;
        let value = match target.measure {
            Measure::Rate => results.compare(one, other, |one, other| {
                one.figures.rate / other.figures.rate
            }),
            Measure::Median => results.compare(one, other, |one, other| {
                one.figures.median / other.figures.median
            }),
            Measure::Cpu => results.spread(one, |run| run.gateway),
        };
        if value.median.is_nan() {
            continue;
        }
        let cost = |of: &dyn Fn(&str) -> Option<f64>| match (of(one), of(other)) {
            (Some(one), Some(other)) => format!("{one:.1} ({other:.1})"),
            (Some(one), None) => format!("{one:.1}"),
            _ => String::new(),
        };
        let cpu = cost(&|name| {
            let cpu = results.spread(name, |run| run.gateway).median;
            (cpu > 0.0).then_some(cpu)
        });
        let calls = cost(&|name| results.system_calls.get(name).copied());
        row(out, target.what, value, [&cpu, &calls], target.wanted);
    }
}

pub fn start(out: &mut String, milliseconds: Spread) {
    let what = "start to the first list, one server, ms";
    row(
        out,
        what,
        milliseconds,
        ["", ""],
        Some(Wanted::AtMost(25.0)),
    );
}

pub fn idle(out: &mut String, memory: &[MemoryRow]) {
    for row in memory.iter().filter(|row| row.what == crate::idle::STREAM) {
        let kilobytes = Spread::of([row.bytes / 1e3]);
        let nginx = row
            .nginx
            .map_or(String::new(), |bytes| format!(", nginx {:.1}", bytes / 1e3));
        let what = format!("{}, kB{nginx}", row.what);
        self::row(out, &what, kilobytes, ["", ""], Some(Wanted::AtMost(15.0)));
    }
}

/// The calls over HTTP that use more system calls than the limit.
pub fn system_call_excesses(results: &Results) -> Vec<String> {
    ["http modern", "http legacy"]
        .into_iter()
        .filter_map(|name| Some((name, *results.system_calls.get(name)?)))
        .filter(|(_, count)| *count > MOST_SYSTEM_CALLS)
        .map(|(name, count)| format!("{name}: {count:.1} system calls, limit {MOST_SYSTEM_CALLS}"))
        .collect()
}

/// The table of instructions and allocations; the counts above the limit.
pub fn counts(out: &mut String, counts: &[InstructionCount]) -> Vec<String> {
    line!(
        out,
        "\n| Counted, a call over HTTP | Figure | Wanted | Limit | Met |"
    );
    line!(out, "|---|---:|---:|---:|---|");
    let mut excesses = Vec::new();
    let mut all = |what: &str, value: fn(&InstructionCount) -> f64, wanted: f64, limit: f64| {
        for count in counts {
            let (what, value) = (format!("{what}, {}", count.name), value(count));
            let met = if value <= wanted { "yes" } else { "NO" };
            line!(
                out,
                "| {what} | {value:.0} | ≤ {wanted} | ≤ {limit} | {met} |"
            );
            if value > limit {
                excesses.push(format!("{what}: {value:.0}, limit {limit}"));
            }
        }
    };
    all(
        "instructions",
        |count| count.instructions,
        60_000.0,
        MOST_INSTRUCTIONS,
    );
    all(
        "allocations",
        |count| count.allocations,
        30.0,
        MOST_ALLOCATIONS,
    );
    excesses
}
