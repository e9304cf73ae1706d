//! Edits one server in the text of a file, and nothing else: comments, order,
//! indentation, line ends, a byte order mark, trailing commas and fields of
//! other tools stay as they are (SPEC B7).

use std::ops::Range;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::problem::Problem;
use super::spec::ServerSpec;
use super::tree::{self, BOM, repeated};
use super::view::definition_fields;
use splice::Splicer;
pub use table::get as table_at;

pub mod graft;
pub mod prune;
mod render;
mod shape;
mod splice;
mod table;
#[cfg(test)]
mod tests;
mod trivia;

/// The result of an edit.
pub type EditResult<T> = Result<T, EditError>;

/// The reason that a text was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The user has to fix the file first.
    #[error("{0}")]
    NotJson(Problem),
    /// A value on the path to the server is not an object.
    #[error("{0} is not an object")]
    NotAnObject(String),
    #[error("{0} is not a list")]
    NotAList(String),
    /// It is unknown which of the two is meant.
    #[error("{0} is given twice; keep one")]
    Ambiguous(String),
    /// The new name is taken.
    #[error("{0} already exists")]
    Taken(String),
    #[error("{0} is not in the file")]
    Missing(String),
    /// The changed text does not have the expected value, a bug in this crate;
    /// the change is refused.
    #[error("the file cannot be changed without changing other parts of it; edit it by hand")]
    Unsafe,
}

/// Puts a server under a path of keys, normally `mcpServers` and its name.
/// An existing definition is changed member by member; missing keys are added.
pub fn set_server(text: &str, path: &[&str], spec: &ServerSpec) -> EditResult<String> {
    edit(text, |text| {
        let fresh = Value::Object(definition_fields(spec));
        if is_fresh(text, path) {
            return Ok(write_fresh(text, path, fresh));
        }
        let root = parse(text)?;
        let found = find(text, &root, path)?;
        let mut splicer = Splicer::new(text.to_owned());
        let wanted = match found.rest {
            [] => {
                let node = found.value;
                let wanted = match Value::from(node.clone()) {
                    Value::Object(current) => Value::Object(shape::keep(current, spec)),
                    _ => fresh,
                };
                splicer.patch(range(node), &wanted, found.inline)?;
                wanted
            }
            [next, beyond @ ..] => {
                let value = nest(beyond, fresh.clone());
                let start = found.value.start();
                splicer.append_member(start, next, &value, found.inline)?;
                fresh
            }
        };
        checked(&root, splicer.text, |root| put(root, path, wanted))
    })
}

/// Whether the file has a value at the path of a server, valid or not.
pub fn has_server(text: &str, path: &[&str]) -> EditResult<bool> {
    let text = tree::without_bom(text);
    if is_fresh(text, path) {
        return Ok(false);
    }
    Ok(find(text, &parse(text)?, path)?.rest.is_empty())
}

