//! Reads the fields of one object by type; a value of the wrong type becomes
//! a problem that names the field and its line.

use indexmap::IndexMap;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::problem::Problem;
use super::reference::{TextPiece, pieces};
use super::tree::{LineIndex, repeated};

pub(super) struct FieldReader<'r, 't> {
    pub(super) object: &'r Object<'t>,
    pub(super) places: &'r LineIndex<'t>,
    pub(super) problems: Vec<Problem>,
}

pub(super) type ValueCheck = fn(&str) -> Result<(), String>;

impl<'r, 't> FieldReader<'r, 't> {
    /// Each field that is given twice is a problem.
    pub(super) fn new(object: &'r Object<'t>, places: &'r LineIndex<'t>) -> FieldReader<'r, 't> {
        let twice = repeated(object).into_iter();
        FieldReader {
            object,
            places,
            problems: twice.map(|(name, at)| places.twice(name, at)).collect(),
        }
    }

    /// The value of a field; `null` counts as absent.
    pub(super) fn get(&self, field: &str) -> Option<&'r Value<'t>> {
        let member = self.object.get(field)?;
        (!matches!(member.value, Value::NullKeyword(_))).then_some(&member.value)
    }

    pub(super) fn problem_at(&mut self, field: &str, message: impl Into<String>, offset: usize) {
        let problem = self.places.problem(field, message, offset);
        self.problems.push(problem);
    }

    pub(super) fn missing(&mut self, field: &str, message: &str) {
        self.problem_at(field, message, self.object.start());
    }

    pub(super) fn boolean(&mut self, field: &str) -> Option<bool> {
        match self.get(field)? {
            Value::BooleanLit(literal) => Some(literal.value),
            other => {
                self.wrong_kind(field, "true or false", other);
                None
            }
        }
    }

    /// One of `all`, each written as the word at the same place of `words`.
    pub(super) fn choice<T: Copy + Default>(
        &mut self,
        field: &str,
        all: &[T],
        words: &[&str],
    ) -> T {
        let Some(value) = self.get(field) else {
            return T::default();
        };
        let Some(text) = self.string(field, value) else {
            return T::default();
        };
        if let Some(at) = words.iter().position(|word| *word == text) {
            return all[at];
        }
        let message = format!("unknown value {}; use {}", quoted(text), words.join(", "));
        self.problem_at(field, message, value.start());
        T::default()
    }

    pub(super) fn wrong_kind(&mut self, field: &str, wanted: &str, value: &Value<'_>) {
        let problem = self.places.wrong_kind(field, wanted, value);
        self.problems.push(problem);
    }

    pub(super) fn string(&mut self, field: &str, value: &'r Value<'t>) -> Option<&'r str> {
        let Value::StringLit(literal) = value else {
            self.wrong_kind(field, "a string", value);
            return None;
        };
        if literal.value.contains('\0') {
            let message = "must not contain a NUL character";
            self.problem_at(field, message, value.start());
            return None;
        }
        Some(&literal.value)
    }

    pub(super) fn strings(&mut self, field: &str, value: &'r Value<'t>) -> Vec<String> {
        let Value::Array(array) = value else {
            self.wrong_kind(field, "a list of strings", value);
            return Vec::new();
        };
        let elements = array.elements.iter().enumerate();
        elements
            .filter_map(|(i, element)| self.string(&format!("{field}[{i}]"), element))
            .map(str::to_owned)
            .collect()
    }

    pub(super) fn map(
        &mut self,
        field: &str,
        check_name: ValueCheck,
        check_value: ValueCheck,
    ) -> IndexMap<String, String> {
        let mut map = IndexMap::new();
        let Some(value) = self.get(field) else {
            return map;
        };
        let Value::Object(object) = value else {
            self.wrong_kind(field, "an object of names and strings", value);
            return map;
        };
        for (name, offset) in repeated(object) {
            let problem = self.places.twice(&format!("{field}.{name}"), offset);
            self.problems.push(problem);
        }
        for member in &object.properties {
            let name = member.name.as_str();
            let path = format!("{field}.{name}");
            if let Err(message) = check_name(name) {
                self.problem_at(&path, message, member.start());
            }
            let Some(text) = self.string(&path, &member.value) else {
                continue;
            };
            for piece in pieces(text) {
                if let TextPiece::Text(text) = piece
                    && let Err(message) = check_value(text)
                {
                    self.problem_at(&path, message, member.value.start());
                }
            }
            map.insert(name.to_owned(), text.to_owned());
        }
        map
    }
}

/// A word of the user, shortened and quoted for a message.
pub(super) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("{short:?}")
}
