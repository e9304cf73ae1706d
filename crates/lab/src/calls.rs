//! Calls of tools, where a person has allowed them: time, progress,
//! cancellation, requests of the server, changes of lists.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::dialog::{CancelOutcome, Dialog, LoggedMessage, Reaction, TimedReaction};
use crate::eras::HandshakeAnswer;
use crate::finding::{Finding, counted, short};
use crate::launcher::STEP;
use crate::report::{LabReport, Section};
use crate::{Experiment, lists};
use config::Isolation;
use wire::Era;

/// A shorter call is over before it can be cancelled.
const CANCELLABLE: Duration = Duration::from_millis(150);
/// Added to a call's own time when waiting for a response that should not come.
const MARGIN: Duration = Duration::from_millis(500);
/// The wait for messages that should not come after a response.
const AFTERMATH: Duration = Duration::from_millis(300);
const MOST_SAFE_CALLS: usize = 10;
const CHANGED: &str = "notifications/tools/list_changed";

pub(crate) async fn examine(
    dialog: &mut Dialog,
    hello: &HandshakeAnswer,
    tools: &[Value],
    experiment: &Experiment,
    report: &mut LabReport,
) {
    let limit = experiment.timeout / 3;
    if let Some((name, arguments)) = &experiment.call {
        wanted(dialog, hello, tools, name, arguments, limit, report).await;
    }
    if experiment.safe_calls {
        safe(dialog, tools, limit, report).await;
    }
    if experiment.call.is_none() && !experiment.safe_calls {
        let found = "no tool was called: cancellation, progress and questions are unknown";
        let todo = "--call NAME JSON tries one of your choice, best a slow one; \
                    --safe-calls those that say they only read";
        report.add(Section::Calls, Finding::note("calls", found).with(todo));
    }
    asked(dialog, report);
}

async fn wanted(
    dialog: &mut Dialog,
    hello: &HandshakeAnswer,
    tools: &[Value],
    name: &str,
    arguments: &Value,
    limit: Duration,
    report: &mut LabReport,
) {
    if !tools.iter().any(|tool| tool["name"] == name) {
        let found = format!("there is no tool {name:?}");
        let names: Vec<&str> = tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        let todo = format!("it has: {}", short(&names.join(", "), 600));
        report.bad(Section::Calls, "call", found, todo);
        return;
    }
    let call = |token: &str| json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}});
    let first_note = dialog.log().notes.len();
    let slow = dialog.request("tools/call", call("lab-1"));
    let quick = dialog.request(quick(hello.era), json!({}));
    let began = Instant::now();
    let replies = dialog.ask_all(&[slow, quick], limit).await;
    let [call_reply, quick_reply] = &replies[..] else {
        return;
    };
    told(name, call_reply, limit, report);
    let answered_at = began + call_reply.took;
    if matches!(call_reply.reaction, Reaction::Gone(_)) {
        return;
    }
    dialog.listen(AFTERMATH).await;
    let notes = dialog.log().notes.split_off(first_note);
    progress(&notes, "lab-1", answered_at, report);
    concurrency(call_reply, quick_reply, report);
    changes(dialog, hello, tools, &notes, report).await;
    let ended = call_reply.reaction.result().is_some();
    if ended && call_reply.took < CANCELLABLE {
        let found = format!(
            "too quick to be cancelled ({} ms)",
            call_reply.took.as_millis()
        );
        report.note(Section::Calls, "cancel", found);
        return;
    }
    let question = dialog.request("tools/call", call("lab-2"));
    let rest = if ended {
        call_reply.took + MARGIN
    } else {
        MARGIN
    };
    let after = (call_reply.took / 3).min(STEP);
    let outcome = dialog.ask_and_cancel(&question, after, rest).await;
    report.add(Section::Calls, cancelled(outcome, hello.era, ended));
}

fn quick(era: Era) -> &'static str {
    match era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    }
}

