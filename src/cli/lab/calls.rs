//! Calls of tools, where a person has allowed them: time, progress,
//! cancellation, questions back, changes of lists.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::bench::STEP;
use super::eras::Hello;
use super::line::{Cancelled, Line, Note, Reply, Said};
use super::report::{Part, Report};
use super::{Wishes, truth};
use crate::cli::finding::{Finding, counted, short};
use config::Isolation;
use wire::Era;

/// A shorter call is over before it can be taken back.
const CANCELLABLE: Duration = Duration::from_millis(150);
/// Added to a call's own time when waiting for what should not come.
const MARGIN: Duration = Duration::from_millis(500);
/// For what should not come after an answer.
const AFTERMATH: Duration = Duration::from_millis(300);
const MOST_SAFE_CALLS: usize = 10;
const CHANGED: &str = "notifications/tools/list_changed";

pub(super) async fn examine(
    line: &mut Line,
    hello: &Hello,
    tools: &[Value],
    wishes: &Wishes,
    report: &mut Report,
) {
    if let Some((name, arguments)) = wishes.called() {
        wanted(line, hello, tools, name, arguments, wishes.limit, report).await;
    }
    if wishes.safe_calls {
        safe(line, tools, wishes.limit, report).await;
    }
    if wishes.called().is_none() && !wishes.safe_calls {
        let found = "no tool was called: cancellation, progress and questions are unknown";
        let todo = "--call NAME JSON tries one of your choice, best a slow one; \
                    --safe-calls those that say they only read";
        report.add(Part::Calls, Finding::note("calls", found).with(todo));
    }
    asked(line, report);
}

async fn wanted(
    line: &mut Line,
    hello: &Hello,
    tools: &[Value],
    name: &str,
    arguments: &Value,
    limit: Duration,
    report: &mut Report,
) {
    if !tools.iter().any(|tool| tool["name"] == name) {
        let found = format!("there is no tool {name:?}");
        let names: Vec<&str> = tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        let todo = format!("it has: {}", short(&names.join(", "), 600));
        report.add(Part::Calls, Finding::bad("call", found, todo));
        return;
    }
    let call = |token: &str| json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}});
    let first_note = line.log().notes.len();
    let slow = line.question("tools/call", call("lab-1"));
    let quick = line.question(quick(hello.era), json!({}));
    let began = Instant::now();
    let replies = line.ask_all(&[slow, quick], limit).await;
    let [call_reply, quick_reply] = &replies[..] else {
        return;
    };
    told(name, call_reply, limit, report);
    let answered_at = began + call_reply.took;
    if matches!(call_reply.said, Said::Gone(_)) {
        return;
    }
    line.listen(AFTERMATH).await;
    let notes = line.log().notes.split_off(first_note);
    progress(&notes, "lab-1", answered_at, report);
    concurrency(call_reply, quick_reply, report);
    changes(line, hello, tools, &notes, report).await;
    let ended = call_reply.said.result().is_some();
    if ended && call_reply.took < CANCELLABLE {
        let found = format!(
            "too quick to be cancelled ({} ms)",
            call_reply.took.as_millis()
        );
        report.add(Part::Calls, Finding::note("cancel", found));
        return;
    }
    let question = line.question("tools/call", call("lab-2"));
    let rest = if ended {
        call_reply.took + MARGIN
    } else {
        MARGIN
    };
    let after = (call_reply.took / 3).min(STEP);
    let outcome = line.ask_and_cancel(&question, after, rest).await;
    report.add(Part::Calls, cancelled(outcome, hello.era, ended));
}

fn quick(era: Era) -> &'static str {
    match era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    }
}

