//! Checks of a started server: one copy at a time, since some hold a lock.

use std::time::Duration;

use crate::dialog::{Channel, Reaction};
use crate::eras::{self, HandshakeAnswer, HandshakeResult};
use crate::finding::{bad, warn};
use crate::launcher::{Launcher, ServerCopy};
use crate::report::{LabReport, Section};
use crate::{Experiment, advice, cost, ending, examine_dialog};
use config::{Containment, EraChoice};
use upstream::containment::ContainmentStep;
use wire::Era;

/// The part of the handshake limit for a response to `server/discover`,
/// including a slow start.
const PROBE: f64 = 0.66;

/// The first copy, its handshake, and its response to `server/discover`.
type FirstCopy = (ServerCopy, HandshakeAnswer, HandshakeResult);

pub(crate) async fn examine(
    launcher: &mut Launcher,
    experiment: &Experiment,
    report: &mut LabReport,
) {
    let Some((mut copy, hello, modern)) = first(launcher, report).await else {
        return;
    };
    let start = copy.began.elapsed();
    examine_dialog(&mut copy, &hello, experiment, report, |copy, report| {
        cost::started(start, copy.began.elapsed(), report);
        cost::memory(copy, report);
    })
    .await;
    cost::output(&copy, report);
    died(&mut copy, report).await;
    ending::at_eof(copy, report).await;
    second(launcher, &hello, modern, report).await;
}

/// Connects as the fleet does: `server/discover`, then on the same pipe
/// `initialize`; if needed in a new process.
async fn first(launcher: &mut Launcher, report: &mut LabReport) -> Option<FirstCopy> {
    let mut copy = match launcher.start().await {
        Ok(copy) => copy,
        Err(reason) => {
            let todo = "fix the command; `portway doctor` looks at PATH and what is installed";
            report.add(Section::Eras, "start", bad(reason, todo));
            return None;
        }
    };
    let modern = eras::modern(&mut copy.dialog, launcher.handshake_limit.mul_f64(PROBE)).await;
    let reaction = match &modern {
        Ok(hello) => {
            let hello = hello.clone();
            return Some((copy, hello, modern));
        }
        Err(reaction) => reaction.clone(),
    };
    if !matches!(reaction, Reaction::Gone(_)) {
        let hello = eras::legacy(&mut copy.dialog, launcher.handshake_limit).await;
        if let Ok(hello) = hello {
            probed_badly(&reaction, report);
            // A late response to the first request does not count as foreign.
            copy.dialog.log().foreign.retain(|id| *id != 1);
            return Some((copy, hello, modern));
        }
    }
    let exit = copy.exit().await.map(|exit| exit.to_string());
    let words = copy.last_words();
    copy.end().await;
    afresh(launcher, modern, exit, words, report).await
}

fn probed_badly(reaction: &Reaction, report: &mut LabReport) {
    if !matches!(reaction, Reaction::Silent(_)) {
        return;
    }
    let found = "never answers server/discover, so that each start waits for it";
    let todo = "\"era\": \"legacy\" saves the wait";
    report.add(Section::Eras, "era.probe", warn(found, todo));
    let reason = "it never answers the question for its era: saves 2.5 s at each start";
    report.advice.era(EraChoice::Legacy, reason);
}

/// Starts a new process that gets no `server/discover`.
async fn afresh(
    launcher: &mut Launcher,
    modern: HandshakeResult,
    exit: Option<String>,
    words: String,
    report: &mut LabReport,
) -> Option<FirstCopy> {
    let mut copy = launcher.start().await.ok()?;
    let legacy = eras::legacy(&mut copy.dialog, launcher.handshake_limit).await;
    let reaction = match legacy {
        Ok(hello) => {
            let what = match exit {
                Some(exit) => format!("ends with {exit} when asked for server/discover"),
                None => "does not take initialize after server/discover".to_owned(),
            };
            let todo = "\"era\": \"legacy\" spares it the question";
            report.add(Section::Eras, "era.probe", warn(what, todo));
            let reason = "it cannot stand the question for its era, and is started twice without";
            report.advice.era(EraChoice::Legacy, reason);
            return Some((copy, hello, modern));
        }
        Err(reaction) => reaction,
    };
    let late = copy.exit().await.map(|exit| exit.to_string());
    let silent = copy.outputs.lock().tail.is_empty();
    let mut words = if silent { words } else { copy.last_words() };
    if let Some(line) = &copy.outputs.lock().first_noise {
        words += &format!("\non stdout: {line}");
    }
    if let Some(id) = copy.dialog.log().foreign.first() {
        words += &format!("\nan answer came under an id that nobody asked with: {id}");
    }
    copy.end().await;
    hopeless(&modern, &reaction, late.or(exit), &words, report);
    if loosely(launcher).await {
        let reason = "it does not work in a PID namespace".to_owned();
        let todo = "\"containment\": \"subreaper\"";
        report.add(Section::Eras, "containment", warn(reason.clone(), todo));
        report.advice.containment(Containment::Subreaper, reason);
        report.advice.remedy = true;
    }
    None
}

