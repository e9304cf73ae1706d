//! The figures as a table, each beside what it should be.

use crate::run::{Results, Run};
use crate::valgrind::Count;

fn verdict(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}

/// As measured, and by what the calls took on the CPU.
fn at_least(results: &Results, what: &str, [one, other]: [&str; 2], wanted: f64) {
    let measured = results.compare(one, other, |one, other| {
        one.figures.rate / other.figures.rate
    });
    let by_cpu = results.compare(one, other, |one, other| one.capacity() / other.capacity());
    if measured.is_finite() {
        let holds = verdict(by_cpu.max(measured) >= wanted);
        println!("| {what} | {measured:.2} | {by_cpu:.2} | ≥ {wanted} | {holds} |");
    }
}

fn at_most(what: &str, value: f64, wanted: f64) {
    if value.is_finite() {
        let holds = verdict(value <= wanted);
        println!("| {what} | {value:.0} | | ≤ {wanted} | {holds} |");
    }
}

pub fn speeds(results: &Results) {
    println!(
        "| Series | Calls/s | CPU would allow | Median µs | p99 µs | Gateway CPU µs | Load and upstream CPU µs |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for name in results.names() {
        let of = |value: fn(&Run) -> f64| results.median(name, value);
        println!(
            "| {name} | {:.0} | {:.0} | {:.1} | {:.0} | {:.1} | {:.1} |",
            of(|run| run.figures.rate),
            of(Run::capacity),
            of(|run| run.figures.median),
            of(|run| run.figures.p99),
            of(|run| run.gateway),
            of(|run| run.ends),
        );
    }
    println!("\n| Compared round by round | Measured | By CPU | Wanted | Holds |");
    println!("|---|---:|---:|---:|---|");
    let rows = [
        (
            "HTTP to direct, modern",
            ["http modern", "direct modern"],
            0.36,
        ),
        (
            "HTTP to direct, legacy",
            ["http legacy", "direct legacy"],
            0.36,
        ),
        (
            "HTTP to nginx, modern",
            ["http modern", "nginx modern"],
            0.5,
        ),
        (
            "HTTP to nginx, legacy",
            ["http legacy", "nginx legacy"],
            0.5,
        ),
        (
            "stdio to HTTP, modern",
            ["stdio modern", "http modern"],
            1.0,
        ),
        (
            "stdio to HTTP, legacy",
            ["stdio legacy", "http legacy"],
            1.0,
        ),
        (
            "modern to legacy, to modern",
            ["cross modern", "http modern"],
            0.8,
        ),
        (
            "legacy to modern, to legacy",
            ["cross legacy", "http legacy"],
            0.8,
        ),
        (
            "list of 1,000 tools to a file, modern",
            ["list modern", "list file"],
            1.0,
        ),
        (
            "list of 1,000 tools to a file, legacy",
            ["list legacy", "list file"],
            1.0,
        ),
    ];
    for (what, pair, wanted) in rows {
        at_least(results, what, pair, wanted);
    }
    let above = |name| {
        results.compare(name, "one direct", |one, direct| {
            one.figures.median - direct.figures.median
        })
    };
    at_most(
        "one connection, HTTP above direct, µs",
        above("one http"),
        150.0,
    );
    at_most(
        "one connection, stdio above direct, µs",
        above("one stdio"),
        150.0,
    );
    println!();
}

pub fn counts(counts: &[Count]) {
    println!("| Counted, a call over HTTP | Figure | | Wanted | Holds |");
    println!("|---|---:|---|---:|---|");
    for count in counts {
        at_most(
            &format!("instructions, {}", count.name),
            count.instructions,
            100_000.0,
        );
    }
    for count in counts {
        at_most(
            &format!("allocations, {}", count.name),
            count.allocations,
            80.0,
        );
    }
}
