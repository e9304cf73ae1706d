//! Compares the capabilities that a server announces with its responses.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dialog::{Dialog, Reaction};
use crate::eras::HandshakeAnswer;
use crate::finding::{Verdict, bad, counted, note, ok, warn};
use crate::launcher::STEP;
use crate::report::LabReport;
use crate::report::Section::Capabilities;
use wire::{Era, code};

/// The most pages of one list: more than Portway itself would read.
const PAGES: usize = 100;
/// The time limit for all pages of one list.
const LIST: Duration = Duration::from_secs(15);

/// One list, all pages.
#[derive(Default)]
pub(crate) struct ListPages {
    pub items: Vec<Value>,
    pages: usize,
    /// The reaction that came instead of a page.
    failed: Option<Reaction>,
    endless: bool,
    /// A modern page lacks its lifetime.
    no_ttl: bool,
    /// A modern page lacks `resultType`.
    no_type: bool,
}

pub(crate) struct ServerLists {
    pub tools: ListPages,
    pub resources: ListPages,
    pub prompts: ListPages,
}

pub(crate) async fn lists(dialog: &mut Dialog) -> ServerLists {
    ServerLists {
        tools: list(dialog, "tools/list", "tools").await,
        resources: list(dialog, "resources/list", "resources").await,
        prompts: list(dialog, "prompts/list", "prompts").await,
    }
}

pub(crate) async fn list(dialog: &mut Dialog, method: &str, member: &str) -> ListPages {
    let mut listed = ListPages::default();
    let mut cursors = HashSet::new();
    let mut params = json!({});
    let began = tokio::time::Instant::now();
    while listed.pages < PAGES && began.elapsed() < LIST {
        let reply = dialog.ask(method, params, STEP).await;
        let Reaction::Result(page) = reply.reaction else {
            listed.failed = Some(reply.reaction);
            return listed;
        };
        listed.pages += 1;
        if dialog.era == Era::Modern {
            listed.no_ttl |= !page["ttlMs"].is_u64() || !page["cacheScope"].is_string();
            listed.no_type |= !page["resultType"].is_string();
        }
        match page[member].as_array() {
            Some(items) => listed.items.extend(items.iter().cloned()),
            None => {
                let message = format!("the result has no {member:?}");
                listed.failed = Some(Reaction::Error { code: 0, message });
                return listed;
            }
        }
        // An empty cursor is a cursor like any other.
        let Some(cursor) = page["nextCursor"].as_str() else {
            return listed;
        };
        if !cursors.insert(cursor.to_owned()) {
            break;
        }
        params = json!({"cursor": cursor});
    }
    listed.endless = true;
    listed
}

pub(crate) async fn examine(
    dialog: &mut Dialog,
    hello: &HandshakeAnswer,
    lists: &ServerLists,
    report: &mut LabReport,
) {
    for (name, listed) in [
        ("tools", &lists.tools),
        ("resources", &lists.resources),
        ("prompts", &lists.prompts),
    ] {
        report.fact(name, listed.items.len());
        report.add(Capabilities, name, capability(name, hello, listed));
        if listed.endless {
            let found = format!("the list does not end: {} pages so far", listed.pages);
            let verdict = bad(found, "nextCursor must be left out on the last page");
            report.add(Capabilities, format!("{name}.pages"), verdict);
        }
    }
    modern_lists(lists, report);
    completions(dialog, hello, &lists.prompts.items, report).await;
    logging(dialog, hello, report).await;
}

fn capability(name: &str, hello: &HandshakeAnswer, listed: &ListPages) -> Verdict {
    let announced = hello.offers(name);
    let count = counted(listed.items.len(), name.trim_end_matches('s'));
    match (&listed.failed, announced) {
        (None, true) => ok(format!("announced, and lists {count}")),
        (None, false) if listed.items.is_empty() => note("not announced; lists nothing"),
        (None, false) => warn(
            format!("lists {count} without announcing {name}"),
            format!("clients will not ask: the server should announce {name}"),
        ),
        (Some(reaction), true) => {
            let found = format!("announced, and {name}/list gives {}", reaction.in_words());
            if name == "tools" {
                let todo = format!("Portway shows such a server as an error: fix {name}/list");
                bad(found, todo)
            } else {
                warn(found, format!("fix {name}/list, or do not announce it"))
            }
        }
        (Some(Reaction::Silent(_)), false) => warn(
            format!("not announced; {name}/list is never answered"),
            "an unknown method should be refused with -32601",
        ),
        (Some(_), false) => note("not announced, and refused"),
    }
}

fn modern_lists(lists: &ServerLists, report: &mut LabReport) {
    let all = [&lists.tools, &lists.resources, &lists.prompts];
    if all.iter().any(|listed| listed.no_ttl) {
        let found = "lists do not say how long they hold";
        let verdict = warn(found, "2026-07-28 wants ttlMs and cacheScope on every list");
        report.add(Capabilities, "lists.ttl", verdict);
    }
    if all.iter().any(|listed| listed.no_type) {
        let todo = "2026-07-28 wants \"resultType\": \"complete\"";
        let verdict = warn("results have no resultType", todo);
        report.add(Capabilities, "lists.resultType", verdict);
    }
}

async fn completions(
    dialog: &mut Dialog,
    hello: &HandshakeAnswer,
    prompts: &[Value],
    report: &mut LabReport,
) {
    let prompt = prompts
        .iter()
        .find(|one| one["arguments"][0]["name"].is_string());
    let name = prompt.map_or(json!("portway-lab-none"), |prompt| prompt["name"].clone());
    let argument = prompt.map_or(json!("none"), |one| one["arguments"][0]["name"].clone());
    let params = json!({
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": ""},
    });
    let reply = dialog.ask("completion/complete", params, STEP).await;
    let todo = "do not announce completions, or answer them";
    let verdict = match (hello.offers("completions"), &reply.reaction) {
        (true, reaction) if refused(reaction) => {
            let found = format!("announced, and answered with {}", reaction.in_words());
            warn(found, todo)
        }
        (true, Reaction::Silent(_) | Reaction::Gone(_)) => {
            warn("announced, and never answered", todo)
        }
        (true, _) => ok("announced, and answers"),
        (false, Reaction::Result(_)) => note("not announced, but answers"),
        (false, _) => note("not announced"),
    };
    report.add(Capabilities, "completions", verdict);
}

fn refused(reaction: &Reaction) -> bool {
    reaction.code() == Some(code::METHOD_NOT_FOUND) || matches!(reaction, Reaction::Refused { .. })
}

async fn logging(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let verdict = if !hello.offers("logging") {
        note("not announced")
    } else if hello.era == Era::Modern {
        note("announced (asked for per request)")
    } else {
        let params = json!({"level": "warning"});
        match dialog.ask("logging/setLevel", params, STEP).await.reaction {
            Reaction::Result(_) => ok("announced, and takes a level"),
            other => warn(
                format!("announced, and logging/setLevel gives {}", other.in_words()),
                "do not announce logging, or take a level",
            ),
        }
    };
    report.add(Capabilities, "logging", verdict);
}
