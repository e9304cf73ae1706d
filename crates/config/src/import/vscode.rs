//! VS Code's `mcp.json`, and the `mcp` section of its settings.

use std::collections::BTreeSet;
use std::rc::Rc;

use jsonc_parser::ast::Object;
use serde_json::Value;

use super::super::reference::is_name;
use super::draft::{ImportDraft, NO_LOGIN, variable};
use super::rewrite::between;
use super::{FileContext, ImportDirs, ImportFile};

pub(super) const ENV_FILE: &str =
    "is not read; put its variables into env, or into Portway's own environment";

/// Names that VS Code expands itself and that could also be variables.
pub(super) const THEIRS: &[&str] = &[
    "pathSeparator",
    "userHome",
    "workspaceFolder",
    "workspaceFolderBasename",
    "workspaceRoot",
];

pub(super) fn context(root: &Object<'_>, parsed: &mut ImportFile) {
    let inner = || root.get_object("mcp")?.get_array("inputs");
    let inputs = root.get_array("inputs").or_else(inner);
    let inputs = inputs.into_iter().flat_map(|list| list.elements.clone());
    parsed.context = Rc::new(FileContext {
        inputs: inputs.map(Value::from).collect(),
        ..FileContext::default()
    });
}

pub(super) fn server(draft: &mut ImportDraft, context: &FileContext, around: &ImportDirs<'_>) {
    draft.standard();
    draft.leave(&["envFile"], ENV_FILE);
    draft.leave(&["oauth"], NO_LOGIN);
    draft.leave(&["dev"], "is VS Code's own way to debug a server");
    let why = "VS Code's sandbox is not made here";
    draft.leave(&["sandboxEnabled", "sandbox"], why);
    draft.warn_of_references(THEIRS);
    fill_in(draft, context, around, "VS Code");
}

/// Replaces VS Code's references by those of Portway, or by their values.
pub(super) fn fill_in(
    draft: &mut ImportDraft,
    context: &FileContext,
    around: &ImportDirs<'_>,
    client: &str,
) {
    let mut notes = BTreeSet::new();
    draft.rewrite(|draft, place, text| {
        between(text, "${", &mut |inner| {
            let (new, note) = match reference(inner, context, around) {
                ReferenceMeaning::Text(new) => {
                    (new, format!("${{{inner}}}: replaced by the path it means"))
                }
                ReferenceMeaning::Variable(new, note) => (new, note),
                ReferenceMeaning::Unknown => return None,
                ReferenceMeaning::TheirsAlone => {
                    let message = format!("uses ${{{inner}}}, which only {client} can fill in");
                    draft.problem(place, message);
                    return None;
                }
            };
            if !note.is_empty() {
                notes.insert(note);
            }
            Some(new)
        })
    });
    for note in notes {
        draft.note(note);
    }
}

enum ReferenceMeaning {
    Text(String),
    /// A variable of Portway, and a note for the user.
    Variable(String, String),
    /// Plain text.
    Unknown,
    TheirsAlone,
}

fn reference(inner: &str, context: &FileContext, around: &ImportDirs<'_>) -> ReferenceMeaning {
    if let Some(name) = inner.strip_prefix("env:") {
        return if is_name(name) {
            ReferenceMeaning::Variable(format!("${{{name}}}"), String::new())
        } else {
            ReferenceMeaning::TheirsAlone
        };
    }
    if let Some(id) = inner.strip_prefix("input:") {
        return input(id, context);
    }
    match inner {
        "workspaceFolder" | "workspaceRoot" => ReferenceMeaning::Text(around.project.to_owned()),
        "workspaceFolderBasename" => {
            let name = around.project.rsplit(['/', '\\']).next();
            ReferenceMeaning::Text(name.unwrap_or_default().to_owned())
        }
        "userHome" => around.home.map_or(ReferenceMeaning::TheirsAlone, |home| {
            ReferenceMeaning::Text(home.to_owned())
        }),
        "pathSeparator" | "/" => ReferenceMeaning::Text(std::path::MAIN_SEPARATOR.to_string()),
        _ => match inner.split_once(':') {
            Some(("config" | "command" | "workspaceFolder", _)) => ReferenceMeaning::TheirsAlone,
            _ => ReferenceMeaning::Unknown,
        },
    }
}

/// A value that VS Code asks the user for becomes a variable.
fn input(id: &str, context: &FileContext) -> ReferenceMeaning {
    let name = variable(id);
    let known = context.inputs.iter().find(|input| input["id"] == id);
    let word = |field: &str| known.and_then(|input| input[field].as_str());
    let secret = known.is_some_and(|input| input["password"] == true);
    let default = word("default").filter(|text| !secret && !text.contains(['}', '$']));
    let asked = word("description").map(|description| format!(" ({description})"));
    let asked = asked.unwrap_or_default();
    match default {
        Some(default) => ReferenceMeaning::Variable(
            format!("${{{name}:-{default}}}"),
            format!("${{input:{id}}}: becomes the variable {name}{asked}, with its default"),
        ),
        None => ReferenceMeaning::Variable(
            format!("${{{name}}}"),
            format!("${{input:{id}}}: set the variable {name} where Portway runs{asked}"),
        ),
    }
}
