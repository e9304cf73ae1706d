//! Codex's `config.toml`. Codex expands nothing: fields of their own name the
//! variables that hold secrets.

use serde_json::Value;

use super::super::problem::Problem;
use super::super::reference::is_name;
use super::draft::{BAD_VARIABLE, ImportDraft, NO_LOGIN};
use super::{FileContext, ImportFile, RawServer, toml};

const SECTION: &str = "mcp_servers";

pub(super) fn parse(text: &str) -> Result<ImportFile, Problem> {
    let mut parsed = ImportFile::new(FileContext::default());
    match toml::parse(text)?.remove(SECTION) {
        None => {}
        Some(Value::Object(servers)) => {
            let raw = |value| RawServer {
                value,
                twice: false,
            };
            let servers = servers.into_iter();
            parsed.servers = servers.map(|(name, value)| (name, raw(value))).collect();
        }
        Some(_) => return Err(Problem::new(SECTION, "must be a table of servers")),
    }
    Ok(parsed)
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
    draft.leave(&["required"], "a server that fails stops nothing here");
    draft.leave(
        &["http_headers_helper"],
        "a program that makes headers is not run here",
    );
    draft.leave(&["scopes", "oauth", "oauth_resource"], NO_LOGIN);
    let why = "whether to ask before a call is up to each client";
    draft.leave(&["tools"], why);
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
        if !is_name(name) {
            draft.problem("env_vars", BAD_VARIABLE);
            continue;
        }
        draft.variable(name);
        draft.note(format!("env_vars: {name} comes from Portway's environment"));
    }
}

fn headers(draft: &mut ImportDraft) {
    if let Some(Value::Object(map)) = draft.take("env_http_headers") {
        for (header, name) in map {
            match name.as_str().filter(|name| is_name(name)) {
                Some(name) => draft.header(&header, format!("${{{name}}}")),
                None => draft.problem(&format!("env_http_headers.{header}"), BAD_VARIABLE),
            }
        }
    }
    match draft.take("bearer_token_env_var") {
        Some(Value::String(name)) if is_name(&name) => {
            draft.header("Authorization", format!("Bearer ${{{name}}}"));
            draft.note(format!(
                "bearer_token_env_var: an Authorization header with {name}"
            ));
        }
        Some(_) => draft.problem("bearer_token_env_var", BAD_VARIABLE),
        None => {}
    }
    if let Some(Value::String(token)) = draft.take("bearer_token") {
        draft.header("Authorization", format!("Bearer {token}"));
        draft.note("bearer_token: Codex refuses it; taken as an Authorization header");
    }
}

fn limits(draft: &mut ImportDraft) {
    draft.leave(
        &["startup_timeout_sec", "startup_timeout_ms"],
        "PORTWAY_CONNECT_TIMEOUT sets it for all servers",
    );
    let Some(value) = draft.take("tool_timeout_sec") else {
        return;
    };
    let seconds = value.as_f64();
    match seconds.filter(|seconds| (0.001..=1e9).contains(seconds)) {
        Some(seconds) => draft.set("timeout", (seconds * 1000.0).round() as u64),
        None => draft.problem("tool_timeout_sec", "must be a number of seconds"),
    }
}
