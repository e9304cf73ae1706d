//! How a server answers: under which id, in which order, and what it makes of
//! questions that it does not know.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::STEP;
use super::eras::Hello;
use super::line::{Channel, Line, Said};
use super::report::{Part, Report};
use crate::cli::finding::Finding;
use wire::{Era, code};

/// Questions at a time.
const MANY: usize = 8;
const HEALTH_CHECKS: usize = 5;
/// For a second answer to come, where one is enough.
const AFTERMATH: Duration = Duration::from_millis(150);
/// Portway asks every 30 s and waits as long for an answer; much less than
/// that is a sign of trouble already.
const SLOW: Duration = Duration::from_secs(1);

/// No tool, no method has this name.
pub(super) const NOBODY: &str = "portway-lab-no-such-thing";

pub(super) async fn examine(line: &mut Line, hello: &Hello, report: &mut Report) {
    let healthy = health(line, hello, report).await;
    // Something harmless that it does answer.
    let harmless = match (healthy, hello.offers("tools")) {
        (true, _) => health_check(hello.era),
        (false, true) => "tools/list",
        (false, false) => return,
    };
    ids(line, harmless, report).await;
    unknown_method(line, report).await;
    if hello.offers("tools") {
        unknown_tool(line, report).await;
    }
    bad_params(line, hello, report).await;
    many(line, hello, report).await;
    if hello.era == Era::Modern {
        subscriptions(line, hello, report).await;
    }
    garbage(line, harmless, report).await;
    strays(line, report);
}

/// What Portway checks a server's health with.
fn health_check(era: Era) -> &'static str {
    match era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    }
}