fn told(name: &str, reply: &TimedReaction, limit: Duration, report: &mut LabReport) {
    let ms = reply.took.as_millis();
    report.fact("callMs", reply.took.as_secs_f64() * 1000.0);
    let finding = match &reply.reaction {
        Reaction::Result(result) if result["resultType"] == "input_required" => {
            report.advice.isolation(
                Isolation::Principal,
                "its tools ask their user something: each user gets a copy",
            );
            Finding::note("call", format!("{name}: asks for input after {ms} ms"))
        }
        Reaction::Result(result) if result["isError"] == true => {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let found = format!(
                "{name}: a result with isError in {ms} ms: {}",
                short(text, 200)
            );
            Finding::note("call", found)
        }
        Reaction::Result(_) => {
            report.advice.took(reply.took);
            Finding::ok("call", format!("{name}: a result in {ms} ms"))
        }
        Reaction::Silent(_) => Finding::bad(
            "call",
            format!("{name}: no answer within {} s", limit.as_secs()),
            "--timeout allows more; a tool should answer, if only with an error",
        ),
        Reaction::Gone(_) => Finding::bad(
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
    report.add(Section::Calls, finding);
}

/// Progress must have the call's token, rise, and end with the call.
fn progress(notes: &[LoggedMessage], token: &str, answered_at: Instant, report: &mut LabReport) {
    let all: Vec<&LoggedMessage> = notes
        .iter()
        .filter(|note| note.method == "notifications/progress")
        .collect();
    let (own, foreign): (Vec<&LoggedMessage>, Vec<&LoggedMessage>) = all
        .into_iter()
        .partition(|note| note.params["progressToken"] == token);
    if !foreign.is_empty() {
        let todo = "a progressToken must be given back as it came; Portway passes over others";
        let found = format!(
            "{} with a token that nobody gave",
            counted(foreign.len(), "report")
        );
        report.warn(Section::Calls, "progress", found, todo);
    }
    if own.is_empty() {
        if foreign.is_empty() {
            report.note(Section::Calls, "progress", "none is reported");
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
        Section::Calls,
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

fn concurrency(call: &TimedReaction, quick: &TimedReaction, report: &mut LabReport) {
    if call.took < CANCELLABLE && call.reaction.result().is_some() {
        return;
    }
    let finding = match quick.reaction.result() {
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
            format!("a health check gives {}", quick.reaction.in_words()),
            "Portway would take it for dead and restart it during a long call",
        ),
    };
    report.add(Section::Calls, finding);
}

fn cancelled(outcome: CancelOutcome, era: Era, ends: bool) -> Finding {
    let id = "cancel";
    match outcome {
        CancelOutcome::TooLate => Finding::note(id, "over before it could be cancelled"),
        CancelOutcome::Closed => {
            Finding::note(id, "by closing the stream; whether it stops cannot be seen")
        }
        CancelOutcome::Silent if ends => Finding::ok(id, "stops: no answer after the cancellation"),
        CancelOutcome::Silent => Finding::note(id, "no answer with and without a cancellation"),
        CancelOutcome::Answered(Reaction::Result(_), after) => {
            let found = format!(
                "ignored: the result came {} ms later all the same",
                after.as_millis()
            );
            let todo = "a cancelled call goes on and costs what it costs; Portway drops the result";
            Finding::warn(id, found, todo)
        }
        CancelOutcome::Answered(Reaction::Gone(_), _) => Finding::bad(
            id,
            "the server ended",
            "a cancellation must not end a server",
        ),
        CancelOutcome::Answered(reaction, after) => {
            let found = format!(
                "stops, and says so after {} ms ({})",
                after.as_millis(),
                short(&reaction.in_words(), 80)
            );
            match era {
                Era::Modern => Finding::note(id, found).with("2026-07-28 wants no answer then"),
                Era::Legacy => Finding::ok(id, found),
            }
        }
    }
}

/// Whether a call changed the tools, and the server sent a notification.
async fn changes(
    dialog: &mut Dialog,
    hello: &HandshakeAnswer,
    before: &[Value],
    notes: &[LoggedMessage],
    report: &mut LabReport,
) {
    let after = lists::list(dialog, "tools/list", "tools").await.items;
    let changed = after != before;
    let heard = dialog.log().heard(CHANGED) || notes.iter().any(|note| note.method == CHANGED);
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
    report.add(Section::Calls, finding);
}

/// Only tools that declare themselves read-only, and require no argument.
fn is_safe(tool: &Value) -> bool {
    let required = tool["inputSchema"]["required"].as_array();
    tool["annotations"]["readOnlyHint"] == true && required.is_none_or(Vec::is_empty)
}

async fn safe(dialog: &mut Dialog, tools: &[Value], limit: Duration, report: &mut LabReport) {
    let chosen: Vec<&Value> = tools.iter().filter(|tool| is_safe(tool)).collect();
    if chosen.is_empty() {
        let found = "no tool says that it only reads and wants no argument";
        report.note(Section::Calls, "safe calls", found);
    }
    for tool in chosen.into_iter().take(MOST_SAFE_CALLS) {
        let name = tool["name"].as_str().unwrap_or_default();
        let params = json!({"name": name, "arguments": {}});
        let reply = dialog.ask("tools/call", params, limit.min(STEP * 2)).await;
        let ms = reply.took.as_millis();
        let lacking = tool["outputSchema"].is_object()
            && reply.reaction.result().is_some_and(|result| {
                result["isError"] != true && result.get("structuredContent").is_none()
            });
        report.add(
            Section::Calls,
            match &reply.reaction {
                Reaction::Result(_) if lacking => Finding::warn(
                    "safe call",
                    format!("{name}: has an outputSchema, and its result no structuredContent"),
                    "clients that check results refuse it",
                ),
                Reaction::Result(result) if result["isError"] == true => {
                    Finding::note("safe call", format!("{name}: isError in {ms} ms"))
                }
                Reaction::Result(_) => {
                    Finding::ok("safe call", format!("{name}: a result in {ms} ms"))
                }
                other => Finding::warn(
                    "safe call",
                    format!("{name}: {}", other.in_words()),
                    "it says that it only reads and wants no argument",
                ),
            },
        );
        if matches!(reply.reaction, Reaction::Gone(_)) {
            return;
        }
    }
}

fn asked(dialog: &mut Dialog, report: &mut LabReport) {
    let modern = dialog.era == Era::Modern;
    let asks = &dialog.log().asks;
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
        report.warn(
            Section::Calls,
            "asks",
            format!("asked its client: {methods}"),
            todo,
        );
        return;
    }
    report.note(
        Section::Calls,
        "asks",
        format!("asked its client: {methods}"),
    );
    if !roots_only {
        report.advice.isolation(
            Isolation::Principal,
            "it asks its user during calls: with a copy for each, nobody answers for another",
        );
    }
}
