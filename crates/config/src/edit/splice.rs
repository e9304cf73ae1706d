//! The smallest edit of a text that changes one of its values into another.
//! Only bytes that differ are changed: members and elements are replaced, added
//! and removed one by one, with their commas and their line.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value as Node};
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::super::problem::Problem;
use super::super::tree::{self, repeated};
use super::render::JsonStyle;
use super::trivia;

/// A text and the style it had before the first change.
pub(super) struct Splicer {
    pub(super) text: String,
    pub(super) style: JsonStyle,
}

/// The items of an object or a list.
struct Container {
    range: Range<usize>,
    items: Vec<Range<usize>>,
    /// On one line; an empty container has the layout of the one around it.
    inline: bool,
}

impl Splicer {
    pub(super) fn new(text: String) -> Splicer {
        let style = JsonStyle::of(&text);
        Splicer { text, style }
    }

    /// Makes the value at a position equal to `wanted`; `inline` is the layout
    /// of its container.
    pub(super) fn patch(
        &mut self,
        range: Range<usize>,
        wanted: &Value,
        inline: bool,
    ) -> Result<(), Problem> {
        let slice = self.text[range.clone()].to_owned();
        let node = tree::parse(&slice)?;
        if Value::from(node.clone()) == *wanted {
            return Ok(());
        }
        match (&node, wanted) {
            (Node::Object(object), Value::Object(wanted)) if repeated(object).is_empty() => {
                self.patch_object(object, range.start, wanted, inline)
            }
            (Node::Array(list), Value::Array(wanted)) => {
                self.patch_array(list, range.start, wanted, inline)
            }
            _ => {
                let value = self.render(wanted, range.start, inline);
                self.text.replace_range(range, &value);
                Ok(())
            }
        }
    }

    fn patch_object(
        &mut self,
        object: &Object<'_>,
        start: usize,
        wanted: &Map<String, Value>,
        inline: bool,
    ) -> Result<(), Problem> {
        let inside = self.container(start, inline)?.inline;
        // From the end, so that the positions before each change stay valid.
        for (index, member) in object.properties.iter().enumerate().rev() {
            if let Some(wanted) = wanted.get(member.name.as_str()) {
                let value = start + member.value.start()..start + member.value.end();
                self.patch(value, wanted, inside)?;
            } else {
                let now = self.container(start, inline)?;
                self.remove_item(&now, index);
            }
        }
        for (name, value) in wanted {
            if object.get(name).is_none() {
                self.append_member(start, name, value, inline)?;
            }
        }
        Ok(())
    }

    /// Keeps the equal elements at both ends; the middle is replaced element by
    /// element.
    fn patch_array(
        &mut self,
        list: &Array<'_>,
        start: usize,
        wanted: &[Value],
        inline: bool,
    ) -> Result<(), Problem> {
        let inside = self.container(start, inline)?.inline;
        let values: Vec<Value> = list.elements.iter().cloned().map(Value::from).collect();
        let same =
            |a: &mut dyn Iterator<Item = (&Value, &Value)>| a.take_while(|(a, b)| a == b).count();
        let head = same(&mut values.iter().zip(wanted));
        let most = values.len().min(wanted.len()) - head;
        let tail = same(&mut values.iter().rev().zip(wanted.iter().rev())).min(most);
        let (old, new) = (values.len() - head - tail, wanted.len() - head - tail);
        for index in (head + new..head + old).rev() {
            let now = self.container(start, inline)?;
            self.remove_item(&now, index);
        }
        let now = self.container(start, inline)?;
        for index in (head..head + old.min(new)).rev() {
            self.patch(now.items[index].clone(), &wanted[index], inside)?;
        }
        for (index, value) in wanted.iter().enumerate().take(head + new).skip(head + old) {
            let now = self.container(start, inline)?;
            self.insert_item(&now, index, None, value);
        }
        Ok(())
    }

    pub(super) fn append_member(
        &mut self,
        start: usize,
        name: &str,
        value: &Value,
        inline: bool,
    ) -> Result<(), Problem> {
        let container = self.container(start, inline)?;
        self.insert_item(&container, container.items.len(), Some(name), value);
        Ok(())
    }

    pub(super) fn remove_member(&mut self, parent: &Node<'_>, name: &str) -> Result<(), Problem> {
        let members = parent.as_object().map(|object| object.properties.iter());
        let index = members.and_then(|mut all| all.position(|member| member.name.as_str() == name));
        if let Some(index) = index {
            let container = self.container(parent.start(), false)?;
            self.remove_item(&container, index);
        }
        Ok(())
    }

    fn render(&self, value: &Value, at: usize, inline: bool) -> String {
        if inline {
            self.style.line(value)
        } else {
            self.style.lines(value, trivia::indent(&self.text, at))
        }
    }

    /// The indentation of the items of a container.
    fn item_indent(&self, container: &Container) -> String {
        let own = |item: &&Range<usize>| trivia::own_line(&self.text, item.start).is_some();
        match container.items.iter().find(own) {
            Some(item) => trivia::indent(&self.text, item.start).to_owned(),
            None => {
                let outer = trivia::indent(&self.text, container.range.start);
                format!("{outer}{}", self.style.unit)
            }
        }
    }

