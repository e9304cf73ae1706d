//! Checks of a server's responses: their ids, their order, and the responses to
//! unknown requests.

use std::time::Duration;

use serde_json::{Value, json};

use crate::dialog::{Channel, Dialog, Reaction};
use crate::eras::HandshakeAnswer;
use crate::finding::Finding;
use crate::launcher::STEP;
use crate::report::{LabReport, Section};
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
fn health_check(era: Era) -> &'static str {
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
            report.bad(Section::Answers, "health", found, todo);
            return false;
        }
        times.push(reply.took);
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    report.fact("healthMs", median.as_secs_f64() * 1000.0);
    let found = format!("{method} in {:.1} ms", median.as_secs_f64() * 1000.0);
    report.add(
        Section::Answers,
        match median > SLOW {
            true => Finding::warn("health", found, "a busy server must still answer at once"),
            false => Finding::ok("health", found),
        },
    );
    true
}

/// Strings and numbers, large and odd: each must come back unchanged.
async fn ids(dialog: &mut Dialog, method: &'static str, report: &mut LabReport) {
    for (kind, id) in [
        ("number", json!(9_007_199_254_740_991_u64)),
        ("string", json!("lab-\u{e9} \"7\"")),
    ] {
        let name = format!("ids.{kind}");
        let question = dialog.request_as(id.clone(), method, json!({}));
        let before = dialog.log().foreign.len();
        let replies = dialog.ask_all(&[question], STEP).await;
        let stray = dialog.log().foreign.get(before).cloned();
        let answered = replies
            .first()
            .is_some_and(|reply| reply.reaction.result().is_some());
        let finding = match (answered, stray) {
            (true, _) => Finding::ok(name, "given back as they are"),
            (false, Some(other)) => Finding::bad(
                name,
                format!("asked with {id}, answered with {other}"),
                "an id must come back with the same type and value",
            ),
            (false, None) => Finding::bad(
                name,
                format!("a request with the id {id} is not answered"),
                "ids are strings or numbers, whatever their length",
            ),
        };
        report.add(Section::Answers, finding);
    }
}

async fn unknown_method(dialog: &mut Dialog, report: &mut LabReport) {
    let reaction = dialog.ask(NOBODY, json!({}), STEP).await.reaction;
    let found = format!("answered with {}", reaction.in_words());
    let todo = "-32601 tells a client that a feature is not there";
    report.add(
        Section::Answers,
        match &reaction {
            reaction if reaction.code() == Some(code::METHOD_NOT_FOUND) => {
                Finding::ok("unknown method", "refused with -32601")
            }
            Reaction::Gone(_) => {
                Finding::bad("unknown method", found, "it must not end the server")
            }
            Reaction::Silent(_) => Finding::warn("unknown method", "never answered", todo),
            _ => Finding::warn("unknown method", found, todo),
        },
    );
}

async fn unknown_tool(dialog: &mut Dialog, report: &mut LabReport) {
    let params = json!({"name": NOBODY, "arguments": {}});
    let reaction = dialog.ask("tools/call", params, STEP).await.reaction;
    let found = format!("answered with {}", reaction.in_words());
    let todo = "-32602 tells it from a tool that failed";
    report.add(
        Section::Answers,
        match &reaction {
            reaction if reaction.code() == Some(code::INVALID_PARAMS) => {
                Finding::ok("unknown tool", "refused with -32602")
            }
            Reaction::Result(result) if result["isError"] == true => {
                Finding::note("unknown tool", "a result with isError; -32602 is the rule")
            }
            Reaction::Result(_) => Finding::warn(
                "unknown tool",
                "answered as if it had run",
                "a mistyped name must not look like a success",
            ),
            Reaction::Gone(_) => Finding::bad("unknown tool", found, "it must not end the server"),
            Reaction::Silent(_) => Finding::bad("unknown tool", "never answered", todo),
            _ => Finding::warn("unknown tool", found, todo),
        },
    );
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
    let reaction = dialog
        .ask(method, json!({"cursor": NOBODY}), STEP)
        .await
        .reaction;
    let found = format!("an invalid cursor gives {}", reaction.in_words());
    let todo = "an invalid cursor should be refused with -32602";
    report.add(
        Section::Answers,
        match &reaction {
            reaction if reaction.code() == Some(code::INVALID_PARAMS) => {
                Finding::ok("bad params", "refused with -32602")
            }
            // Most servers have one page and ignore cursors.
            Reaction::Result(_) => Finding::note("bad params", "an invalid cursor is overlooked"),
            Reaction::Gone(_) => Finding::bad("bad params", found, "it must not end the server"),
            Reaction::Silent(_) => {
                Finding::warn("bad params", "an invalid cursor is never answered", todo)
            }
            _ => Finding::warn("bad params", found, todo),
        },
    );
}

