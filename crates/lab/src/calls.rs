//! Calls of tools, where a person has allowed them: time, progress,
//! cancellation, requests of the server, changes of lists.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::dialog::{CancelOutcome, Dialog, LoggedMessage, Reaction, TimedReaction};
use crate::eras::HandshakeAnswer;
use crate::finding::{Verdict, bad, counted, note, ok, short, warn};
use crate::launcher::STEP;
use crate::report::LabReport;
use crate::report::Section::Calls;
use crate::{Experiment, answers, lists};
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
        report.add(Calls, "calls", note(found).with(todo));
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
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        let names: Vec<&str> = names.collect();
        let todo = format!("it has: {}", short(&names.join(", "), 600));
        report.add(Calls, "call", bad(found, todo));
        return;
    }
    let call = |token: &str| json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}});
    let first_note = dialog.log().notes.len();
    let slow = dialog.request("tools/call", call("lab-1"));
    let quick = dialog.request(answers::health_check(hello.era), json!({}));
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
        let ms = call_reply.took.as_millis();
        let verdict = note(format!("too quick to be cancelled ({ms} ms)"));
        report.add(Calls, "cancel", verdict);
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
    report.add(Calls, "cancel", cancelled(outcome, hello.era, ended));
}

fn told(name: &str, reply: &TimedReaction, limit: Duration, report: &mut LabReport) {
    let ms = reply.took.as_millis();
    report.fact("callMs", reply.took.as_secs_f64() * 1000.0);
    let verdict = match &reply.reaction {
        Reaction::Result(result) if result["resultType"] == "input_required" => {
            let reason = "its tools ask their user something: each user gets a copy";
            report.advice.isolate(reason);
            note(format!("{name}: asks for input after {ms} ms"))
        }
        Reaction::Result(result) if result["isError"] == true => {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let text = short(text, 200);
            note(format!("{name}: a result with isError in {ms} ms: {text}"))
        }
        Reaction::Result(_) => {
            report.advice.took(reply.took);
            ok(format!("{name}: a result in {ms} ms"))
        }
        Reaction::Silent(_) => bad(
            format!("{name}: no answer within {} s", limit.as_secs()),
            "--timeout allows more; a tool should answer, if only with an error",
        ),
        Reaction::Gone(_) => bad(
            format!("{name}: the server ended during the call"),
            "look at what it wrote to stderr",
        ),
        other => warn(
            format!("{name}: {}", other.in_words()),
            "look at the arguments",
        ),
    };
    report.add(Calls, "call", verdict);
}

/// Progress must have the call's token, rise, and end with the call.
fn progress(notes: &[LoggedMessage], token: &str, answered_at: Instant, report: &mut LabReport) {
    let (own, foreign): (Vec<&LoggedMessage>, Vec<&LoggedMessage>) = notes
        .iter()
        .filter(|note| note.method == "notifications/progress")
        .partition(|note| note.params["progressToken"] == token);
    if !foreign.is_empty() {
        let todo = "a progressToken must be given back as it came; Portway passes over others";
        let reports = counted(foreign.len(), "report");
        let verdict = warn(format!("{reports} with a token that nobody gave"), todo);
        report.add(Calls, "progress", verdict);
    }
    if own.is_empty() {
        if foreign.is_empty() {
            report.add(Calls, "progress", note("none is reported"));
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
    let verdict = if !rising {
        let found = format!("{found}, and the number does not rise");
        warn(found, "progress must rise with every report")
    } else if late > 0 {
        let found = format!("{found}, {late} of them after the answer");
        warn(found, "progress must stop with the answer")
    } else {
        ok(format!("{found}, rising; each restarts the time limit"))
    };
    report.add(Calls, "progress", verdict);
}

fn concurrency(call: &TimedReaction, quick: &TimedReaction, report: &mut LabReport) {
    if call.took < CANCELLABLE && call.reaction.result().is_some() {
        return;
    }
    let verdict = match quick.reaction.result() {
        Some(_) if quick.took < call.took => ok(format!(
            "answers others after {} ms",
            quick.took.as_millis()
        )),
        Some(_) => {
            let reason = "it answers one request at a time: each user gets a copy";
            report.advice.isolate(reason);
            let todo = "calls wait for each other: give slow tools a server of their own";
            warn("answers nobody else until the call is over", todo)
        }
        None => bad(
            format!("a health check gives {}", quick.reaction.in_words()),
            "Portway would take it for dead and restart it during a long call",
        ),
    };
    report.add(Calls, "during a call", verdict);
}

fn cancelled(outcome: CancelOutcome, era: Era, ends: bool) -> Verdict {
    match outcome {
        CancelOutcome::TooLate => note("over before it could be cancelled"),
        CancelOutcome::Closed => note("by closing the stream; whether it stops cannot be seen"),
        CancelOutcome::Silent if ends => ok("stops: no answer after the cancellation"),
        CancelOutcome::Silent => note("no answer with and without a cancellation"),
        CancelOutcome::Answered(Reaction::Result(_), after) => {
            let ms = after.as_millis();
            warn(
                format!("ignored: the result came {ms} ms later all the same"),
                "a cancelled call goes on and costs what it costs; Portway drops the result",
            )
        }
        CancelOutcome::Answered(Reaction::Gone(_), _) => {
            bad("the server ended", "a cancellation must not end a server")
        }
        CancelOutcome::Answered(reaction, after) => {
            let (ms, words) = (after.as_millis(), reaction.in_words());
            let found = format!("stops, and says so after {ms} ms ({})", short(&words, 80));
            match era {
                Era::Modern => note(found).with("2026-07-28 wants no answer then"),
                Era::Legacy => ok(found),
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
    let verdict = match (changed, heard) {
        (true, true) => ok("the call changed its tools, and it said so"),
        (true, false) => warn(
            "the call changed its tools, and it did not say so",
            if announced {
                "it announces listChanged: notifications/tools/list_changed must follow"
            } else {
                "clients see the old list until the next connection"
            },
        ),
        (false, true) if !announced => note("sent, though not announced"),
        (false, _) => return,
    };
    report.add(Calls, "list_changed", verdict);
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
        report.add(Calls, "safe calls", note(found));
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
        let verdict = match &reply.reaction {
            Reaction::Result(_) if lacking => warn(
                format!("{name}: has an outputSchema, and its result no structuredContent"),
                "clients that check results refuse it",
            ),
            Reaction::Result(result) if result["isError"] == true => {
                note(format!("{name}: isError in {ms} ms"))
            }
            Reaction::Result(_) => ok(format!("{name}: a result in {ms} ms")),
            other => warn(
                format!("{name}: {}", other.in_words()),
                "it says that it only reads and wants no argument",
            ),
        };
        report.add(Calls, "safe call", verdict);
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
    let found = format!("asked its client: {methods}");
    let verdict = if modern {
        let todo = "2026-07-28 forbids requests of the server: end the call with input_required";
        warn(found, todo)
    } else {
        note(found)
    };
    report.add(Calls, "asks", verdict);
    if !modern && methods != "roots/list" {
        let reason =
            "it asks its user during calls: with a copy for each, nobody answers for another";
        report.advice.isolate(reason);
    }
}
