//! Parses JSON text into a tree with positions. Accepts comments and trailing
//! commas; every other leniency of the parser is off, so that other tools
//! accept each file that Portway accepts.

use std::cell::OnceCell;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::problem::Problem;

pub(super) const BOM: &str = "\u{feff}";

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The text behind its byte order mark, if it has one.
pub(super) fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// The value the text holds; `text` has no byte order mark.
pub(super) fn parse(text: &str) -> Result<Value<'_>, Problem> {
    match parse_to_ast(text, &CollectOptions::default(), &options()) {
        Ok(result) => result
            .value
            .ok_or_else(|| Problem::new("", "not JSON: the text is empty")),
        Err(error) => {
            let place = (small(error.line_display()), small(error.column_display()));
            Err(Problem::new("", format!("not JSON: {}", error.kind())).at(place))
        }
    }
}

/// The object that the whole text holds.
pub(super) fn object(text: &str) -> Result<Object<'_>, Problem> {
    match parse(text)? {
        Value::Object(object) => Ok(object),
        other => {
            let message = format!("must be an object, not {}", kind_of(&other));
            Err(Problem::new("", message).at((1, 1)))
        }
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The name of a value's type in a message.
pub(super) fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}

/// The names an object gives more than once, each with the position of its
/// second appearance. Parsers use different ones, so Portway uses none.
pub(super) fn repeated<'o>(object: &'o Object<'_>) -> Vec<(&'o str, usize)> {
    let mut seen = std::collections::HashMap::with_capacity(object.properties.len());
    let mut twice = Vec::new();
    for member in &object.properties {
        let count = seen.entry(member.name.as_str()).or_insert(0_u32);
        *count += 1;
        if *count == 2 {
            twice.push((member.name.as_str(), member.start()));
        }
    }
    twice
}

/// Byte offsets to lines and columns, counted from 1; computed once, at the
/// first problem.
pub(super) struct LineIndex<'t> {
    text: &'t str,
    starts: OnceCell<Vec<usize>>,
}

impl<'t> LineIndex<'t> {
    pub(super) fn new(text: &'t str) -> LineIndex<'t> {
        LineIndex {
            text,
            starts: OnceCell::new(),
        }
    }

    pub(super) fn of(&self, offset: usize) -> (u32, u32) {
        let starts = self.starts.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
            std::iter::once(0)
                .chain(breaks.map(|(i, _)| i + 1))
                .collect()
        });
        let line = starts.partition_point(|start| *start <= offset);
        let start = starts[line - 1];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |s| s.chars().count());
        (small(line), small(column + 1))
    }

    /// A problem at a position of the text.
    pub(super) fn problem(
        &self,
        field: &str,
        message: impl Into<String>,
        offset: usize,
    ) -> Problem {
        Problem::new(field, message).at(self.of(offset))
    }

    pub(super) fn twice(&self, field: &str, offset: usize) -> Problem {
        self.problem(field, "is given twice; keep one", offset)
    }

    pub(super) fn wrong_kind(&self, field: &str, wanted: &str, value: &Value<'_>) -> Problem {
        let message = format!("must be {wanted}, not {}", kind_of(value));
        self.problem(field, message, value.start())
    }
}