fn hopeless(
    modern: &HandshakeResult,
    legacy: &Reaction,
    exit: Option<String>,
    words: &str,
    report: &mut LabReport,
) {
    eras::tell(modern, &Err(legacy.clone()), report);
    let echoes = matches!(legacy, Reaction::Echo);
    let what = match exit {
        Some(exit) => format!("it ends with {exit}"),
        None if echoes => "it only echoes what it is sent".to_owned(),
        None => format!("initialize gives {}", legacy.in_words()),
    };
    let found = format!("no conversation: {what}{words}");
    let missing = advice::missing_variables(words.lines());
    for variable in &missing {
        report.advice.needs(variable);
    }
    let todo = if !missing.is_empty() {
        format!("give it {} (\"env\")", missing.join(", "))
    } else if echoes {
        "name a command that speaks MCP on stdin and stdout".to_owned()
    } else {
        "run the command by hand: does it speak MCP on stdin and stdout?".to_owned()
    };
    report.add(Section::Eras, "start", bad(found, todo));
}

/// Whether it works with weaker containment.
async fn loosely(launcher: &mut Launcher) -> bool {
    let Some(command) = &mut launcher.command else {
        return false;
    };
    if command.containment != Containment::Auto {
        return false;
    }
    let ladder = upstream::containment::ladder(&command.shim).await;
    let strongest =
        ladder.is_ok_and(|ladder| ladder.works().first() == Some(&ContainmentStep::Namespace));
    if !strongest {
        return false;
    }
    command.containment = Containment::Subreaper;
    let Ok(mut copy) = launcher.start().await else {
        return false;
    };
    let legacy = eras::legacy(&mut copy.dialog, launcher.handshake_limit).await;
    copy.end().await;
    legacy.is_ok()
}

async fn died(copy: &mut ServerCopy, report: &mut LabReport) {
    let Some(process) = copy.process.as_mut() else {
        return;
    };
    // The report of its end may come long after the end of its output.
    let ended = matches!(&copy.dialog.channel, Channel::Pipe(pipe) if pipe.has_ended());
    let soon = Duration::from_millis(if ended { 5_000 } else { 20 });
    if let Ok(exit) = tokio::time::timeout(soon, process.exited()).await {
        let found = format!("ended by itself with {exit}{}", copy.last_words());
        let todo = "Portway starts it again, three times in a row at most";
        report.add(Section::End, "crash", bad(found, todo));
    }
}

/// Starts another copy: for the other era, and for SIGTERM.
async fn second(
    launcher: &Launcher,
    main: &HandshakeAnswer,
    modern: HandshakeResult,
    report: &mut LabReport,
) {
    let mut copy = match launcher.start().await {
        Ok(copy) => copy,
        Err(reason) => {
            let todo = "it started once: does it hold a lock, a port?";
            report.add(Section::Cost, "start again", bad(reason, todo));
            return;
        }
    };
    let outcome = eras::legacy(&mut copy.dialog, launcher.handshake_limit).await;
    if outcome.is_ok() {
        cost::started_again(copy.began.elapsed(), report);
    }
    if main.era == Era::Modern {
        eras::tell(&modern, &outcome, report);
    } else {
        eras::tell(&modern, &Ok(main.clone()), report);
        if let Err(reaction) = &outcome {
            let (reaction, words) = (reaction.in_words(), copy.last_words());
            let found = format!("a second start fails: {reaction}{words}");
            let todo = "does it hold a lock, a port, that it did not give back?";
            report.add(Section::Cost, "start again", bad(found, todo));
        }
    }
    if matches!(outcome, Err(Reaction::Gone(_))) {
        copy.end().await;
        return;
    }
    ending::at_term(copy, report).await;
}
