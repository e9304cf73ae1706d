//! One server while it is translated from a client's format.

use jsonc_parser::ast::Value as Node;
use serde_json::{Map, Value};

use super::super::definition::{self, DefinitionSource};
use super::super::problem::Problem;
use super::super::redact::worth_hiding;
use super::super::reference::{TextPiece, has_references, pieces};
use super::super::spec::{ServerSpec, Target};
use super::super::tree::{self, LineIndex};
use super::{ClientApp, ImportedServer};

/// Why settings of a login are left out.
pub(super) const NO_LOGIN: &str = "Portway does not log in for you; set an Authorization header";
pub(super) const BAD_VARIABLE: &str = "names a variable that Portway cannot read";

#[derive(Default)]
pub(super) struct ImportDraft {
    pub(super) name: String,
    /// The fields that have not been read yet.
    given: Map<String, Value>,
    /// The definition, as it would stand in `.mcp.json`.
    made: Map<String, Value>,
    notes: Vec<String>,
    problems: Vec<Problem>,
}

impl ImportDraft {
    pub(super) fn new(name: String, given: Map<String, Value>) -> ImportDraft {
        ImportDraft {
            name,
            given,
            ..ImportDraft::default()
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(super) fn problem(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(field, message));
    }

    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        self.given
            .shift_remove(field)
            .filter(|value| !value.is_null())
    }

    pub(super) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.made.insert(field.to_owned(), value.into());
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.made.contains_key(field)
    }

    /// Copies fields that have the same meaning in Portway.
    pub(super) fn keep(&mut self, fields: &[&str]) {
        for field in fields {
            if let Some(value) = self.take(field) {
                self.set(field, value);
            }
        }
    }

    /// Leaves fields out, with a note of the reason.
    pub(super) fn leave(&mut self, fields: &[&str], why: &str) {
        for field in fields {
            if self.take(field).is_some() {
                self.note(format!("{field}: {why}"));
            }
        }
    }

    /// Reads the fields that nearly all clients have in common.
    pub(super) fn standard(&mut self) {
        self.keep(&["type", "transport", "command", "args", "cwd", "url"]);
        self.keep(&["headers", "timeout", "enabled", "disabled"]);
        self.environment("env");
        self.refuse_foreign_transports();
    }

    /// A number or a boolean becomes a string; `null` is left out.
    pub(super) fn environment(&mut self, field: &str) {
        let Some(value) = self.take(field) else {
            return;
        };
        let Value::Object(env) = value else {
            self.set("env", value);
            return;
        };
        let mut strings = Map::new();
        for (name, value) in env {
            match value {
                Value::Null => self.note(format!(
                    "{field}.{name}: null takes a variable away; servers get no others than theirs"
                )),
                Value::Number(_) | Value::Bool(_) => {
                    self.note(format!("{field}.{name}: written as a string"));
                    strings.insert(name, value.to_string().into());
                }
                value => {
                    strings.insert(name, value);
                }
            }
        }
        if !strings.is_empty() {
            self.set("env", strings);
        }
    }

    /// A variable of the server that has the same name in Portway.
    pub(super) fn variable(&mut self, name: &str) {
        if let Some(env) = self.map("env") {
            let reference = || format!("${{{name}}}").into();
            env.entry(name).or_insert_with(reference);
        }
    }

    /// Adds one header.
    pub(super) fn header(&mut self, name: &str, value: String) {
        if let Some(headers) = self.map("headers") {
            headers.insert(name.to_owned(), value.into());
        }
    }

    fn map(&mut self, field: &str) -> Option<&mut Map<String, Value>> {
        let map = self.made.entry(field).or_insert_with(|| Map::new().into());
        map.as_object_mut()
    }

    pub(super) fn refuse_foreign_transports(&mut self) {
        for field in ["type", "transport"] {
            let word = self.made.get(field).and_then(Value::as_str);
            if let Some(word @ ("ws" | "websocket" | "ws-ide" | "sse-ide" | "sdk")) = word {
                let message = format!("{word:?} is nothing Portway speaks (stdio, http, sse)");
                self.made.shift_remove(field);
                self.problem(field, message);
            }
        }
        let url = self.made.get("url").and_then(Value::as_str);
        let scheme = url.and_then(|url| url.split_once("://"));
        if let Some((scheme @ ("ws" | "wss" | "unix" | "pipe"), _)) = scheme {
            let message = format!("{scheme}:// is nothing Portway speaks (http, https)");
            self.made.shift_remove("url");
            self.problem("url", message);
        }
    }

    /// Reports the tools that a client hides: Portway has filters and entries
    /// for that.
    pub(super) fn tool_lists(&mut self, only: &str, without: &str) {
        for (field, what) in [(only, "only these"), (without, "all but these")] {
            let Some(Value::Array(tools)) = self.take(field) else {
                continue;
            };
            let names: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
            self.note(format!(
                "{field}: all tools are imported; for {what} make a filter or an entry: {}",
                names.join(", ")
            ));
        }
    }

    /// Reports references that are plain text to the client but not to Portway;
    /// the client expands `theirs` itself.
    pub(super) fn warn_of_references(&mut self, theirs: &[&str]) {
        let mut names = Vec::new();
        self.rewrite(|_, _, text| {
            for piece in pieces(text) {
                if let TextPiece::Reference { name, .. } = piece
                    && !theirs.contains(&name)
                {
                    names.push(format!("${{{name}}}"));
                }
            }
            text.to_owned()
        });
        if !names.is_empty() {
            names.dedup();
            self.note(format!(
                "{}: plain text to this client, filled in from the environment by Portway",
                names.join(", ")
            ));
        }
    }

    /// Replaces every text of the definition; `change` gets path and text.
    pub(super) fn rewrite(
        &mut self,
        mut change: impl FnMut(&mut ImportDraft, &str, &str) -> String,
    ) {
        let mut made = Value::Object(std::mem::take(&mut self.made));
        each_string("", &mut made, &mut |place, text| change(self, place, text));
        if let Value::Object(made) = made {
            self.made = made;
        }
    }

    pub(super) fn finish(mut self, client: ClientApp) -> ImportedServer {
        let unknown: Vec<String> = self.given.keys().cloned().collect();
        for field in unknown {
            self.note(format!("{field}: has no counterpart here; left out"));
        }
        let spec = if self.problems.is_empty() {
            spec_of(&self.made)
        } else {
            Err(std::mem::take(&mut self.problems))
        };
        if let Ok(spec) = &spec {
            self.notes.extend(plain_secrets(spec));
            if let Target::Stdio { cwd: Some(cwd), .. } = &spec.target
                && has_references(cwd)
            {
                self.notes
                    .push("cwd: no variables are filled in here; write the path".to_owned());
            }
            if client == ClientApp::ClaudeDesktop && spec.transport().as_str() != "stdio" {
                self.note("Claude Desktop itself only starts commands");
            }
        }
        ImportedServer {
            name: self.name,
            spec,
            notes: self.notes,
            file: 0,
        }
    }
}

