//! Writes a value as text in the style of the file around it.

use serde_json::Value;

use super::trivia::blanks;

/// Longer lists of plain values get a line for each.
const LINE: usize = 76;

/// The layout of a file.
#[derive(Clone, Debug)]
pub(super) struct JsonStyle {
    pub(super) newline: &'static str,
    /// One step of indentation.
    pub(super) unit: String,
    /// Whether blanks follow `:` and `,`.
    pub(super) spaced: bool,
}

impl JsonStyle {
    pub(super) fn of(text: &str) -> JsonStyle {
        let newline = match text.find('\n') {
            Some(i) if text[..i].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let mut starts = text.lines().map(|line| (blanks(line), line.trim_start()));
        let unit = starts
            .find(|(blanks, rest)| !blanks.is_empty() && rest.starts_with('"'))
            .map_or("  ", |(blanks, _)| blanks);
        JsonStyle {
            newline,
            unit: unit.to_owned(),
            spaced: text.contains('\n') || text.contains("\": ") || !text.contains("\":"),
        }
    }

    /// The value on lines of its own, the first of them begun already by a
    /// line indented by `indent`.
    pub(super) fn lines(&self, value: &Value, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let items: Vec<String> = match value {
            Value::Object(map) if !map.is_empty() => map
                .iter()
                .map(|(name, value)| self.item(Some(name), value, Some(&inner)))
                .collect(),
            Value::Array(list) if !fits_a_line(list) => {
                list.iter().map(|value| self.lines(value, &inner)).collect()
            }
            other => return self.line(other),
        };
        let (open, close) = brackets(value);
        let newline = self.newline;
        let items = items.join(&format!(",{newline}{inner}"));
        format!("{open}{newline}{inner}{items}{newline}{indent}{close}")
    }

    /// The value on one line.
    pub(super) fn line(&self, value: &Value) -> String {
        let separator = if self.spaced { ", " } else { "," };
        let items: Vec<String> = match value {
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| self.item(Some(name), value, None))
                .collect(),
            Value::Array(list) => list.iter().map(|value| self.line(value)).collect(),
            plain => return plain.to_string(),
        };
        let (open, close) = brackets(value);
        format!("{open}{}{close}", items.join(separator))
    }

    /// An element of a list, or a member of an object if it has a name: on lines
    /// if it has an indentation, else on one line.
    pub(super) fn item(&self, name: Option<&str>, value: &Value, indent: Option<&str>) -> String {
        let text = match indent {
            Some(indent) => self.lines(value, indent),
            None => self.line(value),
        };
        let blank = if self.spaced || indent.is_some() {
            " "
        } else {
            ""
        };
        match name {
            Some(name) => format!("{}:{blank}{text}", quote(name)),
            None => text,
        }
    }
}

pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn brackets(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Object(_) => ("{", "}"),
        _ => ("[", "]"),
    }
}

fn fits_a_line(list: &[Value]) -> bool {
    let plain = list.iter().all(|v| !v.is_object() && !v.is_array());
    let length: usize = list.iter().map(|v| v.to_string().len() + 2).sum();
    plain && length <= LINE
}
