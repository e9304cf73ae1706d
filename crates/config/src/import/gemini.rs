//! Gemini CLI's `settings.json`.

use std::rc::Rc;

use jsonc_parser::ast::{Object, Value as Node};

use super::draft::{ImportDraft, NO_LOGIN};
use super::rewrite::bare_dollars;
use super::{FileContext, ImportFile};

pub(super) fn context(root: &Object<'_>, parsed: &mut ImportFile) {
    let list = |name: &str| {
        let list = root.get_object("mcp")?.get_array(name)?;
        let words = list.elements.iter().filter_map(|element| match element {
            Node::StringLit(word) => Some(word.value.to_string()),
            _ => None,
        });
        Some(words.collect::<Vec<_>>())
    };
    parsed.context = Rc::new(FileContext {
        excluded: list("excluded").unwrap_or_default(),
        allowed: list("allowed").filter(|names| !names.is_empty()),
        ..FileContext::default()
    });
}

pub(super) fn server(draft: &mut ImportDraft, context: &FileContext) {
    if let Some(url) = draft.take("httpUrl") {
        draft.leave(&["url"], "httpUrl stands beside it and is used instead");
        draft.leave(&["type"], "httpUrl says http");
        draft.set("url", url);
        draft.set("type", "http");
    }
    draft.standard();
    if draft.take("tcp").is_some() {
        draft.problem(
            "tcp",
            "a WebSocket is nothing Portway speaks (stdio, http, sse)",
        );
    }
    let why = "whether to ask before a call is up to each client";
    draft.leave(&["trust"], why);
    draft.leave(&["description"], "is not kept here");
    draft.tool_lists("includeTools", "excludeTools");
    draft.leave(&["oauth", "authProviderType"], NO_LOGIN);
    draft.leave(&["targetAudience", "targetServiceAccount"], NO_LOGIN);
    draft.rewrite(|_, _, text| bare_dollars(text));
    let name = &draft.name;
    let off = context.excluded.contains(name);
    let allowed = context.allowed.as_ref();
    let not_on = allowed.is_some_and(|names| !names.contains(name));
    if off || not_on {
        let list = if off {
            "mcp.excluded names it"
        } else {
            "mcp.allowed does not name it"
        };
        draft.set("enabled", false);
        draft.note(format!("{list}: imported as not enabled"));
    }
}
