//! A definition with its `${VAR}` expanded, from which a connection is made.
//! The only type of this crate that holds values of the environment: it cannot
//! be serialised and its `Debug` shows none of them.

use std::fmt;

use indexmap::IndexMap;
use url::Url;

use super::check::{check_env_value, check_header_value, check_url};
use super::mask::{self, HiddenRange};
use super::problem::Problem;
use super::redact::worth_hiding;
use super::reference::{TextPiece, pieces};
use super::spec::{RemoteKind, ServerSpec, Target};

/// A server, ready to be started or reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    pub target: LaunchTarget,
    /// Every value that came from the environment.
    expanded_values: Vec<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub enum LaunchTarget {
    Stdio {
        command: String,
        args: Vec<String>,
        env: IndexMap<String, String>,
        cwd: Option<String>,
    },
    Remote {
        kind: RemoteKind,
        url: Url,
        headers: IndexMap<String, String>,
    },
}

/// Expands every reference; reports all missing variables at once.
pub fn expand(
    spec: &ServerSpec,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Launch, Vec<Problem>> {
    let mut expander = VariableExpander {
        env,
        expanded_values: Vec::new(),
        problems: Vec::new(),
    };
    let target = match &spec.target {
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        } => Some(expander.stdio(command, args, env, cwd.clone())),
        Target::Remote { kind, url, headers } => expander.remote(*kind, url, headers),
    };
    match target {
        Some(target) if expander.problems.is_empty() => Ok(Launch {
            target,
            expanded_values: expander.expanded_values,
        }),
        _ => Err(expander.problems),
    }
}

struct VariableExpander<'e> {
    env: &'e dyn Fn(&str) -> Option<String>,
    expanded_values: Vec<String>,
    problems: Vec<Problem>,
}

impl VariableExpander<'_> {
    fn stdio(
        &mut self,
        command: &str,
        args: &[String],
        env: &IndexMap<String, String>,
        cwd: Option<String>,
    ) -> LaunchTarget {
        let command = self.fill("command", command);
        if command.is_empty() && self.problems.is_empty() {
            self.problem("command", "is empty after its variables are expanded");
        }
        let args = args
            .iter()
            .enumerate()
            .map(|(i, arg)| self.fill(&format!("args[{i}]"), arg))
            .collect();
        let env = self.map("env", env, check_env_value);
        LaunchTarget::Stdio {
            command,
            args,
            env,
            cwd,
        }
    }

    fn remote(
        &mut self,
        kind: RemoteKind,
        url: &str,
        headers: &IndexMap<String, String>,
    ) -> Option<LaunchTarget> {
        let before = self.problems.len();
        let url = self.fill("url", url);
        let headers = self.map("headers", headers, check_header_value);
        if self.problems.len() > before {
            return None;
        }
        let url = check_url(&url).map_err(|message| self.problem("url", message));
        let url = url.ok()?;
        Some(LaunchTarget::Remote { kind, url, headers })
    }

    fn map(
        &mut self,
        field: &str,
        map: &IndexMap<String, String>,
        check: fn(&str) -> Result<(), String>,
    ) -> IndexMap<String, String> {
        let mut filled = IndexMap::with_capacity(map.len());
        for (name, value) in map {
            let path = format!("{field}.{name}");
            let value = self.fill(&path, value);
            if let Err(message) = check(&value) {
                self.problem(&path, message);
            }
            filled.insert(name.clone(), value);
        }
        filled
    }

    fn fill(&mut self, field: &str, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                TextPiece::Text(text) => filled.push_str(text),
                TextPiece::Reference { name, .. } if is_own(name) => {
                    self.problem(field, own(name));
                }
                TextPiece::Reference { name, default } => match ((self.env)(name), default) {
                    (Some(value), _) => {
                        filled.push_str(&value);
                        self.expanded_values.push(value);
                    }
                    (None, Some(default)) => filled.push_str(default),
                    (None, None) => self.problem(field, unset(name)),
                },
            }
        }
        if filled.contains('\0') {
            self.problem(field, "must not contain a NUL character");
        }
        filled
    }

    fn problem(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(field, message));
    }
}

/// Variables that hold Portway's own settings and keys.
fn is_own(name: &str) -> bool {
    name.starts_with("PORTWAY_") || name.starts_with("SUPABASE_")
}

fn own(name: &str) -> String {
    format!(
        "${{{name}}} is not expanded: variables that begin with PORTWAY_ or SUPABASE_ are \
         Portway's own and are never passed to a server; set the value under another name"
    )
}

fn unset(name: &str) -> String {
    format!(
        "the environment variable {name} is not set; set it before starting Portway, \
         or give a default: ${{{name}:-value}}"
    )
}

impl Launch {
    /// Every value that came from the environment, secret or not.
    pub fn expanded_values(&self) -> &[String] {
        &self.expanded_values
    }

    /// The values that must not appear in a log.
    pub fn secrets(&self) -> Vec<&str> {
        let mut secrets: Vec<&str> = self
            .expanded_values
            .iter()
            .map(String::as_str)
            .filter(|value| worth_hiding("", value))
            .collect();
        match &self.target {
            LaunchTarget::Stdio {
                command, args, env, ..
            } => {
                for (name, value) in env {
                    secrets.extend(worth_hiding(name, value).then_some(value.as_str()));
                    secrets.extend(hidden_in(value, &mask::in_text(value)));
                }
                let parts = mask::in_args(command, args);
                let hidden = args.iter().zip(&parts);
                secrets.extend(hidden.flat_map(|(arg, parts)| hidden_in(arg, parts)));
            }
            LaunchTarget::Remote { url, headers, .. } => {
                for value in headers.values() {
                    secrets.push(value);
                    // `Bearer abc`: the log may show the token alone.
                    secrets.extend(value.split_once(' ').map(|(_, token)| token.trim()));
                }
                secrets.extend(hidden_in(url.as_str(), &mask::in_url(url.as_str())));
            }
        }
        secrets
    }
}

/// The hidden parts of a text that are worth looking for in logs.
fn hidden_in<'t>(text: &'t str, parts: &[HiddenRange]) -> Vec<&'t str> {
    let mut secrets = Vec::new();
    for part in parts {
        let value = &text[part.range.clone()];
        if !part.setting || worth_hiding("", value) {
            secrets.push(value);
            // `Bearer abc`: the log may show the token alone, and one value
            // of many in an object.
            secrets.extend(value.split_once(' ').map(|(_, token)| token.trim()));
            let inner = mask::in_text(value).into_iter();
            secrets.extend(inner.map(|part| &value[part.range]));
            if value.starts_with(['{', '[']) {
                let words = value.split(['"', '\'']);
                secrets.extend(words.filter(|word| worth_hiding("", word)));
            }
        }
    }
    secrets
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.target, f)
    }
}

impl fmt::Debug for LaunchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchTarget::Stdio { args, env, .. } => f
                .debug_struct("Stdio")
                .field("args", &args.len())
                .field("env", &env.keys())
                .finish_non_exhaustive(),
            LaunchTarget::Remote { kind, headers, .. } => f
                .debug_struct("Remote")
                .field("kind", kind)
                .field("headers", &headers.keys())
                .finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests;
