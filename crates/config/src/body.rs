//! A server in a request: the same fields as in a file, but an unknown field
//! is an error, and a masked value (`***`) stands for the stored one.

use jsonc_parser::ast::{Object, Value as Node};
use serde_json::{Map, Value};

use super::definition::{self, DefinitionSource};
use super::mask::cover;
use super::problem::Problem;
use super::spec::{MASK, ServerName, ServerSpec, Target, TransportKind};
use super::tree::{self, LineIndex, kind_of, repeated};
use super::view::{definition_fields, mask_url, masked_args};

/// A registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    pub name: ServerName,
    pub spec: ServerSpec,
    pub auto_start: Option<bool>,
}

/// A change of an existing server. A name in it renames the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerChange {
    pub name: Option<ServerName>,
    pub spec: ServerSpec,
    pub auto_start: Option<bool>,
}

type JsonFields = Map<String, Value>;

const BESIDE: &[&str] = &["name", "autoStart"];

/// Reads a registration (POST).
pub fn parse_body(bytes: &[u8]) -> Result<Registration, Vec<Problem>> {
    let (fields, problems) = object(bytes)?;
    let is_named = fields.get("name").is_some_and(|name| !name.is_null());
    let nameless = || Problem::new("name", "is missing: give the server a name");
    match change(fields, None, problems) {
        Ok(ServerChange {
            name: Some(name),
            spec,
            auto_start,
        }) => Ok(Registration {
            name,
            spec,
            auto_start,
        }),
        Ok(_) => Err(vec![nameless()]),
        Err(mut problems) => {
            if !is_named {
                problems.insert(0, nameless());
            }
            Err(problems)
        }
    }
}

/// Reads a whole new definition (PUT); missing fields get their defaults.
pub fn parse_replacement(current: &ServerSpec, bytes: &[u8]) -> Result<ServerChange, Vec<Problem>> {
    let (fields, problems) = object(bytes)?;
    change(fields, Some(current), problems)
}

/// Reads a partial one (PATCH, as RFC 7396): objects are merged, `null`
/// removes, everything else replaces.
pub fn merge_patch(current: &ServerSpec, bytes: &[u8]) -> Result<ServerChange, Vec<Problem>> {
    let (patch, problems) = object(bytes)?;
    let patch = with_usual_names(patch);
    let mut fields = definition_fields(current);
    remove_replaced(&mut fields, &patch);
    merge(&mut fields, patch);
    change(fields, Some(current), problems)
}

/// The fields of a request, and problems of their names: given twice, or
/// unknown.
fn object(bytes: &[u8]) -> Result<(JsonFields, Vec<Problem>), Vec<Problem>> {
    let whole = |message: String| vec![Problem::new("", message)];
    // The stricter parser first: a request has no comments, and no nesting
    // that would exhaust a stack.
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
        .map_err(|error| whole(format!("the body is not JSON: {error}")))?;
    let text =
        std::str::from_utf8(bytes).map_err(|_| whole("the body is not UTF-8 text".into()))?;
    let node = tree::parse(text).map_err(|problem| vec![problem])?;
    let Node::Object(object) = node else {
        let message = format!("the body must be an object, not {}", kind_of(&node));
        return Err(whole(message));
    };
    let mut problems = repetitions(&object, "");
    problems.extend(definition::unknown_fields(&object, BESIDE));
    match Value::from(Node::Object(object)) {
        Value::Object(fields) => Ok((fields, problems)),
        _ => Err(problems),
    }
}

fn repetitions(object: &Object<'_>, path: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = repeated(object)
        .into_iter()
        .map(|(name, _)| Problem::new(format!("{path}{name}"), "is given twice; keep one"))
        .collect();
    for member in &object.properties {
        if let Node::Object(inner) = &member.value {
            problems.extend(repetitions(inner, &format!("{}.", member.name.as_str())));
        }
    }
    problems
}

fn change(
    mut fields: JsonFields,
    current: Option<&ServerSpec>,
    mut problems: Vec<Problem>,
) -> Result<ServerChange, Vec<Problem>> {
    let name = name(fields.shift_remove("name"), &mut problems);
    let auto_start = match fields.shift_remove("autoStart") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(wish)) => Some(wish),
        Some(_) => {
            problems.push(Problem::new("autoStart", "must be true or false"));
            None
        }
    };
    uncover(&mut fields, current, &mut problems);
    let text = Value::Object(fields).to_string();
    let spec = match tree::parse(&text) {
        Ok(Node::Object(object)) => {
            definition::read(&object, &LineIndex::new(&text), DefinitionSource::Request)
        }
        _ => Err(vec![Problem::new("", "the body must be an object")]),
    };
    match spec {
        Ok(spec) if problems.is_empty() => Ok(ServerChange {
            name,
            spec,
            auto_start,
        }),
        Ok(_) => Err(problems),
        Err(more) => {
            // Lines of a text that the user did not write would mislead.
            problems.extend(more.into_iter().map(|p| Problem::new(p.field, p.message)));
            Err(problems)
        }
    }
}

fn name(value: Option<Value>, problems: &mut Vec<Problem>) -> Option<ServerName> {
    let result = match value? {
        Value::Null => return None,
        Value::String(text) => ServerName::parse(&text),
        _ => Err("must be a string".into()),
    };
    result
        .map_err(|message| problems.push(Problem::new("name", message)))
        .ok()
}

