//! Keeps the spelling that the file's owner chose: a definition in one of the
//! accepted shapes keeps that shape when a part of it changes.

use serde_json::{Map, Value};

use super::super::definition::{common_kind, foreign_fields, kinds_of};
use super::super::spec::{ServerSpec, Target, TransportKind};
use super::super::view::{default_of, definition_fields};

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
        Target::Remote { .. } => {
            shape.set("url");
            shape.set("headers");
        }
    }
    shape.enabled(spec.enabled);
    for field in ["timeout", "era", "containment", "privileges", "isolation"] {
        shape.set(field);
    }
    shape.fields
}

struct ServerShape {
    fields: Map<String, Value>,
    /// The definition as Portway writes it, defaults left out.
    plain: Map<String, Value>,
}

impl ServerShape {
    /// Sets a field to the definition's value. If that is the default, an
    /// existing field is set to it, and a missing one stays missing.
    fn set(&mut self, field: &str) {
        if let Some(value) = self.plain.get(field).cloned() {
            self.fields.insert(field.into(), value);
        } else if self.has(field) {
            match default_of(field) {
                Some(default) => self.fields.insert(field.into(), default),
                None => self.fields.shift_remove(field),
            };
        }
    }

    fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|value| !value.is_null())
    }

    /// The transport that the file names, if its fields are valid and agree.
    fn kind(&self) -> Option<TransportKind> {
        let word = |field: &str| self.fields.get(field)?.as_str().map(kinds_of);
        match (word("type"), word("transport")) {
            (Some(a), Some(b)) => common_kind(a, b),
            (Some(kinds), None) | (None, Some(kinds)) => kinds.first().copied(),
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
        for field in foreign_fields(kind) {
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
            self.set("command");
            self.set("args");
        }
        if self.has("environment") && !self.has("env") {
            if let Some(env) = self.plain.shift_remove("env") {
                self.plain.insert("environment".into(), env);
            }
            self.set("environment");
        } else {
            if self.has("environment") {
                self.fields.shift_remove("environment");
            }
            self.set("env");
        }
        self.set("cwd");
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
