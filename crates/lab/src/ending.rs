//! Checks of a server's end: at the end of its input, at SIGTERM, or not at
//! all; and of the processes it leaves behind.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::dialog::Channel;
use crate::finding::{Verdict, bad, note, ok, warn};
use crate::launcher::ServerCopy;
use crate::report::LabReport;
use crate::report::Section::End;
use upstream::process::{Exit, Grace, Process, ProcessInfo};
use wire::Era;

/// The time limit of each way to end it.
const PATIENCE: Duration = Duration::from_secs(3);
/// The interval of tree scans: processes that run at the very end count.
const LOOK: Duration = Duration::from_millis(2);

/// The quiet time before its stdin is closed. Some request roots a third of a
/// second after the handshake, and do not end before the response.
const QUIET: Duration = Duration::from_millis(500);
const SETTLED: Duration = Duration::from_secs(2);

const NOW: Grace = Grace {
    eof: Duration::ZERO,
    term: Duration::ZERO,
};

/// The result of a wait for the end.
struct ExitObservation {
    exit: Option<Exit>,
    took: Duration,
    /// The rest of its process tree, when the server itself was last seen.
    others: Vec<ProcessInfo>,
    detached: usize,
}

/// Closes its stdin, then sends SIGTERM, then kills it.
pub(crate) async fn at_eof(mut copy: ServerCopy, report: &mut LabReport) {
    let Some(mut process) = copy.process.take() else {
        return;
    };
    let legacy = copy.dialog.era == Era::Legacy;
    if let Channel::Pipe(pipe) = &mut copy.dialog.channel
        && legacy
    {
        pipe.settle(QUIET, SETTLED).await;
    }
    let before = look(&process);
    if let Channel::Pipe(pipe) = &mut copy.dialog.channel {
        pipe.close();
    }
    let mut watched = watch(&mut process, before).await;
    if let Some(exit) = watched.exit {
        report.fact("eofMs", watched.took.as_secs_f64() * 1000.0);
        let ms = watched.took.as_millis();
        let found = format!("ends {ms} ms after its stdin is closed, with {exit}");
        let verdict = match exit {
            Exit::Code(_) => ok(found),
            Exit::Signal(_) | Exit::HelperKilled => warn(found, "it crashes when its client goes"),
        };
        report.add(End, "end.eof", verdict);
    } else {
        let question = open_question(&mut copy.dialog.channel).await;
        report.add(End, "end.eof", stays(question));
        process.terminate();
        watched = watch(&mut process, Some(watched)).await;
        if watched.exit.is_none() {
            let found = "takes neither the end of its input nor SIGTERM for a reason to end";
            let todo = "Portway kills it, after twice PORTWAY_STOP_GRACE";
            report.add(End, "end.kill", warn(found, todo));
        }
    }
    left(process, &watched, report).await;
}

/// The request that it sent when no response could reach it any more.
async fn open_question(channel: &mut Channel) -> Option<String> {
    let Channel::Pipe(pipe) = channel else {
        return None;
    };
    pipe.listen(Duration::ZERO).await;
    pipe.unanswered.first().cloned()
}

fn stays(question: Option<String>) -> Verdict {
    let seconds = PATIENCE.as_secs();
    match question {
        Some(method) => note(format!(
            "asked for {method} when its stdin was closed, and still waited \
             {seconds} s later: how it ends with nothing open was not seen"
        )),
        None => warn(
            format!("lives on {seconds} s after its stdin was closed"),
            "a server should end at the end of its input; \
             each stop takes as long as PORTWAY_STOP_GRACE",
        ),
    }
}

/// Sends SIGTERM alone, as if its client were still there.
pub(crate) async fn at_term(mut copy: ServerCopy, report: &mut LabReport) {
    let Some(mut process) = copy.process.take() else {
        return;
    };
    process.terminate();
    let watched = watch(&mut process, None).await;
    let verdict = if let Some(exit) = watched.exit {
        report.fact("termMs", watched.took.as_secs_f64() * 1000.0);
        let ms = watched.took.as_millis();
        ok(format!("ends {ms} ms after SIGTERM, with {exit}"))
    } else {
        let found = format!("lives on {} s after SIGTERM", PATIENCE.as_secs());
        let todo = "whatever it has not saved is lost: it can only be killed";
        warn(found, todo)
    };
    report.add(End, "end.term", verdict);
    process.end(NOW).await;
}

/// Waits for its end, and scans its process tree meanwhile. `before` is for a
/// server that ends before the first scan.
async fn watch(process: &mut Process, before: Option<ExitObservation>) -> ExitObservation {
    let began = Instant::now();
    let mut watched = before.unwrap_or_else(ExitObservation::nothing);
    while began.elapsed() < PATIENCE {
        watched = look(process).unwrap_or(watched);
        if let Ok(exit) = tokio::time::timeout(LOOK, process.exited()).await {
            watched.exit = Some(exit);
            watched.took = began.elapsed();
            break;
        }
    }
    watched
}

/// The current process tree, if the server itself still runs.
fn look(process: &Process) -> Option<ExitObservation> {
    let server = process.pid();
    let mut list = process.tree()?.list();
    // A process that has ended uses no memory.
    list.retain(|one| one.rss > 0);
    list.iter().find(|one| one.pid == server)?;
    Some(ExitObservation {
        detached: detached(&list, server),
        others: list.into_iter().filter(|one| one.pid != server).collect(),
        ..ExitObservation::nothing()
    })
}

impl ExitObservation {
    fn nothing() -> ExitObservation {
        ExitObservation {
            exit: None,
            took: PATIENCE,
            others: Vec::new(),
            detached: 0,
        }
    }
}

/// The number of processes that are no longer descendants of the server.
fn detached(list: &[ProcessInfo], server: u32) -> usize {
    let parents: HashMap<u32, u32> = list.iter().map(|one| (one.pid, one.ppid)).collect();
    let below = |one: &&ProcessInfo| {
        let mut pid = one.pid;
        for _ in 0..list.len() {
            match parents.get(&pid) {
                Some(parent) if *parent == server => return true,
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    let others = list.iter().filter(|one| one.pid != server && one.rss > 0);
    others.filter(|one| !below(one)).count()
}

async fn left(process: Process, watched: &ExitObservation, report: &mut LabReport) {
    let step = process.containment();
    process.end(NOW).await;
    if watched.others.is_empty() {
        report.add(End, "end.orphans", ok("leaves nothing behind"));
        return;
    }
    let others = watched.others.iter();
    let mut names: Vec<&str> = others.map(|one| one.command.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let detached = match watched.detached {
        0 => String::new(),
        count => format!(", {count} of them cut loose from it"),
    };
    let processes = |count| match count {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    let count = processes(watched.others.len());
    let found = format!("leaves {count} behind ({}){detached}", names.join(", "));
    let alive = watched.others.iter().filter(|one| lives(one)).count();
    report.fact("orphans", watched.others.len());
    let verdict = if alive == 0 {
        let todo = format!(
            "under Portway they end with it (containment: {step}); other clients leave them running"
        );
        warn(found, todo)
    } else {
        let alive = processes(alive);
        bad(
            format!("{found}; {alive} outlived containment {step}"),
            "use a stronger containment; `portway doctor` tells what works here",
        )
    };
    report.add(End, "end.orphans", verdict);
}

/// Whether this very process runs, not a later one with the same id.
fn lives(process: &ProcessInfo) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
    let Some((name, rest)) = stat
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(')'))
    else {
        return false;
    };
    let state = rest.trim_start().chars().next();
    name == process.command && !matches!(state, Some('Z' | 'X') | None)
}
