//! The values of records, each with its rule.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;

use super::bodies::{BodyFields, ReadValue, kind};
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

/// A text without control characters but those in `allowed`.
fn plain(value: &Value, limit: usize, allowed: &[char]) -> Result<String, String> {
    let text = text(value)?;
    if text.chars().count() > limit {
        return Err(format!("is longer than {limit} characters"));
    }
    if text
        .chars()
        .any(|c| c.is_control() && !allowed.contains(&c))
    {
        return Err("must not contain control characters".into());
    }
    Ok(text.to_owned())
}

fn visible(value: &Value, limit: usize) -> Result<String, String> {
    if text(value)?.trim().is_empty() {
        return Err("must not be empty".into());
    }
    plain(value, limit, &[])
}

/// The tool's name for models: the characters that MCP allows.
pub(super) fn tool_name(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !(1..=TOOL_NAME).contains(&text.len()) || !text.chars().all(fits) {
        return Err(format!(
            "must be 1 to {TOOL_NAME} letters (A-Z, a-z), digits, '_', '-' or '.'"
        ));
    }
    Ok(text.to_owned())
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
    plain(value, DESCRIPTION, &['\n', '\r', '\t'])
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
    let moment = Some(moment(value)?).filter(|moment| *moment > Timestamp::now());
    moment.ok_or_else(|| PAST.into())
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

/// The list in a field; `None` if it is absent.
fn list(fields: &mut BodyFields, name: &str) -> Option<Vec<Value>> {
    match fields.take(name)? {
        Value::Array(items) if items.len() <= LIST => return Some(items),
        Value::Array(_) => fields.wrong(name, format!("has more than {LIST} elements")),
        other => fields.wrong(name, format!("must be a list, not {}", kind(&other))),
    }
    Some(Vec::new())
}

/// One `{tool_id, status}`.
pub(super) fn binding(fields: &mut BodyFields) -> Option<NewBinding> {
    let tool = fields.required("tool_id", tool_id);
    let enabled = fields.change("status", status).unwrap_or(true);
    tool.map(|tool| NewBinding { tool, enabled })
}

/// A list of bindings; `None` if it is absent.
pub(super) fn bindings(fields: &mut BodyFields) -> Option<Vec<NewBinding>> {
    let mut bindings = Vec::new();
    for (at, item) in list(fields, "bindings")?.into_iter().enumerate() {
        let read = fields.inside(&format!("bindings[{at}]"), item, binding);
        bindings.extend(read.flatten());
    }
    Some(bindings)
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
    let items = list(fields, name).unwrap_or_default();
    if items.len() > PATTERNS {
        fields.wrong(name, format!("has more than {PATTERNS} patterns"));
        return Vec::new();
    }
    each(fields, name, &items, |item| {
        let pattern = visible(item, UPSTREAM_TOOL)?;
        filters::check(&pattern).map(|()| pattern)
    })
}

fn servers(fields: &mut BodyFields, name: &str) -> Vec<String> {
    let items = list(fields, name).unwrap_or_default();
    each(fields, name, &items, server)
}

/// Reads each element of a list, without repeats.
fn each(
    fields: &mut BodyFields,
    name: &str,
    items: &[Value],
    read: ReadValue<String>,
) -> Vec<String> {
    let mut all = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match read(item) {
            Ok(one) if all.contains(&one) => {}
            Ok(one) => all.push(one),
            Err(message) => fields.wrong(&format!("{name}[{at}]"), message),
        }
    }
    all
}
