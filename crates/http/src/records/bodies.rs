//! Request bodies, read strictly: the error names all wrong, unknown and
//! repeated fields at once.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::refuse;
use crate::error::{ApiError, FieldProblem};
pub(super) use crate::json::JsonBody;
use crate::json::check_depth;

/// The most problems in one response.
const PROBLEMS: usize = 100;
/// Characters of a field's name that a response repeats.
const SHOWN: usize = 100;

/// The members of an object that have not been read yet, and the problems of
/// those that have.
pub(crate) struct BodyFields {
    members: Map<String, Value>,
    /// The path of the object: empty, or `bindings[3].`
    within: String,
    problems: Vec<FieldProblem>,
}

impl BodyFields {
    pub(super) fn read(bytes: &[u8]) -> Result<BodyFields, ApiError> {
        if bytes.trim_ascii().is_empty() {
            return Err(ApiError::bad_request("the request needs a JSON body"));
        }
        BodyFields::read_or_none(bytes)
    }

    /// Reads a body that may be empty.
    pub(super) fn read_or_none(bytes: &[u8]) -> Result<BodyFields, ApiError> {
        let mut seen = BodyProblems::default();
        let value = if bytes.trim_ascii().is_empty() {
            Value::Object(Map::new())
        } else {
            parse(bytes, &mut seen)?
        };
        let Value::Object(members) = value else {
            let message = format!("must be an object, not {}", kind(&value));
            return Err(ApiError::invalid_field("body", message));
        };
        Ok(BodyFields {
            members,
            within: String::new(),
            problems: seen.problems,
        })
    }

    pub(super) fn wrong(&mut self, name: &str, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS {
            let field = format!("{}{}", self.within, short(name));
            self.problems.push(FieldProblem::new(field, message));
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.members.shift_remove(name)
    }

    fn read_as<T>(&mut self, name: &str, value: &Value, read: ReadValue<T>) -> Option<T> {
        read(value)
            .map_err(|message| self.wrong(name, message))
            .ok()
    }

    pub(super) fn required<T: Default>(&mut self, name: &str, read: ReadValue<T>) -> T {
        let Some(value) = self.take(name) else {
            self.wrong(name, "is missing");
            return T::default();
        };
        self.read_as(name, &value, read).unwrap_or_default()
    }

    /// `null` counts as absent.
    pub(super) fn optional<T>(&mut self, name: &str, read: ReadValue<T>) -> Option<T> {
        let value = self.take(name).filter(|value| !value.is_null())?;
        self.read_as(name, &value, read)
    }

    /// A field of a change: absent leaves the value, `null` is an error.
    pub(super) fn change<T>(&mut self, name: &str, read: ReadValue<T>) -> Option<T> {
        let value = self.take(name)?;
        self.read_as(name, &value, read)
    }

    /// A field of a change: absent leaves the value, `null` removes it.
    pub(super) fn removable<T>(&mut self, name: &str, read: ReadValue<T>) -> Option<Option<T>> {
        match self.take(name)? {
            Value::Null => Some(None),
            value => self.read_as(name, &value, read).map(Some),
        }
    }

    /// Reads the object in a field, or in an element of a list.
    pub(super) fn inside<T>(
        &mut self,
        name: &str,
        value: Value,
        read: impl FnOnce(&mut BodyFields) -> T,
    ) -> Option<T> {
        let Value::Object(members) = value else {
            self.wrong(name, format!("must be an object, not {}", kind(&value)));
            return None;
        };
        let mut inner = BodyFields {
            members,
            within: format!("{}{name}.", self.within),
            problems: std::mem::take(&mut self.problems),
        };
        let value = read(&mut inner);
        inner.refuse_rest();
        self.problems = inner.problems;
        Some(value)
    }

    /// The members that have not been read.
    pub(super) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.members)
    }

    fn refuse_rest(&mut self) {
        for name in self.rest().keys() {
            self.wrong(name, "unknown field");
        }
    }

    /// Fails if there are problems or unread members.
    pub(super) fn done(mut self) -> Result<(), ApiError> {
        self.refuse_rest();
        refuse(self.problems)
    }
}

