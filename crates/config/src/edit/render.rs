//! Writes a value as text in the style of the file around it.

use serde_json::Value;

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
        let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let unit = text
            .lines()
            .find(|line| blanks(line) > 0 && line.trim_start().starts_with('"'))
            .map_or("  ", |line| &line[..blanks(line)]);
        JsonStyle {
            newline,
            unit: unit.to_owned(),
            spaced: text.contains('\n') || text.contains("\": ") || !text.contains("\":"),
        }
    }

    /// The value on lines of its own, the first of them begun already by a
    /// line indented by `indent`.
    pub(super) fn lines(&self, value: &Value, indent: &str) -> String {
        let mut text = String::new();
        self.write_lines(value, indent, &mut text);
        text
    }

    fn write_lines(&self, value: &Value, indent: &str, out: &mut String) {
        let inner = format!("{indent}{}", self.unit);
        let items: Vec<String> = match value {
            Value::Object(map) if !map.is_empty() => map
                .iter()
                .map(|(name, value)| format!("{}: {}", quote(name), self.lines(value, &inner)))
                .collect(),
            Value::Array(list) if !fits_a_line(list) => {
                list.iter().map(|value| self.lines(value, &inner)).collect()
            }
            other => return out.push_str(&self.line(other)),
        };
        let (open, close) = brackets(value);
        let separator = format!(",{}{inner}", self.newline);
        out.push_str(open);
        out.push_str(self.newline);
        out.push_str(&inner);
        out.push_str(&items.join(&separator));
        out.push_str(self.newline);
        out.push_str(indent);
        out.push_str(close);
    }

    /// The value on one line.
    pub(super) fn line(&self, value: &Value) -> String {
        let separator = if self.spaced { ", " } else { "," };
        let items: Vec<String> = match value {
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| self.member(name, &self.line(value)))
                .collect(),
            Value::Array(list) => list.iter().map(|value| self.line(value)).collect(),
            plain => return plain.to_string(),
        };
        let (open, close) = brackets(value);
        format!("{open}{}{close}", items.join(separator))
    }

    pub(super) fn member(&self, name: &str, value: &str) -> String {
        let blank = if self.spaced { " " } else { "" };
        format!("{}:{blank}{value}", quote(name))
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