fn spec_of(made: &Map<String, Value>) -> Result<ServerSpec, Vec<Problem>> {
    let text = Value::Object(made.clone()).to_string();
    let root = tree::parse(&text).map_err(|problem| vec![problem])?;
    let Node::Object(object) = &root else {
        return Err(vec![Problem::new("", "is not an object")]);
    };
    definition::read(object, &LineIndex::new(&text), DefinitionSource::File).map_err(|problems| {
        // The user has not seen the text that the line numbers refer to.
        let placeless = |problem: Problem| Problem::new(problem.field, problem.message);
        problems.into_iter().map(placeless).collect()
    })
}

/// The fields with a secret in plain text, which is copied unchanged.
fn plain_secrets(spec: &ServerSpec) -> Vec<String> {
    let (kind, map) = match &spec.target {
        Target::Stdio { env, .. } => ("env", env),
        Target::Remote { headers, .. } => ("headers", headers),
    };
    map.iter()
        .filter(|(name, value)| !has_references(value) && worth_hiding(name, value))
        .map(|(name, _)| {
            format!("{kind}.{name}: is in the clear; ${{VARIABLE}} would keep it out of the file")
        })
        .collect()
}

fn each_string(place: &str, value: &mut Value, change: &mut dyn FnMut(&str, &str) -> String) {
    match value {
        Value::String(text) => *text = change(place, text),
        Value::Array(list) => {
            for (i, item) in list.iter_mut().enumerate() {
                each_string(&format!("{place}[{i}]"), item, change);
            }
        }
        Value::Object(map) => {
            for (name, item) in map.iter_mut() {
                let dot = if place.is_empty() { "" } else { "." };
                each_string(&format!("{place}{dot}{name}"), item, change);
            }
        }
        _ => {}
    }
}

/// A text as the name of a variable.
pub(super) fn variable(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().map(fits).collect();
    let prefix = if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        "_"
    } else {
        ""
    };
    format!("{prefix}{name}").to_ascii_uppercase()
}
