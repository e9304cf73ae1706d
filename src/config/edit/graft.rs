//! Something put into a client's file and taken out again, so that the file
//! is then the same to the last byte (SPEC B8).
//!
//! Putting in only ever adds bytes. Taking out first looks for a text from
//! before (a backup) that, with the same put in, is the text at hand: that
//! one comes back. Where the file has changed since, only what was added goes,
//! and the older text tells which of the objects around it were there.

use std::ops::Range;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::super::tree;
use super::render::{Style, quote};
use super::splice::Splicer;
use super::{EditError, checked, edit, find, nest, parse, put, range, table, trivia};

/// What is put in, and where.
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
pub struct Grafted {
    pub text: String,
    pub added: Vec<Added>,
}

/// A stretch of new text and the line it begins on.
#[derive(Clone, PartialEq, Eq)]
pub struct Added {
    pub line: usize,
    pub text: String,
}

/// What is left.
#[derive(Clone, PartialEq, Eq)]
pub enum Pruned {
    Text(String),
    /// Nothing but what was put in: there was no file before.
    Nothing,
}

/// Puts all of it in.
pub fn graft(text: &str, grafts: &[Graft]) -> Result<Grafted, EditError> {
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
        added.extend(news(&now, &next));
        now = next;
    }
    Ok(Grafted { text: now, added })
}

/// Takes all of it out. `before` are older texts of the file, the newest
/// first, `None` where there was no file, which is also what none at all says.
pub fn prune(text: &str, grafts: &[Graft], before: &[Option<String>]) -> Result<Pruned, EditError> {
    let before = match before.is_empty() {
        true => &[None],
        false => before,
    };
    let grown = |old: &&Option<String>| {
        let old = old.as_deref().unwrap_or_default();
        graft(old, grafts).is_ok_and(|grafted| grafted.text == text)
    };
    match before.iter().find(grown) {
        Some(Some(old)) => return Ok(Pruned::Text(old.clone())),
        Some(None) => return Ok(Pruned::Nothing),
        None => {}
    }
    let mut now = Pruned::Text(text.to_owned());
    for graft in grafts.iter().rev() {
        let Pruned::Text(text) = &now else { break };
        let without = |old: &&Option<String>| match old {
            Some(old) => matches!(is_there(old, graft), Ok(false)),
            None => true,
        };
        let old = before.iter().find(without).and_then(|old| old.as_deref());
        now = match graft {
            Graft::Member { path, .. } => take_member(text, path, old)?,
            Graft::Element { path, value } => take_element(text, path, value, old)?,
            Graft::Table { section, name, .. } => table::take(text, section, name, old)?,
        };
    }
    Ok(now)
}

/// What stands under a path of keys.
pub fn value_at(text: &str, path: &[String]) -> Result<Option<Value>, EditError> {
    let text = tree::without_bom(text);
    if trivia::skip(text, 0) == text.len() {
        return Ok(None);
    }
    let (root, path) = (parse(text)?, keys(path));
    let found = find(text, &root, &path)?;
    Ok(found
        .rest
        .is_empty()
        .then(|| Value::from(found.value.clone())))
}

fn is_there(text: &str, graft: &Graft) -> Result<bool, EditError> {
    match graft {
        Graft::Member { path, .. } => Ok(value_at(text, path)?.is_some()),
        Graft::Element { path, value } => match value_at(text, path)? {
            Some(Value::Array(list)) => Ok(list.contains(value)),
            _ => Ok(false),
        },
        Graft::Table { section, name, .. } => Ok(table::get(text, section, name)?.is_some()),
    }
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn put_member(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let path = &keys(path)[..];
    edit(text, |text| {
        if trivia::skip(text, 0) == text.len() {
            return Ok(Some(begin(text, nest(path, value.clone()))));
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
        let changed = match object.properties.is_empty() {
            true => fill(
                text,
                range(found.value),
                found.inline,
                |style, indent| match indent {
                    Some(indent) => format!("{}: {}", quote(next), style.lines(&member, indent)),
                    None => style.member(next, &style.line(&member)),
                },
            ),
            false => {
                let mut splicer = Splicer::new(text.to_owned());
                splicer.append_member(found.value.start(), next, &member, found.inline)?;
                splicer.text
            }
        };
        checked(&root, changed, |root| put(root, path, value.clone())).map(Some)
    })
}

fn put_element(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
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
        let changed = match empty {
            true => fill(
                text,
                range(found.value),
                found.inline,
                |style, indent| match indent {
                    Some(indent) => style.lines(value, indent),
                    None => style.line(value),
                },
            ),
            false => {
                let mut splicer = Splicer::new(text.to_owned());
                splicer.patch(range(found.value), &wanted, found.inline)?;
                splicer.text
            }
        };
        checked(&root, changed, |root| put(root, path, wanted)).map(Some)
    })
}

/// A file of blanks and comments gets its first value, at its end.
fn begin(text: &str, value: Value) -> String {
    let style = Style::of(text);
    let value = style.lines(&value, "");
    let gap = match text.is_empty() || text.ends_with('\n') {
        true => "",
        false => style.newline,
    };
    format!("{text}{gap}{value}{}", style.newline)
}

