//! Checks of a server's responses: their ids, their order, and the responses to
//! unknown requests.

use std::time::Duration;

use serde_json::{Value, json};

use crate::dialog::{Channel, Dialog, Reaction};
use crate::eras::HandshakeAnswer;
use crate::finding::{Verdict, bad, note, ok, warn};
use crate::launcher::STEP;
use crate::report::LabReport;
use crate::report::Section::Answers;
use wire::{Era, code};

/// Requests at a time.
const MANY: usize = 8;
const HEALTH_CHECKS: usize = 5;
/// How long to wait for a second response, where one is enough.
const AFTERMATH: Duration = Duration::from_millis(150);
/// Portway checks every 30 s and waits as long for a response; a time much
/// shorter than that is already a sign of trouble.
const SLOW: Duration = Duration::from_secs(1);

/// No tool and no method has this name.
pub(crate) const NOBODY: &str = "portway-lab-no-such-thing";

pub(crate) async fn examine(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let healthy = health(dialog, hello, report).await;
    // A harmless request that the server does answer.
    let harmless = match (healthy, hello.offers("tools")) {
        (true, _) => health_check(hello.era),
        (false, true) => "tools/list",
        (false, false) => return,
    };
    ids(dialog, harmless, report).await;
    unknown_method(dialog, report).await;
    if hello.offers("tools") {
        unknown_tool(dialog, report).await;
    }
    bad_params(dialog, hello, report).await;
    many(dialog, hello, report).await;
    if hello.era == Era::Modern {
        subscriptions(dialog, hello, report).await;
    }
    garbage(dialog, harmless, report).await;
    strays(dialog, report);
}

/// The request that Portway checks a server's health with.
pub(crate) fn health_check(era: Era) -> &'static str {
    match era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    }
}

