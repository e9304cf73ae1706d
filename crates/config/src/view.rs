//! A definition as JSON: with secrets masked for the API, and unmasked for
//! files.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::mask;
use super::spec::{DEFAULT_TIMEOUT, ServerSpec, Target};

/// The `config` object of the API: every field, secrets masked.
pub fn masked_config(spec: &ServerSpec) -> Value {
    let mut object = Map::new();
    transport(spec, &mut object);
    match &spec.target {
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            object.insert("command".into(), command.as_str().into());
            object.insert("args".into(), masked_args(command, args).into());
            object.insert("env".into(), covered(env));
            if let Some(cwd) = cwd {
                object.insert("cwd".into(), cwd.as_str().into());
            }
        }
        Target::Http { url, headers } | Target::Sse { url, headers } => {
            object.insert("url".into(), mask_url(url).into());
            object.insert("headers".into(), covered(headers));
        }
    }
    object.insert("enabled".into(), spec.enabled.into());
    object.insert("timeout".into(), millis(spec));
    object.insert("era".into(), spec.era.as_str().into());
    if matches!(spec.target, Target::Stdio { .. }) {
        object.insert("containment".into(), spec.containment.as_str().into());
        object.insert("privileges".into(), spec.privileges.as_str().into());
    }
    object.insert("isolation".into(), spec.isolation.as_str().into());
    Value::Object(object)
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
        Target::Http { url, .. } | Target::Sse { url, .. } => mask_url(url),
    }
}

/// The fields of a definition for a file, defaults left out. Claude Code
/// skips a definition that has only `transport`, other tools need it, so both
/// `type` and `transport` are written (SPEC B1).
pub fn definition_fields(spec: &ServerSpec) -> Map<String, Value> {
    let mut object = Map::new();
    transport(spec, &mut object);
    let map = |map: &IndexMap<String, String>| {
        Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect(),
        )
    };
    match &spec.target {
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            object.insert("command".into(), command.as_str().into());
            if !args.is_empty() {
                object.insert("args".into(), args.clone().into());
            }
            if !env.is_empty() {
                object.insert("env".into(), map(env));
            }
            if let Some(cwd) = cwd {
                object.insert("cwd".into(), cwd.as_str().into());
            }
        }
        Target::Http { url, headers } | Target::Sse { url, headers } => {
            object.insert("url".into(), url.as_str().into());
            if !headers.is_empty() {
                object.insert("headers".into(), map(headers));
            }
        }
    }
    if !spec.enabled {
        object.insert("enabled".into(), false.into());
    }
    if spec.timeout != DEFAULT_TIMEOUT {
        object.insert("timeout".into(), millis(spec));
    }
    for (field, word, default) in [
        ("era", spec.era.as_str(), "auto"),
        ("containment", spec.containment.as_str(), "auto"),
        ("privileges", spec.privileges.as_str(), "drop"),
        ("isolation", spec.isolation.as_str(), "auto"),
    ] {
        if word != default {
            object.insert(field.into(), word.into());
        }
    }
    object
}

fn transport(spec: &ServerSpec, object: &mut Map<String, Value>) {
    let kind = spec.transport().as_str();
    object.insert("type".into(), kind.into());
    object.insert("transport".into(), kind.into());
}

fn millis(spec: &ServerSpec) -> Value {
    u64::try_from(spec.timeout.as_millis())
        .unwrap_or(u64::MAX)
        .into()
}

fn covered(map: &IndexMap<String, String>) -> Value {
    Value::Object(
        map.iter()
            .map(|(name, value)| (name.clone(), mask::cover(value).into()))
            .collect(),
    )
}

/// An address without its secrets.
pub(super) fn mask_url(url: &str) -> String {
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