/// The first item of an object or a list that has none. `item` writes it, on
/// lines if it gets an indentation.
fn fill(
    text: &str,
    place: Range<usize>,
    inline: bool,
    item: impl FnOnce(&Style, Option<&str>) -> String,
) -> String {
    let style = Style::of(text);
    let inner = &text[place.start + 1..place.end - 1];
    let outer = trivia::indent(text, place.start);
    let indent = format!("{outer}{}", style.unit);
    let newline = style.newline;
    let last_line = inner
        .rfind('\n')
        .filter(|at| trivia::is_blank(&inner[*at..]))
        .map(|at| at - usize::from(inner[..at].ends_with('\r')));
    let (at, new) = match last_line {
        Some(at) => {
            let item = item(&style, Some(&indent));
            (place.start + 1 + at, format!("{newline}{indent}{item}"))
        }
        None if inline && !inner.contains('\n') => (place.end - 1, item(&style, None)),
        None => {
            let item = item(&style, Some(&indent));
            let lines = format!("{newline}{indent}{item}{newline}{outer}");
            (place.end - 1, lines)
        }
    };
    let mut changed = text.to_owned();
    changed.insert_str(at, &new);
    changed
}

fn take_member(text: &str, path: &[String], old: Option<&str>) -> Result<Pruned, EditError> {
    let there_before = |depth: usize| {
        let known = old.map(|old| value_at(old, &path[..depth]));
        matches!(known, Some(Ok(Some(_))))
    };
    let all = &keys(path)[..];
    let inner = tree::without_bom(text);
    let root = parse(inner)?;
    if !find(inner, &root, all)?.rest.is_empty() {
        return Err(EditError::Missing(all.join(".")));
    }
    // The objects around it that were made for it go with it.
    let mut depth = all.len() - 1;
    while depth > 0 && !there_before(depth) {
        let around = find(inner, &root, &all[..depth])?;
        if !holds_one_member(inner, around.value) {
            break;
        }
        depth -= 1;
    }
    let parent = find(inner, &root, &all[..depth])?;
    let alone = holds_one_member(inner, parent.value);
    if alone && depth == 0 {
        let outside = [&inner[..root.start()], &inner[root.end()..]];
        match old {
            None if outside.iter().all(|text| trivia::is_blank(text)) => {
                return Ok(Pruned::Nothing);
            }
            Some(old)
                if trivia::skip(tree::without_bom(old), 0) == tree::without_bom(old).len() =>
            {
                return Ok(Pruned::Text(old.to_owned()));
            }
            _ => {}
        }
    }
    edit(text, |text| {
        let mut splicer = Splicer::new(text.to_owned());
        match alone {
            true => {
                let within = parent.value.start() + 1..parent.value.end() - 1;
                let empty = old.and_then(|old| empty_inside(old, &all[..depth]));
                splicer
                    .text
                    .replace_range(within, empty.as_deref().unwrap_or_default());
            }
            false => splicer.remove_member(parent.value.start(), all[depth])?,
        }
        let take = |root: &mut Value| {
            if let Some(Value::Object(parent)) = super::at(root, &all[..depth]) {
                parent.shift_remove(all[depth]);
            }
        };
        checked(&root, splicer.text, take).map(Some)
    })
    .map(Pruned::Text)
}

fn take_element(
    text: &str,
    path: &[String],
    value: &Value,
    old: Option<&str>,
) -> Result<Pruned, EditError> {
    let Some(Value::Array(mut list)) = value_at(text, path)? else {
        return Ok(Pruned::Text(text.to_owned()));
    };
    let Some(at) = list.iter().position(|known| known == value) else {
        return Ok(Pruned::Text(text.to_owned()));
    };
    list.remove(at);
    let there_before = old.is_some_and(|old| matches!(value_at(old, path), Ok(Some(_))));
    if list.is_empty() && !there_before {
        return take_member(text, path, old);
    }
    let all = &keys(path)[..];
    edit(text, |text| {
        let root = parse(text)?;
        let found = find(text, &root, all)?;
        let mut splicer = Splicer::new(text.to_owned());
        match list.is_empty() {
            true => {
                let within = found.value.start() + 1..found.value.end() - 1;
                let empty = old
                    .and_then(|old| empty_inside(old, all))
                    .unwrap_or_default();
                splicer.text.replace_range(within, &empty);
            }
            false => splicer.patch(
                range(found.value),
                &Value::Array(list.clone()),
                found.inline,
            )?,
        }
        checked(&root, splicer.text, |root| put(root, all, list.into())).map(Some)
    })
    .map(Pruned::Text)
}

/// Whether an object has one member and nothing else, not even a comment.
fn holds_one_member(text: &str, node: &Node<'_>) -> bool {
    let Node::Object(object) = node else {
        return false;
    };
    let [only] = object.properties.as_slice() else {
        return false;
    };
    let behind = trivia::comma(text, only.end()).map_or(only.end(), |comma| comma + 1);
    trivia::is_blank(&text[node.start() + 1..only.start()])
        && trivia::is_blank(&text[behind..node.end() - 1])
}

/// What stood between the brackets of an object or a list that was empty.
fn empty_inside(old: &str, path: &[&str]) -> Option<String> {
    let old = tree::without_bom(old);
    let root = parse(old).ok()?;
    let found = find(old, &root, path).ok()?;
    let empty = match found.value {
        Node::Object(object) => object.properties.is_empty(),
        Node::Array(list) => list.elements.is_empty(),
        _ => false,
    };
    let inside = found.value.start() + 1..found.value.end() - 1;
    (found.rest.is_empty() && empty).then(|| old[inside].to_owned())
}

/// What a text has more than another: one stretch, and perhaps a comma some
/// way before it.
fn news(before: &str, after: &str) -> Vec<Added> {
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
    let skipped = match between.is_empty() {
        true => 0,
        false => 1 + between.len(),
    };
    let new_from = head + skipped.min(new.len());
    let line = 1 + after[..new_from].matches('\n').count();
    vec![Added {
        line,
        text: after[new_from..head + new.len()].to_owned(),
    }]
}
