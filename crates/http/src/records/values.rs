//! The values of records, each with its rule.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;

use super::bodies::{BodyFields, kind};
use config::ServerName;
use config::filters::{self, Filter};
use store::{ApiKey, ExposedServers, NewBinding, Timestamp, ToolId};

const TOOL_NAME: usize = 128;
const ENTRY_NAME: usize = 200;
const UPSTREAM_TOOL: usize = 512;
const DESCRIPTION: usize = 16 * 1024;
const USER_ID: usize = 200;
const KEY: RangeInclusive<usize> = 8..=512;
/// The most bindings, or servers, in one request.
const LIST: usize = 1000;
/// The most patterns in one list of a filter: a view tries each on every tool.
const PATTERNS: usize = 100;

fn text(value: &Value) -> Result<&str, String> {
    let text = value.as_str();
    text.ok_or_else(|| format!("must be a string, not {}", kind(value)))
}

fn visible(value: &Value, limit: usize) -> Result<String, String> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err("must not be empty".into());
    }
    if text.chars().count() > limit {
        return Err(format!("is longer than {limit} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("must not contain control characters".into());
    }
    Ok(text.to_owned())
}

/// The tool's name for models: the characters that MCP allows.
pub(super) fn tool_name(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match (1..=TOOL_NAME).contains(&text.len()) && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "must be 1 to {TOOL_NAME} letters (A-Z, a-z), digits, '_', '-' or '.'"
        )),
    }
}

/// The entry's name for people.
pub(super) fn entry_name(value: &Value) -> Result<String, String> {
    visible(value, ENTRY_NAME)
}

/// The server's own name for the tool, which follows no rule of ours.
pub(super) fn upstream_tool(value: &Value) -> Result<String, String> {
    visible(value, UPSTREAM_TOOL)
}

pub(super) fn description(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    if text.chars().count() > DESCRIPTION {
        return Err(format!("is longer than {DESCRIPTION} characters"));
    }
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.chars().any(odd) {
        true => Err("must not contain control characters".into()),
        false => Ok(text.to_owned()),
    }
}

pub(super) fn server(value: &Value) -> Result<String, String> {
    ServerName::parse(text(value)?).map(|name| name.as_str().to_owned())
}

/// An owner, as a text or, as in old records, as a number.
pub(super) fn user_id(value: &Value) -> Result<Arc<str>, String> {
    match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            Ok(number.to_string().into())
        }
        Value::String(_) => visible(value, USER_ID).map(Into::into),
        other => Err(format!(
            "must be a string or a whole number, not {}",
            kind(other)
        )),
    }
}

/// A key that the admin chose. A key that looks like an id would hide the
/// record with that id.
pub(super) fn given_key(value: &Value) -> Result<ApiKey, String> {
    let text = text(value)?;
    let fits = KEY.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits || number(text).is_some() {
        return Err(format!(
            "must be {} to {} visible ASCII characters, and no number",
            KEY.start(),
            KEY.end()
        ));
    }
    Ok(ApiKey::given(text))
}

/// `allow_missing`, which accepts a missing target.
pub(super) fn allow_missing(fields: &mut BodyFields) -> bool {
    let flag = |value: &Value| {
        let wrong = || format!("must be true or false, not {}", kind(value));
        value.as_bool().ok_or_else(wrong)
    };
    fields.optional("allow_missing", flag).unwrap_or(false)
}

/// A boolean, or 0 or 1 as in the old model (SPEC K6).
pub(super) fn status(value: &Value) -> Result<bool, String> {
    match (value, value.as_u64()) {
        (Value::Bool(status), _) => Ok(*status),
        (_, Some(0)) => Ok(false),
        (_, Some(1)) => Ok(true),
        _ => Err("must be true, false, 1 or 0".into()),
    }
}

pub(super) fn moment(value: &Value) -> Result<Timestamp, String> {
    let moment = text(value)?.parse();
    moment.map_err(|_| "must be a moment in UTC like 2026-11-15T10:11:12Z".into())
}

pub(super) const PAST: &str = "lies in the past";

