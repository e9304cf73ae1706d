//! The figures as a table, each beside what it should be.

use crate::run::Results;
use crate::valgrind::Count;

fn verdict(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}

fn at_least(what: &str, value: f64, wanted: f64) {
    if value.is_finite() {
        println!(
            "| {what} | {value:.2} | ≥ {wanted} | {} |",
            verdict(value >= wanted)
        );
    }
}

fn at_most(what: &str, value: f64, wanted: f64) {
    if value.is_finite() {
        println!(
            "| {what} | {value:.0} | ≤ {wanted} | {} |",
            verdict(value <= wanted)
        );
    }
}

pub fn speeds(results: &Results) {
    println!("| Series | Calls/s | Median µs | p99 µs | Gateway CPU µs a call |");
    println!("|---|---:|---:|---:|---:|");
    for name in results.names() {
        let (rate, middle, tail) = (
            results.median(name, |figures| figures.rate),
            results.median(name, |figures| figures.median),
            results.median(name, |figures| figures.p99),
        );
        let cpu = results.cpu(name);
        let cpu = if cpu.is_finite() {
            format!("{cpu:.1}")
        } else {
            String::new()
        };
        println!("| {name} | {rate:.0} | {middle:.1} | {tail:.0} | {cpu} |");
    }
    println!("\n| Compared round by round | Figure | Wanted | Holds |");
    println!("|---|---:|---:|---|");
    at_least(
        "HTTP modern to direct",
        results.ratio("http modern", "direct modern"),
        0.36,
    );
    at_least(
        "HTTP modern to nginx",
        results.ratio("http modern", "nginx modern"),
        0.5,
    );
    at_least(
        "HTTP legacy to direct",
        results.ratio("http legacy", "direct legacy"),
        0.36,
    );
    at_least(
        "HTTP legacy to nginx",
        results.ratio("http legacy", "nginx legacy"),
        0.5,
    );
    at_least(
        "stdio to HTTP, modern",
        results.ratio("stdio modern", "http modern"),
        1.0,
    );
    at_least(
        "stdio to HTTP, legacy",
        results.ratio("stdio legacy", "http legacy"),
        1.0,
    );
    at_least(
        "modern to legacy, to modern",
        results.ratio("cross modern", "http modern"),
        0.8,
    );
    at_least(
        "legacy to modern, to legacy",
        results.ratio("cross legacy", "http legacy"),
        0.8,
    );
    let above =
        |name| results.compare(name, "one direct", |one, direct| one.median - direct.median);
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
    at_least(
        "list of 1,000 tools to a file, modern",
        results.ratio("list modern", "list file"),
        1.0,
    );
    at_least(
        "list of 1,000 tools to a file, legacy",
        results.ratio("list legacy", "list file"),
        1.0,
    );
    println!();
}

pub fn counts(counts: &[Count]) {
    println!("| Counted, a call over HTTP | Figure | Wanted | Holds |");
    println!("|---|---:|---:|---|");
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
