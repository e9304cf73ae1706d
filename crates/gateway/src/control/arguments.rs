//! The arguments of Portway's own tools, read strictly: problems have the words
//! of REST, so that a model can correct them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use config::{Problem, unknown_field};
use fleet::registry::UpdateError;
use wire::object::{self, each_member, is_null};

/// Problems reported at once, and characters of a field's name in them.
const TOLD: usize = 20;
const SHOWN: usize = 100;

pub(super) struct ToolArguments<'a> {
    /// The arguments that are not null.
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

fn wrong(field: &str, message: &str) -> UpdateError {
    UpdateError::Problems(vec![Problem::new(field, message)])
}

impl<'a> ToolArguments<'a> {
    pub(super) fn read(
        arguments: &'a RawValue,
        known: &[&'static str],
    ) -> Result<ToolArguments<'a>, UpdateError> {
        let mut fields: Vec<(Cow<'a, str>, &'a RawValue)> = Vec::new();
        let mut problems = Vec::new();
        let is_object = each_member(arguments, |key, value| {
            let key = key.decoded();
            let message = if !known.contains(&&*key) {
                unknown_field(&key, known.iter().copied())
            } else if fields.iter().any(|(field, _)| *field == key) {
                "is given twice; keep one".to_owned()
            } else {
                return fields.push((key, value));
            };
            if problems.len() < TOLD {
                let field: String = key.chars().take(SHOWN).collect();
                problems.push(Problem::new(field, message));
            }
        });
        if !is_object {
            return Err(wrong("arguments", "must be an object"));
        }
        if !problems.is_empty() {
            return Err(UpdateError::Problems(problems));
        }
        fields.retain(|(_, value)| !is_null(value));
        Ok(ToolArguments { fields })
    }

    fn get(&self, field: &str) -> Option<&'a RawValue> {
        let found = self.fields.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| *value)
    }

    pub(super) fn needed(&self, field: &str) -> Result<&'a RawValue, UpdateError> {
        self.get(field).ok_or_else(|| wrong(field, "is missing"))
    }

    pub(super) fn text(&self, field: &str) -> Result<Option<String>, UpdateError> {
        let text = self.get(field).map(|value| {
            let text = object::text(value).map(Cow::into_owned);
            text.ok_or_else(|| wrong(field, "must be a string"))
        });
        text.transpose()
    }

    pub(super) fn count(&self, field: &str) -> Result<Option<u64>, UpdateError> {
        let number = self
            .get(field)
            .map(|value| serde_json::from_str(value.get()));
        let number = number.transpose();
        number.map_err(|_| wrong(field, "must be a whole number, 0 or more"))
    }

    /// A count as a `usize`.
    pub(super) fn amount(&self, field: &str) -> Result<Option<usize>, UpdateError> {
        let count = self.count(field)?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// The server to act on. `add_server` and REST call it `name`.
    pub(super) fn server(&self) -> Result<String, UpdateError> {
        let server = self.maybe_server()?;
        server.ok_or_else(|| wrong("server", "is missing; give the server's name or id"))
    }

    pub(super) fn maybe_server(&self) -> Result<Option<String>, UpdateError> {
        match (self.text("server")?, self.text("name")?) {
            (Some(server), Some(name)) if server != name => {
                Err(wrong("name", "is another server than `server`; keep one"))
            }
            (server, name) => Ok(server.or(name)),
        }
    }
}
