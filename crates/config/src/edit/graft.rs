//! Adds an entry to a client's file so that `prune` can remove it and restore
//! the file byte for byte (SPEC B8): bytes are only added.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::super::tree;
use super::render::JsonStyle;
use super::splice::Splicer;
use super::{
    EditError, EditResult, PathLookup, checked, edit, find, nest, parse, put, range, table, trivia,
};

/// An addition to a file.
#[derive(Clone, PartialEq, Eq)]
pub enum Graft {
    /// A member of an object, under a path of keys.
    Member { path: Vec<String>, value: Value },
    /// One more element of the list under a path of keys.
    Element { path: Vec<String>, value: Value },
    /// A table of a TOML file.
    Table {
        section: String,
        name: String,
        fields: Map<String, Value>,
    },
}

/// A changed text, and what is new in it.
#[derive(Clone, PartialEq, Eq)]
pub struct GraftResult {
    pub text: String,
    pub added: Vec<AddedText>,
}

/// A stretch of new text and the line it begins on.
#[derive(Clone, PartialEq, Eq)]
pub struct AddedText {
    pub line: usize,
    pub text: String,
}

/// Applies all additions.
pub fn graft(text: &str, grafts: &[Graft]) -> EditResult<GraftResult> {
    let mut now = text.to_owned();
    let mut added = Vec::new();
    for graft in grafts {
        let next = match graft {
            Graft::Member { path, value } => put_member(&now, path, value)?,
            Graft::Element { path, value } => put_element(&now, path, value)?,
            Graft::Table {
                section,
                name,
                fields,
            } => table::put(&now, section, name, fields)?,
        };
        added.push(added_text(&now, &next));
        now = next;
    }
    Ok(GraftResult { text: now, added })
}

/// The value under a path of keys.
pub fn value_at(text: &str, path: &[String]) -> EditResult<Option<Value>> {
    let text = tree::without_bom(text);
    if trivia::skip(text, 0) == text.len() {
        return Ok(None);
    }
    let (root, path) = (parse(text)?, keys(path));
    let found = find(text, &root, &path)?;
    let value = || Value::from(found.value.clone());
    Ok(found.rest.is_empty().then(value))
}

pub(super) fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn put_member(text: &str, path: &[String], value: &Value) -> EditResult<String> {
    let path = &keys(path)[..];
    edit(text, |text| {
        if trivia::skip(text, 0) == text.len() {
            return Ok(begin(text, nest(path, value.clone())));
        }
        let root = parse(text)?;
        let found = find(text, &root, path)?;
        let [next, beyond @ ..] = found.rest else {
            return Err(EditError::Taken(path.join(".")));
        };
        let Node::Object(object) = found.value else {
            return Err(EditError::NotAnObject(path.join(".")));
        };
        let member = nest(beyond, value.clone());
        let changed = if object.properties.is_empty() {
            fill(text, &found, Some(next), &member)
        } else {
            let mut splicer = Splicer::new(text.to_owned());
            splicer.append_member(found.value.start(), next, &member, found.inline)?;
            splicer.text
        };
        checked(&root, changed, |root| put(root, path, value.clone()))
    })
}

fn put_element(text: &str, path: &[String], value: &Value) -> EditResult<String> {
    let Some(list) = value_at(text, path)? else {
        return put_member(text, path, &Value::Array(vec![value.clone()]));
    };
    let Value::Array(mut list) = list else {
        return Err(EditError::NotAList(path.join(".")));
    };
    let empty = list.is_empty();
    list.push(value.clone());
    let wanted = Value::Array(list);
    let path = &keys(path)[..];
    edit(text, |text| {
        let root = parse(text)?;
        let found = find(text, &root, path)?;
        let changed = if empty {
            fill(text, &found, None, value)
        } else {
            let mut splicer = Splicer::new(text.to_owned());
            splicer.patch(range(found.value), &wanted, found.inline)?;
            splicer.text
        };
        checked(&root, changed, |root| put(root, path, wanted))
    })
}

/// A file of blanks and comments gets its first value, at its end.
fn begin(text: &str, value: Value) -> String {
    let style = JsonStyle::of(text);
    let value = style.lines(&value, "");
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        style.newline
    };
    format!("{text}{gap}{value}{}", style.newline)
}

/// The first item of an object or a list that has none.
fn fill(text: &str, found: &PathLookup<'_, '_, '_>, name: Option<&str>, value: &Value) -> String {
    let style = JsonStyle::of(text);
    let inside = found.value.start() + 1..found.value.end() - 1;
    let inner = &text[inside.clone()];
    let outer = trivia::indent(text, found.value.start());
    let indent = format!("{outer}{}", style.unit);
    let newline = style.newline;
    let last_line = inner
        .rfind('\n')
        .filter(|at| trivia::is_blank(&inner[*at..]))
        .map(|at| at - usize::from(inner[..at].ends_with('\r')));
    let inline = found.inline && !inner.contains('\n');
    let item = style.item(name, value, (!inline).then_some(&indent));
    let (at, new) = match last_line {
        Some(at) => (inside.start + at, format!("{newline}{indent}{item}")),
        None if inline => (inside.end, item),
        None => {
            let lines = format!("{newline}{indent}{item}{newline}{outer}");
            (inside.end, lines)
        }
    };
    let mut changed = text.to_owned();
    changed.insert_str(at, &new);
    changed
}

/// The text that was added: one range, and perhaps a comma before it.
fn added_text(before: &str, after: &str) -> AddedText {
    let same = |a: &mut dyn Iterator<Item = (char, char)>| {
        a.take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum::<usize>()
    };
    let head = same(&mut before.chars().zip(after.chars()));
    let rest = (&before[head..], &after[head..]);
    let tail = same(&mut rest.0.chars().rev().zip(rest.1.chars().rev()));
    let between = &rest.0[..rest.0.len() - tail];
    let new = &rest.1[..rest.1.len() - tail];
    let comma = usize::from(!between.is_empty());
    let new_from = head + (comma + between.len()).min(new.len());
    let line = 1 + after[..new_from].matches('\n').count();
    AddedText {
        line,
        text: after[new_from..head + new.len()].to_owned(),
    }
}