async fn health(line: &mut Line, hello: &Hello, report: &mut Report) -> bool {
    let method = health_check(hello.era);
    let mut times = Vec::new();
    for _ in 0..HEALTH_CHECKS {
        let reply = line.ask(method, json!({}), STEP).await;
        if reply.said.result().is_none() {
            let found = format!("{method} gives {}", reply.said.in_words());
            let todo = "Portway takes such a server for dead within a minute, and restarts it";
            report.add(Part::Answers, Finding::bad("health", found, todo));
            return false;
        }
        times.push(reply.took);
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    report.fact("healthMs", median.as_secs_f64() * 1000.0);
    let found = format!("{method} in {:.1} ms", median.as_secs_f64() * 1000.0);
    report.add(
        Part::Answers,
        match median > SLOW {
            true => Finding::warn("health", found, "a busy server must still answer at once"),
            false => Finding::ok("health", found),
        },
    );
    true
}

/// Strings and numbers, large and odd: each comes back as it went.
async fn ids(line: &mut Line, method: &'static str, report: &mut Report) {
    for (kind, id) in [
        ("number", json!(9_007_199_254_740_991_u64)),
        ("string", json!("lab-\u{e9} \"7\"")),
    ] {
        let name = format!("ids.{kind}");
        let question = line.question_as(id.clone(), method, json!({}));
        let before = line.log().foreign.len();
        let replies = line.ask_all(&[question], STEP).await;
        let stray = line.log().foreign.get(before).cloned();
        let answered = replies
            .first()
            .is_some_and(|reply| reply.said.result().is_some());
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
        report.add(Part::Answers, finding);
    }
}

async fn unknown_method(line: &mut Line, report: &mut Report) {
    let said = line.ask(NOBODY, json!({}), STEP).await.said;
    let found = format!("answered with {}", said.in_words());
    let todo = "-32601 tells a client that a feature is not there";
    report.add(
        Part::Answers,
        match &said {
            said if said.code() == Some(code::METHOD_NOT_FOUND) => {
                Finding::ok("unknown method", "refused with -32601")
            }
            Said::Gone(_) => Finding::bad("unknown method", found, "it must not end the server"),
            Said::Silent(_) => Finding::warn("unknown method", "never answered", todo),
            _ => Finding::warn("unknown method", found, todo),
        },
    );
}

async fn unknown_tool(line: &mut Line, report: &mut Report) {
    let params = json!({"name": NOBODY, "arguments": {}});
    let said = line.ask("tools/call", params, STEP).await.said;
    let found = format!("answered with {}", said.in_words());
    let todo = "-32602 tells it from a tool that failed";
    report.add(
        Part::Answers,
        match &said {
            said if said.code() == Some(code::INVALID_PARAMS) => {
                Finding::ok("unknown tool", "refused with -32602")
            }
            Said::Result(result) if result["isError"] == true => {
                Finding::note("unknown tool", "a result with isError; -32602 is the rule")
            }
            Said::Result(_) => Finding::warn(
                "unknown tool",
                "answered as if it had run",
                "a mistyped name must not look like a success",
            ),
            Said::Gone(_) => Finding::bad("unknown tool", found, "it must not end the server"),
            Said::Silent(_) => Finding::bad("unknown tool", "never answered", todo),
            _ => Finding::warn("unknown tool", found, todo),
        },
    );
}

async fn bad_params(line: &mut Line, hello: &Hello, report: &mut Report) {
    let lists = [
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("prompts", "prompts/list"),
    ];
    let Some((_, method)) = lists.into_iter().find(|(name, _)| hello.offers(name)) else {
        return;
    };
    let said = line.ask(method, json!({"cursor": NOBODY}), STEP).await.said;
    let found = format!("an invalid cursor gives {}", said.in_words());
    let todo = "an invalid cursor should be refused with -32602";
    report.add(
        Part::Answers,
        match &said {
            said if said.code() == Some(code::INVALID_PARAMS) => {
                Finding::ok("bad params", "refused with -32602")
            }
            // Most servers have one page and look at no cursor.
            Said::Result(_) => Finding::note("bad params", "an invalid cursor is overlooked"),
            Said::Gone(_) => Finding::bad("bad params", found, "it must not end the server"),
            Said::Silent(_) => {
                Finding::warn("bad params", "an invalid cursor is never answered", todo)
            }
            _ => Finding::warn("bad params", found, todo),
        },
    );
}

/// Several questions before the first answer.
async fn many(line: &mut Line, hello: &Hello, report: &mut Report) {
    let method = match hello.offers("tools") {
        true => "tools/list",
        false => health_check(hello.era),
    };
    let questions: Vec<_> = (0..MANY)
        .map(|_| line.question(method, json!({})))
        .collect();
    let replies = line.ask_all(&questions, STEP).await;
    let lost = replies
        .iter()
        .filter(|reply| reply.said.result().is_none())
        .count();
    let took = replies
        .iter()
        .map(|reply| reply.took)
        .max()
        .unwrap_or_default();
    let sorted = replies.windows(2).all(|two| two[0].took <= two[1].took);
    let order = if sorted { "in order" } else { "out of order" };
    report.add(
        Part::Answers,
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

async fn subscriptions(line: &mut Line, hello: &Hello, report: &mut Report) {
    let all = ["tools", "prompts", "resources"];
    let offered: Vec<&str> = all
        .into_iter()
        .filter(|name| hello.offers_flag(name, "listChanged"))
        .collect();
    let Channel::Pipe(_) = &line.channel else {
        return;
    };
    if offered.is_empty() {
        return;
    }
    let wishes: serde_json::Map<String, Value> = offered
        .iter()
        .map(|name| (format!("{name}ListChanged"), json!(true)))
        .collect();
    let question = line.question("subscriptions/listen", json!({"notifications": wishes}));
    let acknowledged = "notifications/subscriptions/acknowledged";
    let wait = Duration::from_secs(1);
    line.ask_all(std::slice::from_ref(&question), wait).await;
    let heard = line
        .log()
        .notes
        .iter()
        .rev()
        .find(|note| note.method == acknowledged)
        .cloned();
    let of = |params: &Value| params["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    report.add(
        Part::Answers,
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

/// A line that is no JSON must not end a server.
async fn garbage(line: &mut Line, method: &'static str, report: &mut Report) {
    if report.transport != "stdio" {
        return;
    }
    let Channel::Pipe(pipe) = &mut line.channel else {
        return;
    };
    pipe.send_raw(b"{\"jsonrpc\": \"2.0\", nonsense\n").await;
    // A refusal has no id, or none of ours.
    line.listen(AFTERMATH).await;
    line.log().foreign.retain(|id| !id.is_null());
    let said = line.ask(method, json!({}), STEP).await.said;
    report.add(
        Part::Answers,
        match said.result() {
            Some(_) => Finding::ok("broken line", "survived"),
            None => Finding::warn(
                "broken line",
                format!("afterwards {} gives {}", method, said.in_words()),
                "a line that is no JSON should be refused with -32700, or passed over",
            ),
        },
    );
}

fn strays(line: &mut Line, report: &mut Report) {
    let log = line.log();
    let (twice, foreign) = (log.twice.clone(), log.foreign.clone());
    if let Some(id) = twice.first() {
        report.add(
            Part::Answers,
            Finding::bad(
                "ids.once",
                format!(
                    "{} answered more than once, the first with the id {id}",
                    twice.len()
                ),
                "a request has one answer",
            ),
        );
    }
    if let Some(id) = foreign.first() {
        report.add(
            Part::Answers,
            Finding::warn(
                "ids.foreign",
                format!(
                    "{} answers to nothing that was asked, the first with the id {id}",
                    foreign.len()
                ),
                "Portway passes over them",
            ),
        );
    }
}
