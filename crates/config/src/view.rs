//! A definition as JSON: with secrets masked for the API, and unmasked for
//! files.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::mask;
use super::spec::{
    Containment, DEFAULT_TIMEOUT, EraChoice, Isolation, Privileges, ServerSpec, Target,
};

/// The `config` object of the API: every field, secrets masked.
pub fn masked_config(spec: &ServerSpec) -> Value {
    let mut fields = all_fields(spec, true);
    if !matches!(spec.target, Target::Stdio { .. }) {
        fields.shift_remove("containment");
        fields.shift_remove("privileges");
    }
    Value::Object(fields)
}

/// The command line or the address without secrets, for errors, logs and
/// tables.
pub fn title(spec: &ServerSpec) -> String {
    match &spec.target {
        Target::Stdio { command, args, .. } => {
            let mut words = vec![command.clone()];
            words.extend(masked_args(command, args));
            words.join(" ")
        }
        Target::Remote { url, .. } => mask_url(url),
    }
}

/// The fields of a definition for a file, defaults left out. Claude Code
/// skips a definition that has only `transport`, other tools need it, so both
/// `type` and `transport` are written (SPEC B1).
pub fn definition_fields(spec: &ServerSpec) -> Map<String, Value> {
    let mut fields = all_fields(spec, false);
    fields.retain(|field, value| default_of(field).as_ref() != Some(value));
    fields
}

/// The value of a field that a definition leaves out; `None` if the field has
/// none then.
pub(super) fn default_of(field: &str) -> Option<Value> {
    match field {
        "args" => Some(Value::Array(Vec::new())),
        "env" | "environment" | "headers" => Some(Value::Object(Map::new())),
        "enabled" => Some(true.into()),
        "timeout" => Some(millis(DEFAULT_TIMEOUT).into()),
        "era" => Some(EraChoice::default().as_str().into()),
        "containment" => Some(Containment::default().as_str().into()),
        "privileges" => Some(Privileges::default().as_str().into()),
        "isolation" => Some(Isolation::default().as_str().into()),
        _ => None,
    }
}

fn all_fields(spec: &ServerSpec, masked: bool) -> Map<String, Value> {
    let shown: fn(&str) -> String = if masked { mask::cover } else { str::to_owned };
    let map = |map: &IndexMap<String, String>| -> Value {
        let pairs = map.iter();
        pairs
            .map(|(name, value)| (name.as_str(), shown(value)))
            .collect()
    };
    let mut fields = Map::new();
    let mut add = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    let kind = spec.transport().as_str();
    add("type", kind.into());
    add("transport", kind.into());
    match &spec.target {
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let args = if masked {
                masked_args(command, args)
            } else {
                args.clone()
            };
            add("command", command.as_str().into());
            add("args", args.into());
            add("env", map(env));
            if let Some(cwd) = cwd {
                add("cwd", cwd.as_str().into());
            }
        }
        Target::Remote { url, headers, .. } => {
            let url = if masked { mask_url(url) } else { url.clone() };
            add("url", url.into());
            add("headers", map(headers));
        }
    }
    add("enabled", spec.enabled.into());
    add("timeout", millis(spec.timeout).into());
    add("era", spec.era.as_str().into());
    add("containment", spec.containment.as_str().into());
    add("privileges", spec.privileges.as_str().into());
    add("isolation", spec.isolation.as_str().into());
    fields
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// An address without its secrets.
pub fn mask_url(url: &str) -> String {
    mask::covered(url, &mask::in_url(url))
}

/// The arguments of a command without their secrets.
pub(super) fn masked_args(command: &str, args: &[String]) -> Vec<String> {
    let hidden = mask::in_args(command, args);
    let pairs = args.iter().zip(&hidden);
    pairs
        .map(|(arg, hidden)| mask::covered(arg, hidden))
        .collect()
}

#[cfg(test)]
mod tests;