async fn health(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) -> bool {
    let method = health_check(hello.era);
    let mut times = Vec::new();
    for _ in 0..HEALTH_CHECKS {
        let reply = dialog.ask(method, json!({}), STEP).await;
        if reply.reaction.result().is_none() {
            let found = format!("{method} gives {}", reply.reaction.in_words());
            let todo = "Portway takes such a server for dead within a minute, and restarts it";
            report.add(Answers, "health", bad(found, todo));
            return false;
        }
        times.push(reply.took);
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    let ms = median.as_secs_f64() * 1000.0;
    report.fact("healthMs", ms);
    let found = format!("{method} in {ms:.1} ms");
    let verdict = if median > SLOW {
        warn(found, "a busy server must still answer at once")
    } else {
        ok(found)
    };
    report.add(Answers, "health", verdict);
    true
}

/// Strings and numbers, large and odd: each must come back unchanged.
async fn ids(dialog: &mut Dialog, method: &str, report: &mut LabReport) {
    for (kind, id) in [
        ("number", json!(9_007_199_254_740_991_u64)),
        ("string", json!("lab-\u{e9} \"7\"")),
    ] {
        let question = dialog.request_as(id.clone(), method, json!({}));
        let before = dialog.log().foreign.len();
        let replies = dialog.ask_all(&[question], STEP).await;
        let stray = dialog.log().foreign.get(before).cloned();
        let answered = replies
            .first()
            .is_some_and(|reply| reply.reaction.result().is_some());
        let verdict = match (answered, stray) {
            (true, _) => ok("given back as they are"),
            (false, Some(other)) => bad(
                format!("asked with {id}, answered with {other}"),
                "an id must come back with the same type and value",
            ),
            (false, None) => bad(
                format!("a request with the id {id} is not answered"),
                "ids are strings or numbers, whatever their length",
            ),
        };
        report.add(Answers, format!("ids.{kind}"), verdict);
    }
}

/// The verdict on the reaction to a request that must be refused with a code.
fn refusal(reaction: &Reaction, wanted: i64, found: String, silent: &str, todo: &str) -> Verdict {
    match reaction {
        _ if reaction.code() == Some(wanted) => ok(format!("refused with {wanted}")),
        Reaction::Gone(_) => bad(found, "it must not end the server"),
        Reaction::Silent(_) => warn(silent, todo),
        _ => warn(found, todo),
    }
}

async fn unknown_method(dialog: &mut Dialog, report: &mut LabReport) {
    let reaction = dialog.ask(NOBODY, json!({}), STEP).await.reaction;
    let found = format!("answered with {}", reaction.in_words());
    let wanted = code::METHOD_NOT_FOUND;
    let todo = "-32601 tells a client that a feature is not there";
    let verdict = refusal(&reaction, wanted, found, "never answered", todo);
    report.add(Answers, "unknown method", verdict);
}

async fn unknown_tool(dialog: &mut Dialog, report: &mut LabReport) {
    let params = json!({"name": NOBODY, "arguments": {}});
    let reaction = dialog.ask("tools/call", params, STEP).await.reaction;
    let found = format!("answered with {}", reaction.in_words());
    let (silent, todo) = ("never answered", "-32602 tells it from a tool that failed");
    let verdict = match &reaction {
        Reaction::Result(result) if result["isError"] == true => {
            note("a result with isError; -32602 is the rule")
        }
        Reaction::Result(_) => warn(
            "answered as if it had run",
            "a mistyped name must not look like a success",
        ),
        Reaction::Silent(_) => bad(silent, todo),
        other => refusal(other, code::INVALID_PARAMS, found, silent, todo),
    };
    report.add(Answers, "unknown tool", verdict);
}

async fn bad_params(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let lists = [
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("prompts", "prompts/list"),
    ];
    let Some((_, method)) = lists.into_iter().find(|(name, _)| hello.offers(name)) else {
        return;
    };
    let params = json!({"cursor": NOBODY});
    let reaction = dialog.ask(method, params, STEP).await.reaction;
    let found = format!("an invalid cursor gives {}", reaction.in_words());
    let silent = "an invalid cursor is never answered";
    let todo = "an invalid cursor should be refused with -32602";
    let verdict = match &reaction {
        // Most servers have one page and ignore cursors.
        Reaction::Result(_) => note("an invalid cursor is overlooked"),
        other => refusal(other, code::INVALID_PARAMS, found, silent, todo),
    };
    report.add(Answers, "bad params", verdict);
}

/// Sends several requests before the first response.
async fn many(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let method = if hello.offers("tools") {
        "tools/list"
    } else {
        health_check(hello.era)
    };
    let questions: Vec<_> = (0..MANY)
        .map(|_| dialog.request(method, json!({})))
        .collect();
    let replies = dialog.ask_all(&questions, STEP).await;
    let unanswered = replies.iter().filter(|one| one.reaction.result().is_none());
    let lost = unanswered.count();
    let took = replies.iter().map(|reply| reply.took).max();
    let ms = took.unwrap_or_default().as_millis();
    let sorted = replies.windows(2).all(|two| two[0].took <= two[1].took);
    let order = if sorted { "in order" } else { "out of order" };
    let verdict = if lost == 0 {
        ok(format!(
            "{MANY} requests at once, all answered {order} in {ms} ms"
        ))
    } else {
        bad(
            format!("{lost} of {MANY} requests at once are not answered"),
            "Portway sends many at a time: each must be answered",
        )
    };
    report.add(Answers, "side by side", verdict);
}

async fn subscriptions(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let all = ["tools", "prompts", "resources"];
    let offered: Vec<&str> = all
        .into_iter()
        .filter(|name| hello.offers_flag(name, "listChanged"))
        .collect();
    let Channel::Pipe(_) = &dialog.channel else {
        return;
    };
    if offered.is_empty() {
        return;
    }
    let experiment: serde_json::Map<String, Value> = offered
        .iter()
        .map(|name| (format!("{name}ListChanged"), json!(true)))
        .collect();
    let question = dialog.request("subscriptions/listen", json!({"notifications": experiment}));
    let acknowledged = "notifications/subscriptions/acknowledged";
    let wait = Duration::from_secs(1);
    dialog.ask_all(std::slice::from_ref(&question), wait).await;
    let mut notes = dialog.log().notes.iter().rev();
    let verdict = match notes.find(|note| note.method == acknowledged) {
        Some(note)
            if note.params["_meta"]["io.modelcontextprotocol/subscriptionId"] == question["id"] =>
        {
            ok("acknowledged")
        }
        Some(_) => warn(
            "acknowledged without the id of the request",
            "_meta[\"io.modelcontextprotocol/subscriptionId\"] must be that of the request",
        ),
        None => warn(
            format!(
                "listChanged is announced for {}, and no listen acknowledged",
                offered.join(", ")
            ),
            "changes of its lists will be noticed only by asking again",
        ),
    };
    report.add(Answers, "subscriptions/listen", verdict);
}

/// A line that is not JSON must not end a server.
async fn garbage(dialog: &mut Dialog, method: &str, report: &mut LabReport) {
    if report.transport != "stdio" {
        return;
    }
    let Channel::Pipe(pipe) = &mut dialog.channel else {
        return;
    };
    pipe.send_raw(b"{\"jsonrpc\": \"2.0\", nonsense\n").await;
    // An error response has no id, or none of ours.
    dialog.listen(AFTERMATH).await;
    dialog.log().foreign.retain(|id| !id.is_null());
    let reaction = dialog.ask(method, json!({}), STEP).await.reaction;
    let verdict = match reaction.result() {
        Some(_) => ok("survived"),
        None => warn(
            format!("afterwards {method} gives {}", reaction.in_words()),
            "a line that is no JSON should be refused with -32700, or passed over",
        ),
    };
    report.add(Answers, "broken line", verdict);
}

fn strays(dialog: &mut Dialog, report: &mut LabReport) {
    let log = dialog.log();
    if let Some(id) = log.twice.first() {
        let count = log.twice.len();
        let found = format!("{count} answered more than once, the first with the id {id}");
        let verdict = bad(found, "a request has one answer");
        report.add(Answers, "ids.once", verdict);
    }
    if let Some(id) = log.foreign.first() {
        let count = log.foreign.len();
        let found =
            format!("{count} answers to nothing that was asked, the first with the id {id}");
        let verdict = warn(found, "Portway passes over them");
        report.add(Answers, "ids.foreign", verdict);
    }
}
