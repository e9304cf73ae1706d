//! A server that is started: one copy at a time, since some hold a lock.

use std::time::Duration;

use super::bench::{Bench, Subject};
use super::cost::{self, Start};
use super::eras::{self, Hello};
use super::line::Said;
use super::report::{Part, Report};
use super::{Wishes, advice, ending, exam};
use crate::cli::finding::Finding;
use config::{Containment, EraChoice};
use upstream::containment::Step;
use wire::Era;

/// For an answer to `server/discover`, a slow start included: part of the
/// patience for the handshake.
const PROBE: f64 = 0.66;

/// The first copy, and how it came to speak.
struct First {
    subject: Subject,
    hello: Hello,
    /// What came of `server/discover`.
    modern: Result<Hello, Said>,
}

pub(super) async fn examine(bench: &mut Bench, wishes: &Wishes, report: &mut Report) {
    let Some(first) = first(bench, report).await else {
        return;
    };
    let First {
        mut subject,
        hello,
        modern,
    } = first;
    let start = subject.began.elapsed();
    exam(
        &mut subject,
        &hello,
        bench,
        wishes,
        report,
        |subject, report| {
            let lists = subject.began.elapsed();
            cost::started(
                &Start {
                    hello: start,
                    lists,
                },
                report,
            );
            cost::memory(subject, report);
        },
    )
    .await;
    cost::output(&subject, report);
    died(&mut subject, report).await;
    ending::at_eof(subject, report).await;
    second(bench, &hello, modern, report).await;
}

/// As the fleet connects: `server/discover`, and on the same pipe the old
/// way; if need be in a new process.
async fn first(bench: &mut Bench, report: &mut Report) -> Option<First> {
    let mut subject = match bench.start().await {
        Ok(subject) => subject,
        Err(reason) => {
            let todo = "mend the command; `portway doctor` looks at PATH and what is installed";
            report.add(Part::Eras, Finding::bad("start", reason, todo));
            return None;
        }
    };
    let modern = eras::modern(&mut subject.line, bench.patience.mul_f64(PROBE)).await;
    let said = match &modern {
        Ok(hello) => {
            let hello = hello.clone();
            return Some(First {
                subject,
                hello,
                modern,
            });
        }
        Err(said) => said.clone(),
    };
    if !matches!(said, Said::Gone(_)) {
        let hello = eras::legacy(&mut subject.line, bench.patience).await;
        if let Ok(hello) = hello {
            probed_badly(&said, report);
            // A late answer to the first question is no answer to nothing.
            subject.line.log().foreign.retain(|id| *id != 1);
            return Some(First {
                subject,
                hello,
                modern,
            });
        }
    }
    let exit = subject.exit().await;
    let words = subject.last_words();
    subject.put_away().await;
    afresh(
        bench,
        modern,
        exit.map(|exit| exit.to_string()),
        words,
        report,
    )
    .await
}

fn probed_badly(said: &Said, report: &mut Report) {
    if !matches!(said, Said::Silent(_)) {
        return;
    }
    let found = "never answers server/discover, so that each start waits for it";
    let todo = "\"era\": \"legacy\" saves the wait";
    report.add(Part::Eras, Finding::warn("era.probe", found, todo));
    let reason = "it never answers the question for its era: saves 2.5 s at each start";
    report.advice.era(EraChoice::Legacy, reason);
}