/// Sends several requests before the first response.
async fn many(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let method = match hello.offers("tools") {
        true => "tools/list",
        false => health_check(hello.era),
    };
    let questions: Vec<_> = (0..MANY)
        .map(|_| dialog.request(method, json!({})))
        .collect();
    let replies = dialog.ask_all(&questions, STEP).await;
    let lost = replies
        .iter()
        .filter(|reply| reply.reaction.result().is_none())
        .count();
    let took = replies
        .iter()
        .map(|reply| reply.took)
        .max()
        .unwrap_or_default();
    let sorted = replies.windows(2).all(|two| two[0].took <= two[1].took);
    let order = if sorted { "in order" } else { "out of order" };
    report.add(
        Section::Answers,
        match lost {
            0 => Finding::ok(
                "side by side",
                format!(
                    "{MANY} requests at once, all answered {order} in {} ms",
                    took.as_millis()
                ),
            ),
            lost => Finding::bad(
                "side by side",
                format!("{lost} of {MANY} requests at once are not answered"),
                "Portway sends many at a time: each must be answered",
            ),
        },
    );
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
    let heard = dialog
        .log()
        .notes
        .iter()
        .rev()
        .find(|note| note.method == acknowledged)
        .cloned();
    let of = |params: &Value| params["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    report.add(
        Section::Answers,
        match heard {
            Some(note) if of(&note.params) == question.id => {
                Finding::ok("subscriptions/listen", "acknowledged")
            }
            Some(_) => Finding::warn(
                "subscriptions/listen",
                "acknowledged without the id of the request",
                "_meta[\"io.modelcontextprotocol/subscriptionId\"] must be that of the request",
            ),
            None => Finding::warn(
                "subscriptions/listen",
                format!(
                    "listChanged is announced for {}, and no listen acknowledged",
                    offered.join(", ")
                ),
                "changes of its lists will be noticed only by asking again",
            ),
        },
    );
}

/// A line that is not JSON must not end a server.
async fn garbage(dialog: &mut Dialog, method: &'static str, report: &mut LabReport) {
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
    report.add(
        Section::Answers,
        match reaction.result() {
            Some(_) => Finding::ok("broken line", "survived"),
            None => Finding::warn(
                "broken line",
                format!("afterwards {} gives {}", method, reaction.in_words()),
                "a line that is no JSON should be refused with -32700, or passed over",
            ),
        },
    );
}

fn strays(dialog: &mut Dialog, report: &mut LabReport) {
    let log = dialog.log();
    let (twice, foreign) = (log.twice.clone(), log.foreign.clone());
    if let Some(id) = twice.first() {
        report.bad(
            Section::Answers,
            "ids.once",
            format!(
                "{} answered more than once, the first with the id {id}",
                twice.len()
            ),
            "a request has one answer",
        );
    }
    if let Some(id) = foreign.first() {
        report.warn(
            Section::Answers,
            "ids.foreign",
            format!(
                "{} answers to nothing that was asked, the first with the id {id}",
                foreign.len()
            ),
            "Portway passes over them",
        );
    }
}