    fn insert_item(
        &mut self,
        container: &Container,
        index: usize,
        name: Option<&str>,
        value: &Value,
    ) {
        let indent = &self.item_indent(container);
        let lines = (!container.inline).then_some(indent.as_str());
        let item = &self.style.item(name, value, lines);
        let Some(before) = index.checked_sub(1).and_then(|i| container.items.get(i)) else {
            return match container.items.first() {
                Some(first) => {
                    let gap = self.gap(first.start, indent);
                    self.text.insert_str(first.start, &format!("{item},{gap}"));
                }
                None => self.insert_only(container, item, indent),
            };
        };
        let gap = self.gap(before.start, indent);
        let comma = trivia::comma(&self.text, before.end);
        let after = comma.map_or(before.end, |comma| comma + 1);
        let place = trivia::line_tail(&self.text, after, true).map_or(after, |(end, _)| end);
        // The existing comma stays and the new item brings the next one; a last
        // item without a comma gets one.
        match comma {
            Some(_) => self.text.insert_str(place, &format!("{gap}{item},")),
            None => {
                self.text.insert_str(place, &format!("{gap}{item}"));
                self.text.insert(before.end, ',');
            }
        }
    }

    /// The text that separates a new item from its neighbour.
    fn gap(&self, neighbour: usize, indent: &str) -> String {
        match trivia::own_line(&self.text, neighbour) {
            Some(_) => format!("{}{indent}", self.style.newline),
            None if self.style.spaced => " ".to_owned(),
            None => String::new(),
        }
    }

    fn insert_only(&mut self, container: &Container, item: &str, indent: &str) {
        let inner = container.range.start + 1..container.range.end - 1;
        let newline = self.style.newline;
        let outer = trivia::indent(&self.text, container.range.start).to_owned();
        let blank = trivia::is_blank(&self.text[inner.clone()]);
        let text = match (blank, container.inline) {
            (true, true) => item.to_owned(),
            (true, false) => format!("{newline}{indent}{item}{newline}{outer}"),
            (false, _) => {
                // Comments stay above; a line comment has its line end.
                let comments = self.text[inner.clone()].trim_end();
                if self.text[inner.clone()].contains('\n') {
                    format!("{comments}{newline}{indent}{item}{newline}{outer}")
                } else {
                    format!("{comments} {item} ")
                }
            }
        };
        self.text.replace_range(inner, &text);
    }

    fn remove_item(&mut self, container: &Container, index: usize) {
        let item = &container.items[index];
        let comma = trivia::comma(&self.text, item.end);
        let after = comma.map_or(item.end, |comma| comma + 1);
        let is_last = index + 1 == container.items.len();
        let comma_before = index
            .checked_sub(1)
            .and_then(|i| trivia::comma(&self.text, container.items[i].end));
        let whole_line = trivia::own_line(&self.text, item.start)
            .zip(trivia::line_tail(&self.text, after, false).map(|(_, next)| next));
        let removed = match whole_line {
            Some((start, end)) => start..end,
            None if is_last => item.start..after,
            None => item.start..after + trivia::blanks(&self.text[after..]).len(),
        };
        let inner = container.range.start + 1..container.range.end - 1;
        let rest_is_blank = container.items.len() == 1
            && trivia::is_blank(&self.text[inner.start..removed.start])
            && trivia::is_blank(&self.text[removed.end.min(inner.end)..inner.end]);
        if rest_is_blank {
            return self.text.replace_range(inner, "");
        }
        match comma_before {
            // The item before becomes the last and must have no comma.
            Some(before) if is_last && comma.is_none() => {
                let gap = &self.text[before + 1..removed.start];
                if trivia::is_blank(gap) && whole_line.is_none() {
                    self.text.replace_range(before..removed.end, "");
                } else {
                    self.text.replace_range(removed, "");
                    self.text.replace_range(before..=before, "");
                }
            }
            _ => self.text.replace_range(removed, ""),
        }
    }

    /// The object or list that starts at `start`.
    fn container(&self, start: usize, inline: bool) -> Result<Container, Problem> {
        let range = start..start + extent(&self.text[start..]);
        let text = &self.text[range.clone()];
        let inside = |item: &dyn Ranged| start + item.start()..start + item.end();
        let items: Vec<Range<usize>> = match &tree::parse(text)? {
            Node::Object(object) => object.properties.iter().map(|m| inside(m)).collect(),
            Node::Array(list) => list.elements.iter().map(|e| inside(e)).collect(),
            _ => return Err(Problem::new("", "is neither an object nor a list")),
        };
        let inline = if items.is_empty() {
            inline
        } else {
            !text.contains('\n')
        };
        Ok(Container {
            range,
            items,
            inline,
        })
    }
}

/// How long the object or list at the start of the text is.
fn extent(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'/' => {
                at = trivia::skip(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The closing quote of the string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}
