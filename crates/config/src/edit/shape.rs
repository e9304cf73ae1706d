//! Keeps the spelling that the file's owner chose: a definition in one of the
//! accepted shapes keeps that shape when a part of it changes.

use serde_json::{Map, Value};

use super::super::spec::{ServerSpec, Target, TransportKind};
use super::super::view::definition_fields;

/// The members a server's object should have: those it has, changed where
/// the definition differs. Unknown fields stay.
pub(super) fn keep(current: Map<String, Value>, spec: &ServerSpec) -> Map<String, Value> {
    let mut shape = ServerShape {
        fields: current,
        plain: definition_fields(spec),
    };
    let kind = spec.transport();
    if shape.kind() != Some(kind) {
        shape.change_kind(kind);
    }
    match &spec.target {
        Target::Stdio { args, .. } => shape.stdio(args),
        Target::Http { .. } | Target::Sse { .. } => {
            shape.set("url", None);
            shape.set("headers", Some(Value::Object(Map::new())));
        }
    }
    shape.enabled(spec.enabled);
    let millis = u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX);
    shape.set("timeout", Some(millis.into()));
    shape.set("era", Some(spec.era.as_str().into()));
    shape.set("containment", Some(spec.containment.as_str().into()));
    shape.set("isolation", Some(spec.isolation.as_str().into()));
    shape.fields
}

struct ServerShape {
    fields: Map<String, Value>,
    /// The definition as Portway writes it, defaults left out.
    plain: Map<String, Value>,
}

impl ServerShape {
    /// Sets a field to the definition's value. If that is the default, an
    /// existing field becomes `default`, and a missing one stays missing.
    fn set(&mut self, field: &str, default: Option<Value>) {
        let written = self.has(field);
        match (self.plain.get(field).cloned(), default) {
            (Some(value), _) => {
                self.fields.insert(field.into(), value);
            }
            (None, Some(default)) if written => {
                self.fields.insert(field.into(), default);
            }
            (None, None) if written => {
                self.fields.shift_remove(field);
            }
            _ => {}
        }
    }

    fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|value| !value.is_null())
    }

    /// The transport that the file names, if its fields are valid and agree.
    fn kind(&self) -> Option<TransportKind> {
        let word = |field: &str| self.fields.get(field).and_then(Value::as_str);
        let kind_of = |word: &str| match word {
            "stdio" | "local" => Some(TransportKind::Stdio),
            "sse" => Some(TransportKind::Sse),
            "http" | "remote" | "streamable-http" | "streamable_http" | "streamableHttp" => {
                Some(TransportKind::Http)
            }
            _ => None,
        };
        match (word("type"), word("transport")) {
            (Some("remote"), Some(other)) | (Some(other), Some("remote")) => kind_of(other),
            (Some(a), Some(b)) => kind_of(a).filter(|kind| Some(*kind) == kind_of(b)),
            (Some(word), None) | (None, Some(word)) => kind_of(word),
            (None, None) => match (self.has("command"), self.has("url")) {
                (true, false) => Some(TransportKind::Stdio),
                (false, true) => Some(TransportKind::Http),
                _ => None,
            },
        }
    }

    fn change_kind(&mut self, kind: TransportKind) {
        self.fields.insert("type".into(), kind.as_str().into());
        self.fields.insert("transport".into(), kind.as_str().into());
        let foreign: &[&str] = match kind {
            TransportKind::Stdio => &["url", "headers"],
            _ => &["command", "args", "env", "environment", "cwd"],
        };
        for field in foreign {
            self.fields.shift_remove(*field);
        }
    }

    fn stdio(&mut self, args: &[String]) {
        if let Some(Value::Array(_)) = self.fields.get("command") {
            let command = self.plain.get("command").cloned().into_iter();
            let words = command.chain(args.iter().map(|arg| arg.as_str().into()));
            self.fields.insert("command".into(), words.collect());
            if self.has("args") {
                self.fields.insert("args".into(), Value::Array(vec![]));
            }
        } else {
            self.set("command", None);
            self.set("args", Some(Value::Array(vec![])));
        }
        if self.has("environment") && !self.has("env") {
            if let Some(env) = self.plain.shift_remove("env") {
                self.plain.insert("environment".into(), env);
            }
            self.set("environment", Some(Value::Object(Map::new())));
        } else {
            if self.has("environment") {
                self.fields.shift_remove("environment");
            }
            self.set("env", Some(Value::Object(Map::new())));
        }
        self.set("cwd", None);
    }

    fn enabled(&mut self, enabled: bool) {
        let (by_yes, by_no) = (self.has("enabled"), self.has("disabled"));
        if by_no {
            self.fields.insert("disabled".into(), (!enabled).into());
        }
        if by_yes || (!by_no && !enabled) {
            self.fields.insert("enabled".into(), enabled.into());
        }
    }
}
