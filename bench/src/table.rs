//! The figures as tables, each beside what it should be.

use std::fmt::Write as _;

use crate::run::{Results, Run};
use crate::valgrind::InstructionCount;

/// Writing into memory does not fail.
macro_rules! line {
    ($out:expr, $($text:tt)*) => {{
        let _ = writeln!($out, $($text)*);
    }};
}

/// What should hold between two series, measured in the same rounds.
struct Ratio {
    what: &'static str,
    of: [&'static str; 2],
    wanted: f64,
}

const fn ratio(what: &'static str, one: &'static str, other: &'static str, wanted: f64) -> Ratio {
    Ratio {
        what,
        of: [one, other],
        wanted,
    }
}

const BARE: &[Ratio] = &[
    ratio("HTTP to nginx, modern", "http modern", "nginx modern", 0.5),
    ratio("HTTP to nginx, legacy", "http legacy", "nginx legacy", 0.5),
    ratio("stdio to HTTP, modern", "stdio modern", "http modern", 1.0),
    ratio("stdio to HTTP, legacy", "stdio legacy", "http legacy", 1.0),
    ratio(
        "crossing to staying, modern client",
        "cross modern",
        "http modern",
        0.8,
    ),
    ratio(
        "crossing to staying, legacy client",
        "cross legacy",
        "http legacy",
        0.8,
    ),
    ratio(
        "an entry's key among 10,000 to the admin token",
        "keyed modern",
        "http modern",
        0.95,
    ),
    ratio(
        "list of 1,000 tools to a file, modern",
        "list modern",
        "list file",
        1.0,
    ),
    ratio(
        "list of 1,000 tools to a file, legacy",
        "list legacy",
        "list file",
        1.0,
    ),
];

const WORKING: &[Ratio] = &[
    ratio(
        "HTTP to nginx, modern",
        "work http modern",
        "work nginx modern",
        0.5,
    ),
    ratio(
        "HTTP to nginx, legacy",
        "work http legacy",
        "work nginx legacy",
        0.5,
    ),
    ratio(
        "HTTP to direct, modern",
        "work http modern",
        "work direct modern",
        0.36,
    ),
    ratio(
        "HTTP to direct, legacy",
        "work http legacy",
        "work direct legacy",
        0.36,
    ),
];

/// Beyond what is asked for: direct calls cost next to nothing here.
const BEYOND: &[Ratio] = &[
    ratio(
        "HTTP to direct, modern",
        "http modern",
        "direct modern",
        0.0,
    ),
    ratio(
        "HTTP to direct, legacy",
        "http legacy",
        "direct legacy",
        0.0,
    ),
];

fn verdict(measured: bool, by_cpu: bool) -> &'static str {
    match (measured, by_cpu) {
        (true, _) => "yes",
        // What others took of the cores is in the one and not in the other.
        (false, true) => "by CPU time",
        (false, false) => "NO",
    }
}

fn row(out: &mut String, results: &Results, ratio: &Ratio) {
    let [one, other] = ratio.of;
    let measured = results.compare(one, other, |one, other| {
        one.figures.rate / other.figures.rate
    });
    let by_cpu = results.compare(one, other, |one, other| one.capacity() / other.capacity());
    if !measured.is_finite() {
        return;
    }
    let (wanted, met) = match ratio.wanted {
        0.0 => (String::new(), ""),
        least => {
            let met = verdict(measured >= least, by_cpu >= least);
            (format!("≥ {least}"), met)
        }
    };
    let what = ratio.what;
    line!(
        out,
        "| {what} | {measured:.2} | {by_cpu:.2} | {wanted} | {met} |"
    );
}

fn at_most(out: &mut String, what: &str, value: f64, wanted: f64) {
    if value.is_finite() {
        let met = verdict(value <= wanted, false);
        line!(out, "| {what} | {value:.0} | | ≤ {wanted} | {met} |");
    }
}

fn at_least(out: &mut String, what: &str, value: f64, by_cpu: f64, wanted: f64) {
    if value.is_finite() {
        let met = verdict(value >= wanted, by_cpu >= wanted);
        line!(
            out,
            "| {what} | {value:.0} | {by_cpu:.0} | ≥ {wanted} | {met} |"
        );
    }
}

pub fn speeds(out: &mut String, results: &Results, work: f64) {
    line!(
        out,
        "| Series | Calls/s | CPU would allow | Median µs | p99 µs | Gateway CPU µs | Load and upstream CPU µs |"
    );
    line!(out, "|---|---:|---:|---:|---:|---:|---:|");
    for name in results.names() {
        let of = |value: fn(&Run) -> f64| results.median(name, value);
        line!(
            out,
            "| {name} | {:.0} | {:.0} | {:.1} | {:.0} | {:.1} | {:.1} |",
            of(|run| run.figures.rate),
            of(Run::capacity),
            of(|run| run.figures.median),
            of(|run| run.figures.p99),
            of(|run| run.gateway),
            of(|run| run.ends),
        );
    }
    let rate = |name| results.median(name, |run| run.figures.rate);
    heading(
        out,
        &format!("Working upstream ({work} µs of work a call)"),
        rate("work direct modern"),
    );
    for ratio in WORKING {
        row(out, results, ratio);
    }
    for (what, name) in [
        ("HTTP calls/s, modern", "work http modern"),
        ("HTTP calls/s, legacy", "work http legacy"),
    ] {
        let by_cpu = results.median(name, Run::capacity);
        at_least(out, what, rate(name), by_cpu, 18_000.0);
    }
    above(out, results, "HTTP", "work one http", "work one direct");
    heading(out, "Bare upstream (no work)", rate("direct modern"));
    for ratio in BARE.iter().chain(BEYOND) {
        row(out, results, ratio);
    }
    above(out, results, "HTTP", "one http", "one direct");
    above(out, results, "stdio", "one stdio", "one direct");
    line!(out, "");
}

fn heading(out: &mut String, what: &str, direct: f64) {
    line!(
        out,
        "\n| {what}: direct {direct:.0}/s | Measured | By CPU | Wanted | Met |"
    );
    line!(out, "|---|---:|---:|---:|---|");
}

fn above(out: &mut String, results: &Results, what: &str, name: &str, direct: &str) {
    let above = results.compare(name, direct, |one, direct| {
        one.figures.median - direct.figures.median
    });
    let what = format!("one connection, {what}: median above direct, µs");
    at_most(out, &what, above, 150.0);
}

pub fn counts(out: &mut String, counts: &[InstructionCount]) {
    line!(
        out,
        "| Counted, a call over HTTP | Figure | | Wanted | Met |"
    );
    line!(out, "|---|---:|---|---:|---|");
    let mut all = |what: &str, value: fn(&InstructionCount) -> f64, wanted: f64| {
        for count in counts {
            let (what, value) = (format!("{what}, {}", count.name), value(count));
            match count.same_era {
                true => at_most(out, &what, value, wanted),
                // Nothing is asked of these; they are here to be compared.
                false => line!(out, "| {what} | {value:.0} | | | |"),
            }
        }
    };
    all("instructions", |count| count.instructions, 100_000.0);
    all("allocations", |count| count.allocations, 80.0);
}