/// The expiry of a new key, which must be in the future.
pub(super) fn future(value: &Value) -> Result<Timestamp, String> {
    let moment = moment(value)?;
    match moment > Timestamp::now() {
        true => Ok(moment),
        false => Err(PAST.into()),
    }
}

pub(super) fn tool_id(value: &Value) -> Result<Option<ToolId>, String> {
    let id = match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number)),
        Value::String(text) => number(text),
        _ => return Err(format!("must be a tool's id, not {}", kind(value))),
    };
    let id = id.filter(|id| *id > 0);
    id.map(|id| Some(ToolId(id)))
        .ok_or_else(|| "must be a tool's id: a whole number above 0".into())
}

/// `3.0` is a whole number in JSON, as long as no digit is lost.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let number = number.as_f64()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// Only digits, and no more than every id can have.
pub(super) fn number(text: &str) -> Option<i64> {
    let digits = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn list(fields: &mut BodyFields, name: &str, value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) if items.len() <= LIST => return items,
        Value::Array(_) => fields.wrong(name, format!("has more than {LIST} elements")),
        other => fields.wrong(name, format!("must be a list, not {}", kind(&other))),
    }
    Vec::new()
}

/// One `{tool_id, status}`.
pub(super) fn binding(fields: &mut BodyFields) -> Option<NewBinding> {
    let tool = fields.required("tool_id", tool_id);
    let enabled = fields.change("status", status).unwrap_or(true);
    tool.map(|tool| NewBinding { tool, enabled })
}

/// The list of bindings in a field.
pub(super) fn bindings(fields: &mut BodyFields, name: &str, value: Value) -> Vec<NewBinding> {
    let mut bindings = Vec::new();
    for (at, item) in list(fields, name, value).into_iter().enumerate() {
        let read = fields.inside(&format!("{name}[{at}]"), item, binding);
        bindings.extend(read.flatten());
    }
    bindings
}

/// `None` if it is absent; `null` removes all.
pub(super) fn exposes(fields: &mut BodyFields) -> Option<ExposedServers> {
    const NAME: &str = "exposes";
    match fields.take(NAME)? {
        Value::Null => Some(ExposedServers::default()),
        value => fields.inside(NAME, value, |inner| ExposedServers {
            resources: servers(inner, "resources"),
            prompts: servers(inner, "prompts"),
        }),
    }
}

/// `None` if it is absent; `null` removes it.
pub(super) fn filter(fields: &mut BodyFields) -> Option<Option<Filter>> {
    const NAME: &str = "filter";
    let value = match fields.take(NAME)? {
        Value::Null => return Some(None),
        value => value,
    };
    let filter = fields.inside(NAME, value, |inner| Filter {
        allow: patterns(inner, "allow"),
        deny: patterns(inner, "deny"),
    })?;
    if filter == Filter::default() {
        let text = "needs a pattern in allow or deny; null takes the filter away";
        fields.wrong(NAME, text);
    }
    Some(Some(filter))
}

fn patterns(fields: &mut BodyFields, name: &str) -> Vec<String> {
    let Some(value) = fields.take(name) else {
        return Vec::new();
    };
    let mut patterns = Vec::new();
    let items = list(fields, name, value);
    if items.len() > PATTERNS {
        fields.wrong(name, format!("has more than {PATTERNS} patterns"));
        return patterns;
    }
    for (at, item) in items.into_iter().enumerate() {
        let read = visible(&item, UPSTREAM_TOOL)
            .and_then(|pattern| filters::check(&pattern).map(|()| pattern));
        match read {
            Ok(pattern) if patterns.contains(&pattern) => {}
            Ok(pattern) => patterns.push(pattern),
            Err(message) => fields.wrong(&format!("{name}[{at}]"), message),
        }
    }
    patterns
}

fn servers(fields: &mut BodyFields, name: &str) -> Vec<String> {
    let Some(value) = fields.take(name) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for (at, item) in list(fields, name, value).into_iter().enumerate() {
        match server(&item) {
            Ok(server) if names.contains(&server) => {}
            Ok(server) => names.push(server),
            Err(message) => fields.wrong(&format!("{name}[{at}]"), message),
        }
    }
    names
}