fn told(name: &str, reply: &Reply, limit: Duration, report: &mut Report) {
    let ms = reply.took.as_millis();
    report.fact("callMs", reply.took.as_secs_f64() * 1000.0);
    let finding = match &reply.said {
        Said::Result(result) if result["resultType"] == "input_required" => {
            report.advice.isolation(
                Isolation::Principal,
                "its tools ask their user something: each user gets a copy",
            );
            Finding::note("call", format!("{name}: asks for input after {ms} ms"))
        }
        Said::Result(result) if result["isError"] == true => {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let found = format!(
                "{name}: a result with isError in {ms} ms: {}",
                short(text, 200)
            );
            Finding::note("call", found)
        }
        Said::Result(_) => {
            report.advice.took(reply.took);
            Finding::ok("call", format!("{name}: a result in {ms} ms"))
        }
        Said::Silent(_) => Finding::bad(
            "call",
            format!("{name}: no answer within {} s", limit.as_secs()),
            "--timeout allows more; a tool should answer, if only with an error",
        ),
        Said::Gone(_) => Finding::bad(
            "call",
            format!("{name}: the server ended during the call"),
            "look at what it wrote to stderr",
        ),
        other => Finding::warn(
            "call",
            format!("{name}: {}", other.in_words()),
            "look at the arguments",
        ),
    };
    report.add(Part::Calls, finding);
}

/// Of its own token, rising, and over when the call is.
fn progress(notes: &[Note], token: &str, answered_at: Instant, report: &mut Report) {
    let all: Vec<&Note> = notes
        .iter()
        .filter(|note| note.method == "notifications/progress")
        .collect();
    let (own, foreign): (Vec<&Note>, Vec<&Note>) = all
        .into_iter()
        .partition(|note| note.params["progressToken"] == token);
    if !foreign.is_empty() {
        let todo = "a progressToken must be given back as it came; Portway passes over others";
        let found = format!(
            "{} with a token that nobody gave",
            counted(foreign.len(), "report")
        );
        report.add(Part::Calls, Finding::warn("progress", found, todo));
    }
    if own.is_empty() {
        if foreign.is_empty() {
            report.add(Part::Calls, Finding::note("progress", "none is reported"));
        }
        return;
    }
    let values: Vec<f64> = own
        .iter()
        .filter_map(|note| note.params["progress"].as_f64())
        .collect();
    let rising = values.len() == own.len() && values.windows(2).all(|two| two[0] < two[1]);
    let late = own.iter().filter(|note| note.at > answered_at).count();
    let found = counted(own.len(), "report");
    report.add(
        Part::Calls,
        if !rising {
            let todo = "progress must rise with every report";
            Finding::warn(
                "progress",
                format!("{found}, and the number does not rise"),
                todo,
            )
        } else if late > 0 {
            let todo = "progress must stop with the answer";
            Finding::warn(
                "progress",
                format!("{found}, {late} of them after the answer"),
                todo,
            )
        } else {
            Finding::ok(
                "progress",
                format!("{found}, rising; each restarts the time limit"),
            )
        },
    );
}

fn concurrency(call: &Reply, quick: &Reply, report: &mut Report) {
    if call.took < CANCELLABLE && call.said.result().is_some() {
        return;
    }
    let finding = match quick.said.result() {
        Some(_) if quick.took < call.took => Finding::ok(
            "during a call",
            format!("answers others after {} ms", quick.took.as_millis()),
        ),
        Some(_) => {
            let todo = "calls wait for each other: give slow tools a server of their own";
            report.advice.isolation(
                Isolation::Principal,
                "it answers one request at a time: each user gets a copy",
            );
            Finding::warn(
                "during a call",
                "answers nobody else until the call is over",
                todo,
            )
        }
        None => Finding::bad(
            "during a call",
            format!("a health check gives {}", quick.said.in_words()),
            "Portway would take it for dead and restart it during a long call",
        ),
    };
    report.add(Part::Calls, finding);
}

fn cancelled(outcome: Cancelled, era: Era, ends: bool) -> Finding {
    let id = "cancel";
    match outcome {
        Cancelled::TooLate => Finding::note(id, "over before it could be cancelled"),
        Cancelled::Closed => {
            Finding::note(id, "by closing the stream; whether it stops cannot be seen")
        }
        Cancelled::Silent if ends => Finding::ok(id, "stops: no answer after the cancellation"),
        Cancelled::Silent => Finding::note(id, "no answer with and without a cancellation"),
        Cancelled::Answered(Said::Result(_), after) => {
            let found = format!(
                "ignored: the result came {} ms later all the same",
                after.as_millis()
            );
            let todo = "a cancelled call goes on and costs what it costs; Portway drops the result";
            Finding::warn(id, found, todo)
        }
        Cancelled::Answered(Said::Gone(_), _) => Finding::bad(
            id,
            "the server ended",
            "a cancellation must not end a server",
        ),
        Cancelled::Answered(said, after) => {
            let found = format!(
                "stops, and says so after {} ms ({})",
                after.as_millis(),
                short(&said.in_words(), 80)
            );
            match era {
                Era::Modern => Finding::note(id, found).with("2026-07-28 wants no answer then"),
                Era::Legacy => Finding::ok(id, found),
            }
        }
    }
}