/// Removes a server; `None` if it does not exist.
pub fn remove_server(text: &str, path: &[&str]) -> EditResult<Option<String>> {
    if tree::without_bom(text).trim().is_empty() {
        return Ok(None);
    }
    let edited = edit(text, |text| {
        let root = parse(text)?;
        let (name, parents) = split(path);
        if !find(text, &root, path)?.rest.is_empty() {
            return Err(missing());
        }
        let parent = find(text, &root, parents)?;
        let mut splicer = Splicer::new(text.to_owned());
        splicer.remove_member(parent.value, name)?;
        let take = |root: &mut Value| {
            if let Some(Value::Object(parent)) = at(root, parents) {
                parent.shift_remove(name);
            }
        };
        checked(&root, splicer.text, take)
    });
    match edited {
        Err(EditError::Missing(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// Renames a server, keeping its position.
pub fn rename_server(text: &str, path: &[&str], new_name: &str) -> EditResult<String> {
    edit(text, |text| {
        let root = parse(text)?;
        let (name, parents) = split(path);
        if !find(text, &root, path)?.rest.is_empty() {
            return Err(missing());
        }
        let parent = find(text, &root, parents)?.value;
        let Node::Object(section) = parent else {
            return Err(EditError::NotAnObject(parents.join(".")));
        };
        if name == new_name {
            return Ok(text.to_owned());
        }
        if section.get(new_name).is_some() {
            return Err(EditError::Taken(new_name.to_owned()));
        }
        let key = section.get(name).ok_or_else(missing)?.name.range();
        let mut renamed = text.to_owned();
        renamed.replace_range(key.start..key.end, &render::quote(new_name));
        let rename = |root: &mut Value| {
            if let Some(Value::Object(parent)) = at(root, parents) {
                let members = std::mem::take(parent).into_iter();
                let renamed = |key| {
                    if key == name {
                        new_name.to_owned()
                    } else {
                        key
                    }
                };
                *parent = members.map(|(key, value)| (renamed(key), value)).collect();
            }
        };
        checked(&root, renamed, rename)
    })
}

/// Runs a change on the text behind the byte order mark.
fn edit(text: &str, change: impl FnOnce(&str) -> EditResult<String>) -> EditResult<String> {
    let inner = tree::without_bom(text);
    let changed = change(inner)?;
    if inner.len() == text.len() {
        return Ok(changed);
    }
    Ok(format!("{BOM}{changed}"))
}

fn missing() -> EditError {
    EditError::Missing("the server".into())
}

fn parse(text: &str) -> EditResult<Node<'_>> {
    tree::parse(text).map_err(EditError::NotJson)
}

impl From<Problem> for EditError {
    /// The text was parsed before, so a later parse error is a mistake of the
    /// edit itself.
    fn from(_: Problem) -> EditError {
        EditError::Unsafe
    }
}

/// The last value that a path reaches.
struct PathLookup<'n, 't, 'p> {
    value: &'n Node<'t>,
    /// The keys that are not there.
    rest: &'p [&'p str],
    /// The container of the value is written on one line.
    inline: bool,
}

fn find<'n, 't, 'p>(
    text: &str,
    root: &'n Node<'t>,
    path: &'p [&'p str],
) -> EditResult<PathLookup<'n, 't, 'p>> {
    let mut found = PathLookup {
        value: root,
        rest: path,
        inline: false,
    };
    while let [key, rest @ ..] = found.rest {
        let depth = path.len() - found.rest.len();
        let Node::Object(object) = found.value else {
            let place = path[..depth].join(".");
            let place = if place.is_empty() { "the file" } else { &place };
            return Err(EditError::NotAnObject(place.to_owned()));
        };
        if repeated(object).iter().any(|(name, _)| name == key) {
            return Err(EditError::Ambiguous(path[..=depth].join(".")));
        }
        let Some(member) = object.get(key) else { break };
        found = PathLookup {
            value: &member.value,
            rest,
            inline: !text[range(found.value)].contains('\n'),
        };
    }
    Ok(found)
}

fn range(node: &Node<'_>) -> Range<usize> {
    node.start()..node.end()
}

fn split<'p>(path: &'p [&'p str]) -> (&'p str, &'p [&'p str]) {
    match path.split_last() {
        Some((last, parents)) => (last, parents),
        None => ("", &[]),
    }
}

fn nest(keys: &[&str], value: Value) -> Value {
    keys.iter().rev().fold(value, |value, key| {
        Value::Object(Map::from_iter([((*key).to_owned(), value)]))
    })
}

fn at<'v>(root: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    path.iter().try_fold(root, |value, key| value.get_mut(key))
}

fn put(root: &mut Value, path: &[&str], value: Value) {
    let (last, parents) = split(path);
    let mut place = root;
    for key in parents {
        let Value::Object(object) = place else { return };
        place = object
            .entry(*key)
            .or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(object) = place {
        object.insert(last.to_owned(), value);
    }
}

/// The changed text, if its value is the old value after the same change.
fn checked(before: &Node<'_>, text: String, change: impl FnOnce(&mut Value)) -> EditResult<String> {
    let mut expected = Value::from(before.clone());
    change(&mut expected);
    if tree::parse(&text).map(Value::from) != Ok(expected) {
        return Err(EditError::Unsafe);
    }
    Ok(text)
}

/// Whether the file has no content to preserve: no text, comments only, or
/// empty braces on one line.
fn is_fresh(text: &str, path: &[&str]) -> bool {
    if trivia::skip(text, 0) == text.len() {
        return true;
    }
    if text.len() > 1000 {
        return false;
    }
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let empty_section = |key: &&str| compact == format!("{{{}:{{}}}}", render::quote(key));
    compact == "{}" || path.first().is_some_and(empty_section)
}

fn write_fresh(text: &str, path: &[&str], server: Value) -> String {
    let style = render::JsonStyle::of(text);
    let value = style.lines(&nest(path, server), "");
    let newline = style.newline;
    if text.contains('/') {
        format!("{}{newline}{value}{newline}", text.trim_end())
    } else {
        format!("{value}{newline}")
    }
}
