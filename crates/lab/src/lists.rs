//! Compares the capabilities that a server announces with its responses.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dialog::{Dialog, Reaction};
use crate::eras::HandshakeAnswer;
use crate::finding::{Finding, counted};
use crate::launcher::STEP;
use crate::report::{LabReport, Section};
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

pub(crate) async fn list(dialog: &mut Dialog, method: &'static str, member: &str) -> ListPages {
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
        report.add(Section::Capabilities, capability(name, hello, listed));
        if listed.endless {
            report.bad(
                Section::Capabilities,
                &format!("{name}.pages"),
                format!("the list does not end: {} pages so far", listed.pages),
                "nextCursor must be left out on the last page",
            );
        }
    }
    modern_lists(lists, report);
    completions(dialog, hello, &lists.prompts.items, report).await;
    logging(dialog, hello, report).await;
}

fn capability(name: &str, hello: &HandshakeAnswer, listed: &ListPages) -> Finding {
    let announced = hello.offers(name);
    let count = counted(listed.items.len(), name.trim_end_matches('s'));
    match (&listed.failed, announced) {
        (None, true) => Finding::ok(name, format!("announced, and lists {count}")),
        (None, false) if listed.items.is_empty() => {
            Finding::note(name, "not announced; lists nothing")
        }
        (None, false) => Finding::warn(
            name,
            format!("lists {count} without announcing {name}"),
            format!("clients will not ask: the server should announce {name}"),
        ),
        (Some(reaction), true) => {
            let found = format!("announced, and {name}/list gives {}", reaction.in_words());
            let todo = format!("Portway shows such a server as an error: fix {name}/list");
            match name {
                "tools" => Finding::bad(name, found, todo),
                _ => Finding::warn(
                    name,
                    found,
                    format!("fix {name}/list, or do not announce it"),
                ),
            }
        }
        (Some(Reaction::Silent(_)), false) => Finding::warn(
            name,
            format!("not announced; {name}/list is never answered"),
            "an unknown method should be refused with -32601",
        ),
        (Some(_), false) => Finding::note(name, "not announced, and refused"),
    }
}

fn modern_lists(lists: &ServerLists, report: &mut LabReport) {
    let all = [&lists.tools, &lists.resources, &lists.prompts];
    if all.iter().any(|listed| listed.no_ttl) {
        report.warn(
            Section::Capabilities,
            "lists.ttl",
            "lists do not say how long they hold",
            "2026-07-28 wants ttlMs and cacheScope on every list",
        );
    }
    if all.iter().any(|listed| listed.no_type) {
        report.warn(
            Section::Capabilities,
            "lists.resultType",
            "results have no resultType",
            "2026-07-28 wants \"resultType\": \"complete\"",
        );
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
    let reaction = dialog
        .ask("completion/complete", params, STEP)
        .await
        .reaction;
    let finding = match (hello.offers("completions"), &reaction) {
        (true, reaction) if refused(reaction) => Finding::warn(
            "completions",
            format!("announced, and answered with {}", reaction.in_words()),
            "do not announce completions, or answer them",
        ),
        (true, Reaction::Silent(_) | Reaction::Gone(_)) => Finding::warn(
            "completions",
            "announced, and never answered",
            "do not announce completions, or answer them",
        ),
        (true, _) => Finding::ok("completions", "announced, and answers"),
        (false, Reaction::Result(_)) => Finding::note("completions", "not announced, but answers"),
        (false, _) => Finding::note("completions", "not announced"),
    };
    report.add(Section::Capabilities, finding);
}

fn refused(reaction: &Reaction) -> bool {
    reaction.code() == Some(code::METHOD_NOT_FOUND) || matches!(reaction, Reaction::Refused { .. })
}

async fn logging(dialog: &mut Dialog, hello: &HandshakeAnswer, report: &mut LabReport) {
    let announced = hello.offers("logging");
    if hello.era == Era::Modern {
        let found = if announced {
            "announced (asked for per request)"
        } else {
            "not announced"
        };
        report.note(Section::Capabilities, "logging", found);
        return;
    }
    if !announced {
        report.note(Section::Capabilities, "logging", "not announced");
        return;
    }
    let reaction = dialog
        .ask("logging/setLevel", json!({"level": "warning"}), STEP)
        .await
        .reaction;
    report.add(
        Section::Capabilities,
        match reaction {
            Reaction::Result(_) => Finding::ok("logging", "announced, and takes a level"),
            other => Finding::warn(
                "logging",
                format!("announced, and logging/setLevel gives {}", other.in_words()),
                "do not announce logging, or take a level",
            ),
        },
    );
}
