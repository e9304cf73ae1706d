//! The cost of a server: time until it is ready, memory, processes.

use std::time::Duration;

use crate::finding::{bad, counted, note, ok, warn};
use crate::launcher::ServerCopy;
use crate::report::{LabReport, Section};
use upstream::process::ProcessInfo;

/// A person notices a start this slow.
const SLOW: Duration = Duration::from_secs(10);
const MIB: f64 = 1024.0 * 1024.0;

/// Reports the times from the start of the process to the handshake and to the
/// last list.
pub(crate) fn started(hello: Duration, lists: Duration, report: &mut LabReport) {
    report.fact("helloMs", hello.as_secs_f64() * 1000.0);
    report.fact("listsMs", lists.as_secs_f64() * 1000.0);
    let (hello_ms, lists_ms) = (hello.as_millis(), lists.as_millis());
    let found = format!("{hello_ms} ms to the handshake, {lists_ms} ms to all lists");
    let verdict = if lists > SLOW {
        let todo = "installed beforehand it starts faster than through npx or uvx";
        warn(found, todo)
    } else {
        ok(found)
    };
    report.add(Section::Cost, "start", verdict);
}

/// Reports a second start, with all files already cached.
pub(crate) fn started_again(hello: Duration, report: &mut LabReport) {
    report.fact("againMs", hello.as_secs_f64() * 1000.0);
    let found = format!("{} ms to the handshake", hello.as_millis());
    report.add(Section::Cost, "start again", note(found));
}

pub(crate) fn memory(copy: &ServerCopy, report: &mut LabReport) {
    let Some(process) = &copy.process else {
        return;
    };
    let Some(tree) = process.tree() else { return };
    let mut list = tree.list();
    // A process that has ended uses no memory.
    list.retain(|one| one.rss > 0);
    if list.is_empty() {
        return;
    }
    let rss: u64 = list.iter().map(|one| one.rss).sum();
    // PSS counts shared pages once; not every user may read it.
    let pss: Option<u64> = list.iter().map(pss).sum();
    report.fact("rssBytes", rss);
    report.fact("pssBytes", pss);
    report.fact("processes", list.len());
    let containment = process.containment().as_str();
    report.fact("containment", containment);
    let fair = pss.map_or(String::new(), |pss| {
        format!(", {:.1} MiB by fair share", pss as f64 / MIB)
    });
    let found = format!("{:.1} MiB resident{fair}", rss as f64 / MIB);
    report.add(Section::Cost, "memory", note(found));
    let names: Vec<&str> = list.iter().map(|one| one.command.as_str()).collect();
    let count = match list.len() {
        1 => "1".to_owned(),
        more => format!("{more}: {}", names.join(", ")),
    };
    report.add(Section::Cost, "processes", note(count));
    report.add(Section::Cost, "containment", note(containment));
}

fn pss(process: &ProcessInfo) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// More output than a person would read.
const LOUD: usize = 1 << 20;

/// Reports output on stdout that is not a message, and output on stderr.
pub(crate) fn output(copy: &ServerCopy, report: &mut LabReport) {
    let output = copy.outputs.lock();
    report.fact("noise", output.noise);
    report.fact("stderrBytes", output.stderr_bytes);
    if output.giant {
        let todo = "Portway ends such a server; PORTWAY_MAX_LINE allows more";
        let verdict = bad("a line longer than 8 MiB", todo);
        report.add(Section::Output, "stdout.line", verdict);
    }
    let verdict = if output.noise == 0 {
        let messages = counted(output.messages, "message");
        ok(format!("{messages}, nothing else"))
    } else {
        let lines = counted(output.noise, "line");
        let first = output.first_noise.as_deref().unwrap_or_default();
        warn(
            format!("{lines} that are no messages, the first: {first}"),
            "Portway passes over them, others may not: log to stderr",
        )
    };
    report.add(Section::Output, "stdout", verdict);
    let lines = counted(output.stderr_lines, "line");
    let found = format!("{lines}, {} bytes", output.stderr_bytes);
    let verdict = if output.stderr_bytes > LOUD {
        warn(found, "so much is of no use to anyone: log less")
    } else {
        note(found)
    };
    report.add(Section::Output, "stderr", verdict);
}