/// A value of one kind, or its problem, which never repeats the value.
pub(super) type ReadValue<T> = fn(&Value) -> Result<T, String>;

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn short(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}

fn parse(bytes: &[u8], seen: &mut BodyProblems) -> Result<Value, ApiError> {
    check_depth(bytes)?;
    let not_json = |error| ApiError::bad_request(format!("the body is not JSON: {error}"));
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict(seen).deserialize(&mut reader).map_err(not_json)?;
    reader.end().map_err(not_json)?;
    Ok(value)
}

/// Problems that no field's own reader can detect: repeated names, of which a
/// map keeps one, and a character that not every store can keep.
#[derive(Default)]
struct BodyProblems {
    path: Vec<String>,
    problems: Vec<FieldProblem>,
}

impl BodyProblems {
    fn wrong(&mut self, message: &str) {
        if self.problems.len() < PROBLEMS {
            let mut path = String::new();
            for name in &self.path {
                let dot = !path.is_empty() && !name.starts_with('[');
                path += if dot { "." } else { "" };
                path += &short(name);
            }
            self.problems.push(FieldProblem::new(path, message));
        }
    }
}

const NUL: &str = "must not contain a NUL character";

struct Strict<'a>(&'a mut BodyProblems);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        if text.contains('\0') {
            self.0.wrong(NUL);
        }
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.0.path.push(format!("[{}]", list.len()));
            let next = from.next_element_seed(Strict(self.0));
            self.0.path.pop();
            match next? {
                Some(value) => list.push(value),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let (twice, odd) = (members.contains_key(&name), name.contains('\0'));
            self.0.path.push(name);
            if twice {
                self.0.wrong("is given twice; keep one");
            }
            if odd {
                self.0.wrong(NUL);
            }
            let value = from.next_value_seed(Strict(self.0));
            let name = self.0.path.pop().unwrap_or_default();
            members.insert(name, value?);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(body: &str) -> Vec<(String, String)> {
        let fields = BodyFields::read(body.as_bytes()).map_err(|error| error.message().to_owned());
        let BodyFields { problems, .. } = fields.unwrap();
        let pair = |problem: FieldProblem| (problem.field, problem.message);
        problems.into_iter().map(pair).collect()
    }

    #[test]
    fn g3_what_is_given_twice_is_named_where_it_stands() {
        let body =
            r#"{"a":1,"a":2,"list":[{},{"b":1,"c":{"d":1,"d":2},"b":2}],"x\u0000":"\u0000"}"#;
        let found = problems(body);
        let places: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(places, ["a", "list[1].c.d", "list[1].b", "x\0", "x\0"]);
        assert!(found[0].1.starts_with("is given twice"));
        assert!(found[4].1.contains("NUL"));
        assert!(problems(r#"{"a":[{"x":1},{"x":2}]}"#).is_empty());
    }

    #[test]
    fn g3_what_is_no_object_is_refused() {
        let status = |body: &str| match BodyFields::read(body.as_bytes()) {
            Ok(_) => 200,
            Err(error) => error.code().status().as_u16(),
        };
        for body in ["", "  ", "{", "{} x", "nope", "{\"a\":1e999}"] {
            assert_eq!(status(body), 400, "{body}");
        }
        assert_eq!(status(&"[".repeat(1000)), 400);
        for body in ["[]", "null", "1", "\"{}\""] {
            assert_eq!(status(body), 422, "{body}");
        }
        assert!(BodyFields::read_or_none(b" ").is_ok());
    }

    #[test]
    fn g3_problems_are_bounded() {
        let members: Vec<String> = (0..5000).map(|n| format!("\"f{n}\":1")).collect();
        let body = format!("{{{}}}", members.join(","));
        let error = BodyFields::read(body.as_bytes())
            .unwrap_or_else(|_| panic!())
            .done();
        let text = error.unwrap_err().message().to_owned();
        assert!(text.contains("f0") && text.contains("99 more"), "{text}");
    }
}
