//! The cost of a server: time until it is ready, memory, processes.

use std::time::Duration;

use crate::finding::{Finding, counted};
use crate::launcher::ServerCopy;
use crate::report::{LabReport, Section};
use upstream::process::ProcessInfo;

/// A person notices a start this slow.
const SLOW: Duration = Duration::from_secs(10);
const MIB: f64 = 1024.0 * 1024.0;

/// Times from the start of the process to the handshake and to the last list.
pub(crate) struct StartTimes {
    pub hello: Duration,
    pub lists: Duration,
}

pub(crate) fn started(start: &StartTimes, report: &mut LabReport) {
    let (hello, lists) = (start.hello.as_millis(), start.lists.as_millis());
    report.fact("helloMs", start.hello.as_secs_f64() * 1000.0);
    report.fact("listsMs", start.lists.as_secs_f64() * 1000.0);
    let found = format!("{hello} ms to the handshake, {lists} ms to all lists");
    report.add(
        Section::Cost,
        match start.lists > SLOW {
            true => Finding::warn(
                "start",
                found,
                "installed beforehand it starts faster than through npx or uvx",
            ),
            false => Finding::ok("start", found),
        },
    );
}

/// Reports a second start, with all files already cached.
pub(crate) fn started_again(hello: Duration, report: &mut LabReport) {
    report.fact("againMs", hello.as_secs_f64() * 1000.0);
    let found = format!("{} ms to the handshake", hello.as_millis());
    report.note(Section::Cost, "start again", found);
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
    report.fact("containment", process.containment().as_str());
    let fair = pss.map_or(String::new(), |pss| {
        format!(", {:.1} MiB by fair share", pss as f64 / MIB)
    });
    let found = format!("{:.1} MiB resident{fair}", rss as f64 / MIB);
    report.note(Section::Cost, "memory", found);
    let names: Vec<&str> = list.iter().map(|one| one.command.as_str()).collect();
    let count = match list.len() {
        1 => "1".to_owned(),
        more => format!("{more}: {}", names.join(", ")),
    };
    report.note(Section::Cost, "processes", count);
    let step = process.containment();
    report.note(Section::Cost, "containment", step.as_str());
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
        report.bad(
            Section::Output,
            "stdout.line",
            "a line longer than 8 MiB",
            "Portway ends such a server; PORTWAY_MAX_LINE allows more",
        );
    }
    report.add(
        Section::Output,
        match (output.noise, &output.first_noise) {
            (0, _) => Finding::ok(
                "stdout",
                format!("{}, nothing else", counted(output.messages, "message")),
            ),
            (noise, first) => Finding::warn(
                "stdout",
                format!(
                    "{} that are no messages, the first: {}",
                    counted(noise, "line"),
                    first.as_deref().unwrap_or_default()
                ),
                "Portway passes over them, others may not: log to stderr",
            ),
        },
    );
    let found = format!(
        "{}, {} bytes",
        counted(output.stderr_lines, "line"),
        output.stderr_bytes
    );
    report.add(
        Section::Output,
        match output.stderr_bytes > LOUD {
            true => Finding::warn("stderr", found, "so much is of no use to anyone: log less"),
            false => Finding::note("stderr", found),
        },
    );
}