/// A process that has never heard of `server/discover`.
async fn afresh(
    bench: &mut Bench,
    modern: Result<Hello, Said>,
    exit: Option<String>,
    words: String,
    report: &mut Report,
) -> Option<First> {
    let mut subject = bench.start().await.ok()?;
    let legacy = eras::legacy(&mut subject.line, bench.patience).await;
    let said = match legacy {
        Ok(hello) => {
            let what = match exit {
                Some(exit) => format!("ends with {exit} when asked for server/discover"),
                None => "does not take initialize after server/discover".to_owned(),
            };
            let todo = "\"era\": \"legacy\" spares it the question";
            report.add(Part::Eras, Finding::warn("era.probe", what, todo));
            let reason = "it cannot stand the question for its era, and is started twice without";
            report.advice.era(EraChoice::Legacy, reason);
            return Some(First {
                subject,
                hello,
                modern,
            });
        }
        Err(said) => said,
    };
    let late = subject.exit().await.map(|exit| exit.to_string());
    let silent = subject.outputs.lock().tail.is_empty();
    let mut words = if silent { words } else { subject.last_words() };
    if let Some(line) = &subject.outputs.lock().first_noise {
        words += &format!("\non stdout: {line}");
    }
    if let Some(id) = subject.line.log().foreign.first() {
        words += &format!("\nan answer came under an id that nobody asked with: {id}");
    }
    subject.put_away().await;
    hopeless(&modern, &said, late.or(exit), &words, report);
    if loosely(bench).await {
        let reason = "it does not work in a PID namespace".to_owned();
        let todo = "\"containment\": \"subreaper\"";
        report.add(
            Part::Eras,
            Finding::warn("containment", reason.clone(), todo),
        );
        report.advice.containment(Containment::Subreaper, reason);
        report.advice.remedy = true;
    }
    None
}

fn hopeless(
    modern: &Result<Hello, Said>,
    legacy: &Said,
    exit: Option<String>,
    words: &str,
    report: &mut Report,
) {
    eras::tell(modern, &Err(legacy.clone()), report);
    let echoes = matches!(legacy, Said::Echo);
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
    let todo = match missing.is_empty() {
        false => format!("give it {} (\"env\")", missing.join(", ")),
        true if echoes => "name a command that speaks MCP on stdin and stdout".to_owned(),
        true => "run the command by hand: does it speak MCP on stdin and stdout?".to_owned(),
    };
    report.add(Part::Eras, Finding::bad("start", found, todo));
}

/// Whether it speaks once it is held less tightly.
async fn loosely(bench: &mut Bench) -> bool {
    let strongest = match &bench.command {
        Some(command) if command.containment == Containment::Auto => {
            let ladder = upstream::containment::ladder(&command.shim).await;
            ladder
                .ok()
                .and_then(|ladder| ladder.works().first().copied())
        }
        _ => None,
    };
    if strongest != Some(Step::Namespace) {
        return false;
    }
    if let Some(command) = &mut bench.command {
        command.containment = Containment::Subreaper;
    }
    let Ok(mut subject) = bench.start().await else {
        return false;
    };
    let legacy = eras::legacy(&mut subject.line, bench.patience).await;
    subject.put_away().await;
    legacy.is_ok()
}

async fn died(subject: &mut Subject, report: &mut Report) {
    let Some(process) = subject.process.as_mut() else {
        return;
    };
    let soon = Duration::from_millis(20);
    if let Ok(exit) = tokio::time::timeout(soon, process.exited()).await {
        let found = format!("ended by itself with {exit}{}", subject.last_words());
        let todo = "Portway starts it again, three times in a row at most";
        report.add(Part::End, Finding::bad("crash", found, todo));
    }
}

/// Another copy: for the other era, and for SIGTERM.
async fn second(bench: &Bench, main: &Hello, modern: Result<Hello, Said>, report: &mut Report) {
    let mut subject = match bench.start().await {
        Ok(subject) => subject,
        Err(reason) => {
            let todo = "it started once: does it hold a lock, a port?";
            report.add(Part::Cost, Finding::bad("start again", reason, todo));
            return;
        }
    };
    let outcome = eras::legacy(&mut subject.line, bench.patience).await;
    if outcome.is_ok() {
        cost::started_again(subject.began.elapsed(), report);
    }
    match (main.era, &outcome) {
        (Era::Modern, _) => eras::tell(&modern, &outcome, report),
        (Era::Legacy, Err(said)) => {
            eras::tell(&modern, &Ok(main.clone()), report);
            let found = format!(
                "a second start fails: {}{}",
                said.in_words(),
                subject.last_words()
            );
            let todo = "does it hold a lock, a port, that it did not give back?";
            report.add(Part::Cost, Finding::bad("start again", found, todo));
        }
        (Era::Legacy, Ok(_)) => eras::tell(&modern, &Ok(main.clone()), report),
    }
    if matches!(outcome, Err(Said::Gone(_))) {
        subject.put_away().await;
        return;
    }
    ending::at_term(subject, report).await;
}
