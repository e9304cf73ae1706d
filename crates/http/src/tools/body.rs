//! The body of a call: arguments alone, or the whole call as a model made it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::json::{MAX_DEPTH, check_depth, depth_within};
use wire::object::{each_member, empty, is_null, is_object, pick, text};

/// Characters of a field's name that a response repeats.
const SHOWN: usize = 100;

pub(super) struct CallBody<'a> {
    /// The arguments, or their problem, for the model that wrote them.
    pub arguments: Result<Cow<'a, RawValue>, String>,
    /// The model's id of the call.
    pub id: Option<String>,
    /// The tool, if the body names it too, with the name of that field.
    pub named: Option<(&'static str, String)>,
}

impl<'a> CallBody<'a> {
    /// Distinguishes the forms by their shape: OpenAI's calls have a
    /// `function`, Anthropic's an `input`.
    pub(super) fn read(body: &'a [u8]) -> Result<CallBody<'a>, ApiError> {
        let body = object(body)?;
        let names = ["arguments", "id", "type", "function", "name", "input"];
        once(body, &names)?;
        let [arguments, id, kind, function, name, input] = pick(body, names);
        let ask = CallBody {
            arguments: Ok(Cow::Borrowed(empty())),
            id: string("id", id)?,
            named: None,
        };
        let kind = string("type", kind)?;
        let is = |wanted: &str| match kind.as_deref() {
            Some(kind) if kind != wanted => Err(ApiError::invalid_field(
                "type",
                format!("must be {wanted:?}"),
            )),
            _ => Ok(()),
        };
        let arguments = match (function, input) {
            (Some(function), _) => {
                is("function")?;
                return ask.of_function(function);
            }
            (None, Some(input)) => {
                is("tool_use")?;
                argument("input", input)?
            }
            (None, None) => {
                only(body, &["arguments", "id", "name"])?;
                let arguments = arguments.filter(|value| !is_null(value));
                arguments.map_or(Ok(empty()), |all| argument("arguments", all))?
            }
        };
        Ok(CallBody {
            arguments: Ok(Cow::Borrowed(arguments)),
            named: string("name", name)?.map(|name| ("name", name)),
            ..ask
        })
    }

    /// OpenAI sends the arguments as a text that should be JSON.
    fn of_function(self, function: &'a RawValue) -> Result<CallBody<'a>, ApiError> {
        let function = argument("function", function)?;
        once(function, &["name", "arguments"])?;
        let [name, arguments] = pick(function, ["name", "arguments"]);
        let arguments = match arguments {
            None => Ok(Cow::Borrowed(empty())),
            Some(given) if is_object(given) => Ok(Cow::Borrowed(given)),
            Some(given) => {
                let field = "function.arguments";
                let wrong = || ApiError::invalid_field(field, "must be a text of JSON");
                written(&text(given).ok_or_else(wrong)?)
            }
        };
        Ok(CallBody {
            arguments,
            named: string("function.name", name)?.map(|name| ("function.name", name)),
            ..self
        })
    }
}

/// The arguments that a model wrote; empty where a tool takes none.
fn written(text: &str) -> Result<Cow<'static, RawValue>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Cow::Borrowed(empty()));
    }
    if !depth_within(text.as_bytes(), MAX_DEPTH) {
        return Err(format!("nested more than {MAX_DEPTH} levels deep"));
    }
    let arguments = RawValue::from_string(text.to_owned());
    let arguments = arguments.map_err(|error| format!("not JSON: {error}"))?;
    if !is_object(&arguments) {
        return Err("must be a JSON object".to_owned());
    }
    Ok(Cow::Owned(arguments))
}

fn object(body: &[u8]) -> Result<&RawValue, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(empty());
    }
    check_depth(body)?;
    let body: &RawValue = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    argument("body", body)
}

fn argument<'a>(field: &str, value: &'a RawValue) -> Result<&'a RawValue, ApiError> {
    let wrong = || ApiError::invalid_field(field, "must be an object");
    is_object(value).then_some(value).ok_or_else(wrong)
}

fn string(field: &str, value: Option<&RawValue>) -> Result<Option<String>, ApiError> {
    let Some(value) = value.filter(|value| !is_null(value)) else {
        return Ok(None);
    };
    match text(value) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(ApiError::invalid_field(field, "must be a string")),
    }
}

/// Refuses repeated fields, which would be read as absent.
fn once(body: &RawValue, names: &[&str]) -> Result<(), ApiError> {
    let mut seen = Vec::new();
    let mut twice = None;
    each_member(body, |key, _| {
        let key = key.decoded();
        if names.contains(&&*key) {
            if seen.contains(&key) {
                twice = Some(key);
            } else {
                seen.push(key);
            }
        }
    });
    twice.map_or(Ok(()), |field| {
        Err(ApiError::invalid_field(&field, "is given twice"))
    })
}

/// A misspelled field must not become a call without arguments.
fn only(body: &RawValue, names: &[&str]) -> Result<(), ApiError> {
    let mut other = None;
    each_member(body, |key, _| {
        let key = key.decoded();
        if !names.contains(&&*key) && other.is_none() {
            other = Some(key.chars().take(SHOWN).collect::<String>());
        }
    });
    let Some(field) = other else { return Ok(()) };
    Err(ApiError::invalid_field(
        &field,
        "is not known here; `arguments` is",
    ))
}
