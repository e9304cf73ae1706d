//! Adds and removes a table of a TOML file. It goes to the end, with a header
//! of its own, so that the existing text does not change.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Key};

use super::super::import::toml;
use super::super::tree::{self, BOM};
use super::render::JsonStyle;
use super::{EditError, EditResult, trivia};

/// A table of a section, as JSON.
pub fn get(text: &str, section: &str, name: &str) -> EditResult<Option<Value>> {
    let mut root = parse(tree::without_bom(text))?;
    match root.remove(section) {
        None => Ok(None),
        Some(Value::Object(mut servers)) => Ok(servers.remove(name)),
        Some(_) => Err(EditError::NotAnObject(section.to_owned())),
    }
}

pub(super) fn put(
    text: &str,
    section: &str,
    name: &str,
    fields: &Map<String, Value>,
) -> EditResult<String> {
    if get(text, section, name)?.is_some() {
        return Err(EditError::Taken(format!("{section}.{name}")));
    }
    let inner = tree::without_bom(text);
    let style = JsonStyle::of(inner);
    let newline = style.newline;
    let gap = match (trivia::is_blank(inner), inner.ends_with('\n')) {
        (true, true) => String::new(),
        (true, false) if inner.is_empty() => String::new(),
        (_, true) => newline.to_owned(),
        (_, false) => format!("{newline}{newline}"),
    };
    let block = block(section, name, fields, newline);
    let changed = format!("{text}{gap}{block}");
    let mut wanted = parse(inner)?;
    let servers = wanted.entry(section).or_insert_with(|| Map::new().into());
    if let Value::Object(servers) = servers {
        servers.insert(name.to_owned(), fields.clone().into());
    }
    same(changed, &wanted)
}

pub(super) fn take(
    text: &str,
    section: &str,
    name: &str,
    old: Option<&str>,
) -> EditResult<Option<String>> {
    let Some(Value::Object(fields)) = get(text, section, name)? else {
        return Err(EditError::Missing(format!("{section}.{name}")));
    };
    let inner = tree::without_bom(text);
    let mark = if inner.len() < text.len() { BOM } else { "" };
    let mut wanted = parse(inner)?;
    let mut emptied = false;
    if let Some(Value::Object(servers)) = wanted.get_mut(section) {
        servers.remove(name);
        emptied = servers.is_empty();
    }
    let written = match old {
        Some(old) => parse(tree::without_bom(old))?.contains_key(section),
        None => false,
    };
    if emptied && !written {
        wanted.remove(section);
    }
    let newline = JsonStyle::of(inner).newline;
    let block = block(section, name, &fields, newline);
    let left = match inner.match_indices(&block).collect::<Vec<_>>()[..] {
        [(at, _)] if at == 0 || inner[..at].ends_with('\n') => {
            let head = &inner[..at];
            let head = if head.ends_with(&format!("{newline}{newline}")) {
                &head[..head.len() - newline.len()]
            } else {
                head
            };
            format!("{head}{}", &inner[at + block.len()..])
        }
        _ => rebuilt(inner, section, name, emptied && !written)?,
    };
    if old.is_none() && trivia::is_blank(&left) {
        return Ok(None);
    }
    same(format!("{mark}{left}"), &wanted).map(Some)
}

/// Removes a table that does not have the form in which Portway writes it.
fn rebuilt(text: &str, section: &str, name: &str, whole: bool) -> EditResult<String> {
    let parsed: Result<DocumentMut, _> = text.parse();
    let mut document = parsed.map_err(|_| EditError::Unsafe)?;
    let servers = document
        .get_mut(section)
        .and_then(|item| item.as_table_like_mut());
    if let Some(servers) = servers {
        servers.remove(name);
    }
    if whole {
        document.remove(section);
    }
    Ok(document.to_string())
}

fn block(section: &str, name: &str, fields: &Map<String, Value>, newline: &str) -> String {
    let header = format!("[{}.{}]", Key::new(section), Key::new(name));
    let mut block = format!("{header}{newline}");
    for (field, value) in fields {
        block += &format!("{} = {}{newline}", Key::new(field), written(value));
    }
    block
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let member =
                |(key, value): (&String, &Value)| format!("{} = {}", Key::new(key), written(value));
            let members: Vec<String> = map.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
        plain => plain.to_string(),
    }
}

fn parse(text: &str) -> EditResult<Map<String, Value>> {
    toml::parse(text).map_err(EditError::NotJson)
}

/// The text, if its value is exactly `wanted`.
fn same(text: String, wanted: &Map<String, Value>) -> EditResult<String> {
    match parse(tree::without_bom(&text)) {
        Ok(says) if says == *wanted => Ok(text),
        _ => Err(EditError::Unsafe),
    }
}
