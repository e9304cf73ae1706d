//! One server, from the object that defines it. Every shape of SPEC B1 and
//! B5 becomes the same `ServerSpec`; all problems are reported at once.

use std::time::Duration;

use indexmap::IndexMap;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::check::{
    check_env_name, check_env_value, check_header_name, check_header_value, check_unexpanded_url,
    unknown_field,
};
use super::fields::{FieldReader, quoted};
use super::problem::Problem;
use super::spec::{
    Containment, DEFAULT_TIMEOUT, EraChoice, Isolation, Privileges, RemoteKind, ServerSpec, Target,
    TransportKind,
};
use super::tree::LineIndex;

/// A day: longer is a mistake of the unit.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const COMMON: &[&str] = &[
    "type", "transport", "enabled", "disabled", "timeout", "era", "containment", "privileges",
    "isolation",
];
const OF_STDIO: &[&str] = &["command", "args", "env", "environment", "cwd"];
const OF_REMOTE: &[&str] = &["url", "headers"];

/// Every field of a definition that Portway reads.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    COMMON.iter().chain(OF_STDIO).chain(OF_REMOTE).copied()
}

/// Where a definition comes from, which decides how strictly it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DefinitionSource {
    /// A file that other tools read too: their fields are ignored.
    File,
    /// A request to Portway: unknown fields are errors.
    Request,
}

/// The values of `type` and `transport`, and the transports that each may mean.
pub(super) const TRANSPORT_WORDS: &[(&str, &[TransportKind])] = &[
    ("stdio", &[TransportKind::Stdio]),
    ("local", &[TransportKind::Stdio]),
    ("http", &[TransportKind::Http]),
    ("streamable-http", &[TransportKind::Http]),
    ("streamable_http", &[TransportKind::Http]),
    ("streamableHttp", &[TransportKind::Http]),
    ("sse", &[TransportKind::Sse]),
    ("remote", &[TransportKind::Http, TransportKind::Sse]),
];

/// The transports that a word may mean; none if the word is unknown.
pub(super) fn kinds_of(word: &str) -> &'static [TransportKind] {
    let known = TRANSPORT_WORDS.iter().find(|(known, _)| *known == word);
    known.map_or(&[], |(_, kinds)| kinds)
}

/// The transport that `type` and `transport` mean together.
pub(super) fn common_kind(a: &[TransportKind], b: &[TransportKind]) -> Option<TransportKind> {
    a.iter().find(|kind| b.contains(kind)).copied()
}

/// The fields that only servers with other transports have.
pub(super) fn foreign_fields(kind: TransportKind) -> &'static [&'static str] {
    match kind {
        TransportKind::Stdio => OF_REMOTE,
        TransportKind::Http | TransportKind::Sse => OF_STDIO,
    }
}

pub(super) fn read(
    object: &Object<'_>,
    places: &LineIndex<'_>,
    source: DefinitionSource,
) -> Result<ServerSpec, Vec<Problem>> {
    let mut fields = FieldReader::new(object, places);
    let kind = fields.kind();
    let target = kind.map(|kind| match kind {
        TransportKind::Stdio => fields.stdio(),
        TransportKind::Http => fields.remote(RemoteKind::Http),
        TransportKind::Sse => fields.remote(RemoteKind::Sse),
    });
    match kind {
        Some(kind) => fields.refuse_foreign(kind, source),
        None => fields.judge_parts(),
    }
    let enabled = fields.enabled();
    let timeout = fields.timeout();
    let era = fields.choice("era", EraChoice::ALL, EraChoice::WORDS);
    let containment = fields.choice("containment", Containment::ALL, Containment::WORDS);
    let privileges = fields.choice("privileges", Privileges::ALL, Privileges::WORDS);
    let isolation = fields.choice("isolation", Isolation::ALL, Isolation::WORDS);
    match target {
        Some(target) if fields.problems.is_empty() => Ok(ServerSpec {
            target,
            enabled,
            timeout,
            era,
            containment,
            privileges,
            isolation,
        }),
        _ => Err(fields.problems),
    }
}

/// The unknown fields of a request.
pub(super) fn unknown_fields(object: &Object<'_>, also_known: &[&'static str]) -> Vec<Problem> {
    let known = || known_fields().chain(also_known.iter().copied());
    let names = object.properties.iter().map(|member| member.name.as_str());
    names
        .filter(|name| known().all(|known| known != *name))
        .map(|name| Problem::new(name, unknown_field(name, known())))
        .collect()
}

impl FieldReader<'_, '_> {
    /// With both a command and a url, tools would differ in which one they
    /// use, so the definition is refused.
    fn refuse_foreign(&mut self, kind: TransportKind, source: DefinitionSource) {
        let owner = match kind {
            TransportKind::Stdio => "a remote server (http, sse)",
            TransportKind::Http | TransportKind::Sse => "a server of type stdio",
        };
        for field in foreign_fields(kind) {
            let essential = matches!(*field, "url" | "command");
            if !essential && source == DefinitionSource::File {
                continue;
            }
            if let Some(value) = self.get(field) {
                let message = format!(
                    "belongs to {owner}, but this one is {}; remove one of the two",
                    kind.as_str()
                );
                self.problem_at(field, message, value.start());
            }
        }
    }