/// Whether a call changed the tools, and the server said so.
async fn changes(
    line: &mut Line,
    hello: &Hello,
    before: &[Value],
    notes: &[Note],
    report: &mut Report,
) {
    let after = truth::list(line, "tools/list", "tools").await.items;
    let changed = after != before;
    let heard = line.log().heard(CHANGED) || notes.iter().any(|note| note.method == CHANGED);
    let announced = hello.offers_flag("tools", "listChanged");
    let finding = match (changed, heard) {
        (true, true) => Finding::ok("list_changed", "the call changed its tools, and it said so"),
        (true, false) => Finding::warn(
            "list_changed",
            "the call changed its tools, and it did not say so",
            match announced {
                true => "it announces listChanged: notifications/tools/list_changed must follow",
                false => "clients see the old list until the next connection",
            },
        ),
        (false, true) if !announced => Finding::note("list_changed", "sent, though not announced"),
        (false, _) => return,
    };
    report.add(Part::Calls, finding);
}

/// Only what says that it reads, and wants no argument.
fn is_safe(tool: &Value) -> bool {
    let required = tool["inputSchema"]["required"].as_array();
    tool["annotations"]["readOnlyHint"] == true && required.is_none_or(Vec::is_empty)
}

async fn safe(line: &mut Line, tools: &[Value], limit: Duration, report: &mut Report) {
    let chosen: Vec<&Value> = tools.iter().filter(|tool| is_safe(tool)).collect();
    if chosen.is_empty() {
        let found = "no tool says that it only reads and wants no argument";
        report.add(Part::Calls, Finding::note("safe calls", found));
    }
    for tool in chosen.into_iter().take(MOST_SAFE_CALLS) {
        let name = tool["name"].as_str().unwrap_or_default();
        let params = json!({"name": name, "arguments": {}});
        let reply = line.ask("tools/call", params, limit.min(STEP * 2)).await;
        let ms = reply.took.as_millis();
        let lacking = tool["outputSchema"].is_object()
            && reply.said.result().is_some_and(|result| {
                result["isError"] != true && result.get("structuredContent").is_none()
            });
        report.add(
            Part::Calls,
            match &reply.said {
                Said::Result(_) if lacking => Finding::warn(
                    "safe call",
                    format!("{name}: has an outputSchema, and its result no structuredContent"),
                    "clients that check results refuse it",
                ),
                Said::Result(result) if result["isError"] == true => {
                    Finding::note("safe call", format!("{name}: isError in {ms} ms"))
                }
                Said::Result(_) => Finding::ok("safe call", format!("{name}: a result in {ms} ms")),
                other => Finding::warn(
                    "safe call",
                    format!("{name}: {}", other.in_words()),
                    "it says that it only reads and wants no argument",
                ),
            },
        );
        if matches!(reply.said, Said::Gone(_)) {
            return;
        }
    }
}

fn asked(line: &mut Line, report: &mut Report) {
    let modern = line.era == Era::Modern;
    let asks = &line.log().asks;
    if asks.is_empty() {
        return;
    }
    let mut methods: Vec<&str> = asks.iter().map(|note| note.method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    let methods = methods.join(", ");
    let roots_only = methods == "roots/list";
    if modern {
        let todo = "2026-07-28 forbids requests of the server: end the call with input_required";
        report.add(
            Part::Calls,
            Finding::warn("asks", format!("asked its client: {methods}"), todo),
        );
        return;
    }
    report.add(
        Part::Calls,
        Finding::note("asks", format!("asked its client: {methods}")),
    );
    if !roots_only {
        report.advice.isolation(
            Isolation::Principal,
            "it asks its user during calls: with a copy for each, nobody answers for another",
        );
    }
}
