//! Codex's `config.toml`. Codex expands nothing: fields of their own name the
//! variables that hold secrets.

use serde_json::Value;
use toml_edit::Document;

use super::super::problem::Problem;
use super::draft::ImportDraft;
use super::{FileContext, ImportFile, RawServer, toml};

const SECTION: &str = "mcp_servers";

pub(super) fn parse(text: &str) -> Result<ImportFile, Problem> {
    let document = Document::parse(text).map_err(|error| not_toml(text, &error))?;
    let mut parsed = ImportFile::new(FileContext::default());
    let servers = match document.get(SECTION) {
        None => return Ok(parsed),
        Some(item) => item.as_table_like(),
    };
    let Some(servers) = servers else {
        return Err(Problem::new(SECTION, "must be a table of servers"));
    };
    for (name, item) in servers.iter() {
        let value = toml::json(item);
        let twice = false;
        parsed
            .servers
            .insert(name.to_owned(), RawServer { value, twice });
    }
    Ok(parsed)
}

/// A parser's message shows the line it means, which may hold a secret.
fn not_toml(text: &str, error: &toml_edit::TomlError) -> Problem {
    let problem = Problem::new("", "not TOML");
    match error.span() {
        Some(span) => problem.at(super::LineIndex::new(text).of(span.start.min(text.len()))),
        None => problem,
    }
}

pub(super) fn server(draft: &mut ImportDraft) {
    draft.keep(&["command", "args", "cwd", "url", "enabled"]);
    draft.environment("env");
    if let Some(headers) = draft.take("http_headers") {
        draft.set("headers", headers);
    }
    // Before references of Portway are added.
    draft.warn_of_references(&[]);
    variables(draft);
    headers(draft);
    limits(draft);
    draft.tool_lists("enabled_tools", "disabled_tools");
    draft.leave("required", "a server that fails stops nothing here");
    draft.leave(
        "http_headers_helper",
        "a program that makes headers is not run here",
    );
    for field in ["scopes", "oauth", "oauth_resource"] {
        draft.leave(
            field,
            "Portway does not log in for you; set an Authorization header",
        );
    }
    draft.leave("tools", "whether to ask before a call is up to each client");
    draft.refuse_foreign_transports();
}

/// Variables that the server gets from Codex's own environment.
fn variables(draft: &mut ImportDraft) {
    let Some(Value::Array(names)) = draft.take("env_vars") else {
        return;
    };
    for item in &names {
        let name = item.as_str().or_else(|| item["name"].as_str());
        let Some(name) = name else { continue };
        if !super::rewrite::is_name(name) {
            draft.problem("env_vars", "names a variable that Portway cannot read");
            continue;
        }
        draft.variable(name);
        draft.note(format!("env_vars: {name} comes from Portway's environment"));
    }
}

fn headers(draft: &mut ImportDraft) {
    if let Some(Value::Object(map)) = draft.take("env_http_headers") {
        for (header, name) in map {
            match name.as_str().filter(|name| super::rewrite::is_name(name)) {
                Some(name) => draft.header(&header, format!("${{{name}}}")),
                None => draft.problem(
                    &format!("env_http_headers.{header}"),
                    "names a variable that Portway cannot read",
                ),
            }
        }
    }
    match draft.take("bearer_token_env_var") {
        Some(Value::String(name)) if super::rewrite::is_name(&name) => {
            draft.header("Authorization", format!("Bearer ${{{name}}}"));
            draft.note(format!(
                "bearer_token_env_var: an Authorization header with {name}"
            ));
        }
        Some(_) => draft.problem(
            "bearer_token_env_var",
            "names a variable that Portway cannot read",
        ),
        None => {}
    }
    if let Some(Value::String(token)) = draft.take("bearer_token") {
        draft.header("Authorization", format!("Bearer {token}"));
        draft.note("bearer_token: Codex refuses it; taken as an Authorization header");
    }
}

fn limits(draft: &mut ImportDraft) {
    for field in ["startup_timeout_sec", "startup_timeout_ms"] {
        draft.leave(field, "PORTWAY_CONNECT_TIMEOUT sets it for all servers");
    }
    let Some(value) = draft.take("tool_timeout_sec") else {
        return;
    };
    match value
        .as_f64()
        .filter(|seconds| (0.001..=1e9).contains(seconds))
    {
        Some(seconds) => draft.set("timeout", (seconds * 1000.0).round() as u64),
        None => draft.problem("tool_timeout_sec", "must be a number of seconds"),
    }
}