/// Replaces alternative spellings of a field by the usual one, so that a
/// patch finds the field that it changes.
fn with_usual_names(mut patch: JsonFields) -> JsonFields {
    if !patch.contains_key("env")
        && let Some(env) = patch.shift_remove("environment")
    {
        patch.insert("env".into(), env);
    }
    if !patch.contains_key("enabled")
        && let Some(Value::Bool(disabled)) = patch.get("disabled")
    {
        let enabled = !disabled;
        patch.shift_remove("disabled");
        patch.insert("enabled".into(), enabled.into());
    }
    patch
}

/// Removes the current fields that the patch makes meaningless.
fn remove_replaced(fields: &mut JsonFields, patch: &JsonFields) {
    let said = |field: &str| patch.get(field).and_then(Value::as_str);
    if let Some(word) = said("type").or(said("transport")) {
        fields.shift_remove("type");
        fields.shift_remove("transport");
        let kinds = definition::kinds_of(word);
        let kind = kinds.first().copied().unwrap_or(TransportKind::Http);
        for field in definition::foreign_fields(kind) {
            fields.shift_remove(*field);
        }
    }
    if patch.get("command").is_some_and(Value::is_array) {
        fields.shift_remove("args");
    }
}

fn merge(fields: &mut JsonFields, patch: JsonFields) {
    for (name, value) in patch {
        match (fields.get_mut(&name), value) {
            (_, Value::Null) => {
                fields.shift_remove(&name);
            }
            (Some(Value::Object(current)), Value::Object(patch)) => merge(current, patch),
            (_, Value::Object(patch)) => {
                let mut fresh = Map::new();
                merge(&mut fresh, patch);
                fields.insert(name, Value::Object(fresh));
            }
            (_, value) => {
                fields.insert(name, value);
            }
        }
    }
}

/// Puts stored values back where a request has only their mask.
fn uncover(fields: &mut JsonFields, current: Option<&ServerSpec>, problems: &mut Vec<Problem>) {
    let stored_map = |field: &str, name: &str| -> Option<&str> {
        let found = match &current?.target {
            Target::Stdio { env, .. } if field != "headers" => env.get(name),
            Target::Remote { headers, .. } if field == "headers" => {
                let mut entries = headers.iter();
                entries.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
            }
            _ => None,
        };
        found.map(String::as_str)
    };
    for field in ["env", "environment", "headers"] {
        let Some(Value::Object(map)) = fields.get_mut(field) else {
            continue;
        };
        for (name, value) in map.iter_mut() {
            let Value::String(text) = value else { continue };
            match stored_map(field, name) {
                Some(stored) if text == MASK || *text == cover(stored) => {
                    stored.clone_into(text);
                }
                _ if is_cover(text) => problems.push(hidden(format!("{field}.{name}"))),
                _ => {}
            }
        }
    }
    if let Some(Value::String(url)) = fields.get_mut("url") {
        match current.map(|spec| &spec.target) {
            Some(Target::Remote { url: stored, .. }) if *url == mask_url(stored) => {
                stored.clone_into(url);
            }
            _ if url.contains(MASK) => problems.push(hidden("url".into())),
            _ => {}
        }
    }
    if let Some(Value::Array(args)) = fields.get_mut("args") {
        uncover_args(args, current, problems);
    }
}

/// A stored argument is recognised by its masked form. Of several that look
/// the same, the one after the same argument is taken; each is used once.
fn uncover_args(args: &mut [Value], current: Option<&ServerSpec>, problems: &mut Vec<Problem>) {
    let (command, stored): (&str, &[String]) = match current.map(|spec| &spec.target) {
        Some(Target::Stdio { command, args, .. }) => (command, args),
        _ => ("", &[]),
    };
    let masked = masked_args(command, stored);
    let given: Vec<String> = args
        .iter()
        .map(|arg| arg.as_str().unwrap_or_default().to_owned())
        .collect();
    let mut used = vec![false; stored.len()];
    for (i, arg) in args.iter_mut().enumerate() {
        let Value::String(text) = arg else { continue };
        if !text.contains(MASK) {
            continue;
        }
        let before = i.checked_sub(1).map(|i| &given[i]);
        let same_before = |at: usize| at.checked_sub(1).map(|at| &masked[at]) == before;
        let free = |at: &usize| masked[*at] == *text && !used[*at];
        let place = (0..stored.len())
            .filter(free)
            .find(|at| same_before(*at))
            .or_else(|| (0..stored.len()).filter(free).find(|_| !is_cover(text)));
        match place {
            Some(at) => {
                used[at] = true;
                stored[at].clone_into(text);
            }
            None if stands_for_a_value(text) => problems.push(hidden(format!("args[{i}]"))),
            None => {}
        }
    }
}

/// Whether the mask stands in the position of a value, and not inside a
/// pattern such as `a***b`.
fn stands_for_a_value(text: &str) -> bool {
    text.match_indices(MASK).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + MASK.len()..].chars().next();
        let attached = at == 2 && text.starts_with('-');
        (attached || before.is_none_or(|c| "=: \"'/@-?&#".contains(c)))
            && after.is_none_or(|c| "\"'/@&#?}])|,;.\\ \n".contains(c))
    })
}

fn is_cover(text: &str) -> bool {
    text == MASK || text.ends_with(":-***}")
}

fn hidden(field: String) -> Problem {
    Problem::new(
        field,
        format!(
            "{MASK} stands for a hidden value that is stored, and none is stored here; write the value itself"
        ),
    )
}

#[cfg(test)]
mod tests;
