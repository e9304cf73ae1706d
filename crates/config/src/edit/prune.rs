//! Removes the additions of `graft` from a client's file.
//!
//! If a backup with the same additions equals the current text, the backup is
//! restored. Otherwise, because the file has changed since, only the added
//! members are removed, and the backup shows which of the objects around them
//! existed before.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use serde_json::Value;

use super::super::tree;
use super::graft::{Graft, graft, keys, value_at};
use super::splice::Splicer;
use super::{EditError, EditResult, at, checked, edit, find, parse, put, range, table, trivia};

/// Removes all additions. `before` are older texts of the file, the newest
/// first, `None` where there was no file; an empty list means the same. Returns
/// `None` if the file had only the additions: there was no file before.
pub fn prune(
    text: &str,
    grafts: &[Graft],
    before: &[Option<String>],
) -> EditResult<Option<String>> {
    let before = if before.is_empty() { &[None] } else { before };
    let grown = |old: &&Option<String>| {
        let old = old.as_deref().unwrap_or_default();
        graft(old, grafts).is_ok_and(|grafted| grafted.text == text)
    };
    if let Some(old) = before.iter().find(grown) {
        return Ok(old.clone());
    }
    let mut now = Some(text.to_owned());
    for graft in grafts.iter().rev() {
        let Some(text) = &now else { break };
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

fn is_there(text: &str, graft: &Graft) -> EditResult<bool> {
    match graft {
        Graft::Member { path, .. } => Ok(value_at(text, path)?.is_some()),
        Graft::Element { path, value } => match value_at(text, path)? {
            Some(Value::Array(list)) => Ok(list.contains(value)),
            _ => Ok(false),
        },
        Graft::Table { section, name, .. } => Ok(table::get(text, section, name)?.is_some()),
    }
}

fn take_member(text: &str, path: &[String], old: Option<&str>) -> EditResult<Option<String>> {
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
    // The objects around it that were made for it are removed with it.
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
    let empty = old.and_then(|old| empty_inside(old, &all[..depth]));
    let empty = empty.filter(|empty| is_around_one_member(inner, parent.value, empty));
    if alone && depth == 0 {
        let outside = [&inner[..root.start()], &inner[root.end()..]];
        match old {
            None if outside.iter().all(|text| trivia::is_blank(text)) => return Ok(None),
            Some(old)
                if trivia::skip(tree::without_bom(old), 0) == tree::without_bom(old).len() =>
            {
                return Ok(Some(old.to_owned()));
            }
            _ => {}
        }
    }
    edit(text, |text| {
        let mut splicer = Splicer::new(text.to_owned());
        let within = parent.value.start() + 1..parent.value.end() - 1;
        match &empty {
            Some(empty) => splicer.text.replace_range(within, empty),
            None if alone => splicer.text.replace_range(within, ""),
            None => splicer.remove_member(parent.value, all[depth])?,
        }
        let take = |root: &mut Value| {
            if let Some(Value::Object(parent)) = at(root, &all[..depth]) {
                parent.shift_remove(all[depth]);
            }
        };
        checked(&root, splicer.text, take)
    })
    .map(Some)
}

fn take_element(
    text: &str,
    path: &[String],
    value: &Value,
    old: Option<&str>,
) -> EditResult<Option<String>> {
    let Some(Value::Array(mut list)) = value_at(text, path)? else {
        return Ok(Some(text.to_owned()));
    };
    let Some(at) = list.iter().position(|known| known == value) else {
        return Ok(Some(text.to_owned()));
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
        if list.is_empty() {
            let within = found.value.start() + 1..found.value.end() - 1;
            let empty = old.and_then(|old| empty_inside(old, all));
            let empty = empty.unwrap_or_default();
            splicer.text.replace_range(within, &empty);
        } else {
            let wanted = Value::Array(list.clone());
            splicer.patch(range(found.value), &wanted, found.inline)?;
        }
        checked(&root, splicer.text, |root| put(root, all, list.into()))
    })
    .map(Some)
}

/// Whether an object has one member and nothing else, not even a comment.
fn holds_one_member(text: &str, node: &Node<'_>) -> bool {
    is_around_one_member(text, node, "")
}

/// Whether an object has one member, and beside it just these comments.
fn is_around_one_member(text: &str, node: &Node<'_>, comments: &str) -> bool {
    let Node::Object(object) = node else {
        return false;
    };
    let [only] = object.properties.as_slice() else {
        return false;
    };
    let behind = trivia::comma(text, only.end()).map_or(only.end(), |comma| comma + 1);
    let around = [
        &text[node.start() + 1..only.start()],
        &text[behind..node.end() - 1],
    ];
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    dense(&around.concat()) == dense(comments)
}

/// The text between the brackets of an object or a list that was empty.
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