    fn kind(&mut self) -> Option<TransportKind> {
        let [a, b] = ["type", "transport"].map(|field| self.word(field));
        match (a.ok()?, b.ok()?) {
            (Some(a), Some(b)) => {
                let kind = common_kind(a, b);
                if kind.is_none() {
                    self.disagree(if a.len() == 1 { a[0] } else { b[0] });
                }
                kind
            }
            (Some(kinds), None) | (None, Some(kinds)) => kinds.first().copied(),
            (None, None) => match (self.get("command"), self.get("url")) {
                (Some(_), Some(url)) => {
                    let message = "is given beside \"command\"; a server has one or the other";
                    self.problem_at("url", message, url.start());
                    None
                }
                (Some(_), None) => Some(TransportKind::Stdio),
                (None, Some(_)) => Some(TransportKind::Http),
                (None, None) => {
                    let message =
                        "is missing; give \"command\" (a program to start) or \"url\" (an address)";
                    self.missing("command", message);
                    None
                }
            },
        }
    }

    fn disagree(&mut self, said: TransportKind) {
        if let Some(value) = self.get("transport") {
            let message = format!(
                "contradicts \"type\"; give one, or the same in both \
                 (one of them says {})",
                said.as_str()
            );
            self.problem_at("transport", message, value.start());
        }
    }

    fn word(&mut self, field: &str) -> Result<Option<&'static [TransportKind]>, ()> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let text = self.string(field, value).ok_or(())?;
        let kinds = kinds_of(text);
        if kinds.is_empty() {
            let message = format!("unknown value {}; use stdio, http or sse", quoted(text));
            self.problem_at(field, message, value.start());
            return Err(());
        }
        Ok(Some(kinds))
    }

    fn stdio(&mut self) -> Target {
        let (command, mut args) = self.command();
        if let Some(value) = self.get("args") {
            let listed = self.strings("args", value);
            if !args.is_empty() && !listed.is_empty() {
                let message = "are already in \"command\"; give them in one of the two";
                self.problem_at("args", message, value.start());
            }
            args.extend(listed);
        }
        if let (Some(_), Some(second)) = (self.get("env"), self.get("environment")) {
            let message = "is given beside \"env\"; give one of the two";
            self.problem_at("environment", message, second.start());
        }
        let mut env = self.map("env", check_env_name, check_env_value);
        env.extend(self.map("environment", check_env_name, check_env_value));
        let cwd = self.get("cwd").and_then(|value| {
            let text = self.string("cwd", value)?;
            if text.is_empty() {
                self.problem_at("cwd", "must not be empty", value.start());
            }
            Some(text.to_owned())
        });
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        }
    }

    /// Checks the fields that can be checked without knowing the transport.
    fn judge_parts(&mut self) {
        if let Some(args) = self.get("args") {
            self.strings("args", args);
        }
        self.map("env", check_env_name, check_env_value);
        self.map("environment", check_env_name, check_env_value);
        self.map("headers", check_header_name, check_header_value);
    }

    fn command(&mut self) -> (String, Vec<String>) {
        let Some(value) = self.get("command") else {
            self.missing("command", "is missing: give the program to start");
            return Default::default();
        };
        let (command, args) = match value {
            Value::Array(_) => {
                let mut words = self.strings("command", value).into_iter();
                (words.next(), words.collect())
            }
            _ => (self.string("command", value).map(str::to_owned), vec![]),
        };
        // A value of the wrong kind has been reported already.
        let silent = !matches!(value, Value::StringLit(_) | Value::Array(_));
        let command = command.unwrap_or_default();
        if command.trim().is_empty() && !silent && self.problems.is_empty() {
            let message = "must not be empty: give the program to start";
            self.problem_at("command", message, value.start());
        }
        (command, args)
    }

    fn remote(&mut self, kind: RemoteKind) -> Target {
        let url = match self.get("url") {
            None => {
                self.missing("url", "is missing: give the address of the server");
                String::new()
            }
            Some(value) => {
                let url = self.string("url", value).unwrap_or_default().to_owned();
                if matches!(value, Value::StringLit(_))
                    && let Err(message) = check_unexpanded_url(&url)
                {
                    self.problem_at("url", message, value.start());
                }
                url
            }
        };
        let headers = self.map("headers", check_header_name, check_header_value);
        self.refuse_header_twice(&headers);
        Target::Remote { kind, url, headers }
    }

    fn refuse_header_twice(&mut self, headers: &IndexMap<String, String>) {
        let mut seen = std::collections::HashSet::new();
        for name in headers.keys() {
            if !seen.insert(name.to_ascii_lowercase()) {
                let message = "is given twice (case makes no difference in header names); keep one";
                self.missing(&format!("headers.{name}"), message);
            }
        }
    }

    fn enabled(&mut self) -> bool {
        let enabled = self.boolean("enabled");
        let disabled = self.boolean("disabled");
        if let (Some(enabled), Some(disabled)) = (enabled, disabled)
            && enabled == disabled
            && let Some(value) = self.get("disabled")
        {
            let message = "contradicts \"enabled\"; keep one of the two";
            self.problem_at("disabled", message, value.start());
        }
        enabled
            .or(disabled.map(|disabled| !disabled))
            .unwrap_or(true)
    }

    fn timeout(&mut self) -> Duration {
        let Some(value) = self.get("timeout") else {
            return DEFAULT_TIMEOUT;
        };
        let millis = match value {
            // `3000.0` is a whole number to JSON.
            Value::NumberLit(number) => {
                let digits = number.value.trim_end_matches('0').strip_suffix('.');
                digits.unwrap_or(number.value).parse::<u64>().ok()
            }
            _ => None,
        };
        let timeout = millis.map(Duration::from_millis);
        let timeout = timeout.filter(|t| !t.is_zero() && *t <= MAX_TIMEOUT);
        timeout.unwrap_or_else(|| {
            let most = MAX_TIMEOUT.as_millis();
            let message = format!("must be a whole number of milliseconds from 1 to {most}");
            self.problem_at("timeout", message, value.start());
            DEFAULT_TIMEOUT
        })
    }
}
