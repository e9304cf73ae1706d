//! The smallest edit of a text that changes one of its values into another.
//! Only bytes that differ are changed: members and elements are replaced, added
//! and removed one by one, with their commas and their line.

use std::ops::Range;

use jsonc_parser::ast::Value as Node;
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

/// The members of an object: each name, and where its value stands.
type MemberRanges = Vec<(String, Range<usize>)>;

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
                self.patch_object(range.start, wanted, inline)
            }
            (Node::Array(_), Value::Array(wanted)) => self.patch_array(range.start, wanted, inline),
            _ => {
                let value = self.render(wanted, range.start, inline);
                self.text.replace_range(range, &value);
                Ok(())
            }
        }
    }

    fn patch_object(
        &mut self,
        start: usize,
        wanted: &Map<String, Value>,
        inline: bool,
    ) -> Result<(), Problem> {
        // From the end, so that the positions before each change stay valid.
        let (container, members) = self.members(start, inline)?;
        for (index, (name, value)) in members.iter().enumerate().rev() {
            match wanted.get(name) {
                Some(wanted) => self.patch(value.clone(), wanted, container.inline)?,
                None => {
                    let (now, _) = self.members(start, inline)?;
                    self.remove_item(&now, index);
                }
            }
        }
        for (name, value) in wanted {
            if members.iter().any(|(known, _)| known == name) {
                continue;
            }
            self.append_member(start, name, value, inline)?;
        }
        Ok(())
    }

    /// Keeps the equal elements at both ends; the middle is replaced element by
    /// element.
    fn patch_array(&mut self, start: usize, wanted: &[Value], inline: bool) -> Result<(), Problem> {
        let (container, values) = self.elements(start, inline)?;
        let same =
            |a: &mut dyn Iterator<Item = (&Value, &Value)>| a.take_while(|(a, b)| a == b).count();
        let head = same(&mut values.iter().zip(wanted));
        let most = values.len().min(wanted.len()) - head;
        let tail = same(&mut values.iter().rev().zip(wanted.iter().rev())).min(most);
        let (old, new) = (values.len() - head - tail, wanted.len() - head - tail);
        for index in (head + new..head + old).rev() {
            let (now, _) = self.elements(start, inline)?;
            self.remove_item(&now, index);
        }
        let (now, _) = self.elements(start, inline)?;
        for index in (head..head + old.min(new)).rev() {
            self.patch(now.items[index].clone(), &wanted[index], container.inline)?;
        }
        for (index, value) in wanted.iter().enumerate().take(head + new).skip(head + old) {
            let (now, _) = self.elements(start, inline)?;
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
        let (container, _) = self.members(start, inline)?;
        self.insert_item(&container, container.items.len(), Some(name), value);
        Ok(())
    }

    pub(super) fn remove_member(&mut self, start: usize, name: &str) -> Result<(), Problem> {
        let (container, members) = self.members(start, false)?;
        if let Some(index) = members.iter().position(|(known, _)| known == name) {
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
            None => {
                item.start
                    ..after + trivia::blanks(&self.text[after..]).len() * usize::from(!is_last)
            }
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

    fn members(&self, start: usize, inline: bool) -> Result<(Container, MemberRanges), Problem> {
        let (end, node) = value_at(&self.text, start)?;
        let Node::Object(object) = node else {
            return Err(Problem::new("", "is not an object"));
        };
        let shift = |range: jsonc_parser::common::Range| start + range.start..start + range.end;
        let members = object.properties.iter();
        let container = self.container(
            start..end,
            members.clone().map(|m| shift(m.range)).collect(),
            inline,
        );
        let values = members
            .map(|m| (m.name.as_str().to_owned(), shift(m.value.range())))
            .collect();
        Ok((container, values))
    }

    fn elements(&self, start: usize, inline: bool) -> Result<(Container, Vec<Value>), Problem> {
        let (end, node) = value_at(&self.text, start)?;
        let Node::Array(array) = node else {
            return Err(Problem::new("", "is not a list"));
        };
        let items = array
            .elements
            .iter()
            .map(|e| start + e.start()..start + e.end())
            .collect();
        let container = self.container(start..end, items, inline);
        Ok((
            container,
            array.elements.into_iter().map(Value::from).collect(),
        ))
    }

    fn container(&self, range: Range<usize>, items: Vec<Range<usize>>, inline: bool) -> Container {
        let inline = if items.is_empty() {
            inline
        } else {
            !self.text[range.clone()].contains('\n')
        };
        Container {
            range,
            items,
            inline,
        }
    }
}

/// The object or list that starts at `start`, with places counted from
/// there, and where it ends.
fn value_at(text: &str, start: usize) -> Result<(usize, Node<'_>), Problem> {
    let end = start + extent(&text[start..]);
    Ok((end, tree::parse(&text[start..end])?))
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
