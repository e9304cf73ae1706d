//! opencode's `opencode.json(c)`, in both of its shapes.

use jsonc_parser::ast::{Object, Value as Node};
use serde_json::Value;

use super::super::reference::is_name;
use super::draft::{BAD_VARIABLE, ImportDraft, NO_LOGIN, variable};
use super::rewrite::between;

/// The newer shape has its servers one level deeper; a server that is called
/// `servers` has a type.
pub(super) fn section(root: &Object<'_>) -> Vec<&'static str> {
    let nested = || match &root.get_object("mcp")?.get("servers")?.value {
        Node::Object(servers) => Some(servers.get_string("type").is_none()),
        _ => None,
    };
    match nested() {
        Some(true) => vec!["mcp", "servers"],
        _ => vec!["mcp"],
    }
}

pub(super) fn server(draft: &mut ImportDraft) {
    draft.keep(&["type", "command", "cwd", "url", "headers"]);
    draft.keep(&["enabled", "disabled"]);
    draft.environment("environment");
    draft.environment("env");
    match draft.take("timeout") {
        Some(Value::Object(limits)) => {
            if let Some(request) = limits.get("request").filter(|value| !value.is_null()) {
                draft.set("timeout", request.clone());
            }
            if limits.get("startup").is_some_and(|value| !value.is_null()) {
                draft.note("timeout.startup: PORTWAY_CONNECT_TIMEOUT sets it for all servers");
            }
        }
        Some(limit) => draft.set("timeout", limit),
        None => {}
    }
    match draft.take("oauth") {
        // opencode does not log in there, and neither does Portway.
        Some(Value::Bool(false)) | None => {}
        Some(_) => draft.note(format!("oauth: {NO_LOGIN}")),
    }
    draft.warn_of_references(&[]);
    fill_in(draft);
}

fn fill_in(draft: &mut ImportDraft) {
    draft.rewrite(|draft, place, text| {
        between(text, "{", &mut |inner| {
            if let Some(name) = inner.strip_prefix("env:") {
                if is_name(name) {
                    return Some(format!("${{{name}}}"));
                }
                draft.problem(place, BAD_VARIABLE);
                return None;
            }
            let file = inner.strip_prefix("file:")?;
            let field = place.rsplit('.').next().unwrap_or(place);
            let name = if place.starts_with("env.") && is_name(field) {
                field.to_owned()
            } else {
                format!("{}_{}", variable(&draft.name), variable(field))
            };
            draft.note(format!(
                "{place}: files are not read; set the variable {name} to the content of {file}"
            ));
            Some(format!("${{{name}}}"))
        })
    });
}
