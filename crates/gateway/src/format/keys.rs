//! Names of arguments. Anthropic refuses a request if one does not match
//! `^[a-zA-Z0-9_.-]{1,64}$`: such an argument gets another name there, and its
//! own name again before the call is sent to the server.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::schema::parameters;
use crate::members::ObjectWriter;
use crate::naming;
use wire::object::each_member;

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn fits(key: &str) -> bool {
    (1..=64).contains(&key.len()) && key.chars().all(allowed)
}

/// Gives every argument a name that Anthropic accepts.
pub(super) fn fit(schema: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    if properties.keys().all(|key| fits(key)) {
        return;
    }
    let renamed = std::mem::take(properties).into_iter();
    *properties = renamed
        .map(|(key, value)| (naming::fitted(&key, allowed).into_owned(), value))
        .collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for name in required {
            if let Value::String(key) = name {
                *key = naming::fitted(key, allowed).into_owned();
            }
        }
    }
}

/// The arguments under their own names; `None` if they have them already.
pub fn restored(schema: Option<&RawValue>, arguments: &RawValue) -> Option<Box<RawValue>> {
    let parameters = parameters(schema).schema;
    let Some(Value::Object(properties)) = parameters.get("properties") else {
        return None;
    };
    let odd: Vec<(String, &String)> = properties
        .keys()
        .filter(|key| !fits(key))
        .map(|key| (naming::fitted(key, allowed).into_owned(), key))
        .collect();
    if odd.is_empty() {
        return None;
    }
    let mut restored = ObjectWriter::new();
    each_member(arguments, |key, value| {
        let key = key.decoded();
        let own = odd.iter().find(|(fitted, _)| *fitted == key);
        restored.json(own.map_or(&*key, |(_, own)| own), value.get());
    });
    Some(restored.done())
}
