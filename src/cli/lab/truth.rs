//! Whether a server answers what it announces, and announces what it answers.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::STEP;
use super::eras::Hello;
use super::line::{Line, Said};
use super::report::{Part, Report};
use crate::cli::finding::{Finding, counted};
use wire::{Era, code};

/// Pages of one list: more than Portway itself would read.
const PAGES: usize = 100;
/// For all pages of one list.
const LIST: Duration = Duration::from_secs(15);

/// One list, all pages.
#[derive(Default)]
pub(super) struct Listed {
    pub items: Vec<Value>,
    pages: usize,
    /// What came instead of a page.
    failed: Option<Said>,
    endless: bool,
    /// A modern page that does not say how long it holds.
    no_ttl: bool,
    /// A modern page without `resultType`.
    no_type: bool,
}

pub(super) struct Lists {
    pub tools: Listed,
    pub resources: Listed,
    pub prompts: Listed,
}

pub(super) async fn lists(line: &mut Line) -> Lists {
    Lists {
        tools: list(line, "tools/list", "tools").await,
        resources: list(line, "resources/list", "resources").await,
        prompts: list(line, "prompts/list", "prompts").await,
    }
}

pub(super) async fn list(line: &mut Line, method: &'static str, member: &str) -> Listed {
    let mut listed = Listed::default();
    let mut cursors = HashSet::new();
    let mut params = json!({});
    let began = tokio::time::Instant::now();
    while listed.pages < PAGES && began.elapsed() < LIST {
        let reply = line.ask(method, params, STEP).await;
        let Said::Result(page) = reply.said else {
            listed.failed = Some(reply.said);
            return listed;
        };
        listed.pages += 1;
        if line.era == Era::Modern {
            listed.no_ttl |= !page["ttlMs"].is_u64() || !page["cacheScope"].is_string();
            listed.no_type |= !page["resultType"].is_string();
        }
        match page[member].as_array() {
            Some(items) => listed.items.extend(items.iter().cloned()),
            None => {
                let message = format!("the result has no {member:?}");
                listed.failed = Some(Said::Error { code: 0, message });
                return listed;
            }
        }
        // An empty one is a cursor like any other.
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

pub(super) async fn examine(line: &mut Line, hello: &Hello, lists: &Lists, report: &mut Report) {
    for (name, listed) in [
        ("tools", &lists.tools),
        ("resources", &lists.resources),
        ("prompts", &lists.prompts),
    ] {
        report.fact(name, listed.items.len());
        report.add(Part::Capabilities, capability(name, hello, listed));
        if listed.endless {
            report.add(
                Part::Capabilities,
                Finding::bad(
                    format!("{name}.pages"),
                    format!("the list does not end: {} pages so far", listed.pages),
                    "nextCursor must be left out on the last page",
                ),
            );
        }
    }
    modern_lists(lists, report);
    completions(line, hello, &lists.prompts.items, report).await;
    logging(line, hello, report).await;
}

fn capability(name: &str, hello: &Hello, listed: &Listed) -> Finding {
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
        (Some(said), true) => {
            let found = format!("announced, and {name}/list gives {}", said.in_words());
            let todo = format!("Portway shows such a server as an error: mend {name}/list");
            match name {
                "tools" => Finding::bad(name, found, todo),
                _ => Finding::warn(
                    name,
                    found,
                    format!("mend {name}/list, or do not announce it"),
                ),
            }
        }
        (Some(Said::Silent(_)), false) => Finding::warn(
            name,
            format!("not announced; {name}/list is never answered"),
            "an unknown method should be refused with -32601",
        ),
        (Some(_), false) => Finding::note(name, "not announced, and refused"),
    }
}

fn modern_lists(lists: &Lists, report: &mut Report) {
    let all = [&lists.tools, &lists.resources, &lists.prompts];
    if all.iter().any(|listed| listed.no_ttl) {
        report.add(
            Part::Capabilities,
            Finding::warn(
                "lists.ttl",
                "lists do not say how long they hold",
                "2026-07-28 wants ttlMs and cacheScope on every list",
            ),
        );
    }
    if all.iter().any(|listed| listed.no_type) {
        report.add(
            Part::Capabilities,
            Finding::warn(
                "lists.resultType",
                "results have no resultType",
                "2026-07-28 wants \"resultType\": \"complete\"",
            ),
        );
    }
}

async fn completions(line: &mut Line, hello: &Hello, prompts: &[Value], report: &mut Report) {
    let prompt = prompts
        .iter()
        .find(|one| one["arguments"][0]["name"].is_string());
    let name = prompt.map_or(json!("portway-lab-none"), |prompt| prompt["name"].clone());
    let argument = prompt.map_or(json!("none"), |one| one["arguments"][0]["name"].clone());
    let params = json!({
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": ""},
    });
    let said = line.ask("completion/complete", params, STEP).await.said;
    let finding = match (hello.offers("completions"), &said) {
        (true, said) if refused(said) => Finding::warn(
            "completions",
            format!("announced, and answered with {}", said.in_words()),
            "do not announce completions, or answer them",
        ),
        (true, Said::Silent(_) | Said::Gone(_)) => Finding::warn(
            "completions",
            "announced, and never answered",
            "do not announce completions, or answer them",
        ),
        (true, _) => Finding::ok("completions", "announced, and answers"),
        (false, Said::Result(_)) => Finding::note("completions", "not announced, but answers"),
        (false, _) => Finding::note("completions", "not announced"),
    };
    report.add(Part::Capabilities, finding);
}

fn refused(said: &Said) -> bool {
    said.code() == Some(code::METHOD_NOT_FOUND) || matches!(said, Said::Refused { .. })
}

async fn logging(line: &mut Line, hello: &Hello, report: &mut Report) {
    let announced = hello.offers("logging");
    if hello.era == Era::Modern {
        let found = if announced {
            "announced (asked for per request)"
        } else {
            "not announced"
        };
        report.add(Part::Capabilities, Finding::note("logging", found));
        return;
    }
    if !announced {
        report.add(
            Part::Capabilities,
            Finding::note("logging", "not announced"),
        );
        return;
    }
    let said = line
        .ask("logging/setLevel", json!({"level": "warning"}), STEP)
        .await
        .said;
    report.add(
        Part::Capabilities,
        match said {
            Said::Result(_) => Finding::ok("logging", "announced, and takes a level"),
            other => Finding::warn(
                "logging",
                format!("announced, and logging/setLevel gives {}", other.in_words()),
                "do not announce logging, or take a level",
            ),
        },
    );
}
