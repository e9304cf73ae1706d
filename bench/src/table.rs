//! The tables of all series and of the memory.

use std::fmt::Write as _;

use crate::series::{Results, Run};

/// Appends a line; writing into memory does not fail.
macro_rules! line {
    ($out:expr, $($text:tt)*) => {{
        let _ = writeln!($out, $($text)*);
    }};
}
pub(crate) use line;

pub fn speeds(out: &mut String, results: &Results) {
    line!(
        out,
        "\n| Series | Calls/s | Median µs | p99 µs | Gateway CPU µs | System calls | Load and upstream CPU µs | Limited by |"
    );
    line!(out, "|---|---:|---:|---:|---:|---:|---:|---|");
    for name in results.names() {
        let of = |value: fn(&Run) -> f64| results.spread(name, value);
        let [gateway, ends] = [of(|run| run.gateway).median, of(|run| run.ends).median];
        let busy = of(|run| run.gateway.max(run.ends) * run.figures.rate / 1e6).median;
        let limit = match () {
            () if busy < 0.8 => "waiting",
            () if gateway > ends => "gateway",
            () => "load",
        };
        let calls = results.system_calls.get(name);
        line!(
            out,
            "| {name} | {} | {:.1} | {:.0} | {gateway:.1} | {} | {ends:.1} | {limit} |",
            of(|run| run.figures.rate).show(0),
            of(|run| run.figures.median).median,
            of(|run| run.figures.p99).median,
            calls.map_or(String::new(), |calls| format!("{calls:.1}")),
        );
    }
}

/// The memory of one thing, in bytes.
pub struct MemoryRow {
    pub what: &'static str,
    pub bytes: f64,
    /// The part that is not returned after it is gone.
    pub left: Option<f64>,
    pub nginx: Option<f64>,
}

pub fn memory(out: &mut String, rows: &[MemoryRow]) {
    line!(
        out,
        "\n| Memory of one | Bytes | Left when it is gone | nginx |"
    );
    line!(out, "|---|---:|---:|---:|");
    let shown = |bytes: Option<f64>| bytes.map_or(String::new(), |bytes| format!("{bytes:.0}"));
    for row in rows {
        let (left, nginx) = (shown(row.left), shown(row.nginx));
        line!(
            out,
            "| {} | {:.0} | {left} | {nginx} |",
            row.what,
            row.bytes
        );
    }
}
