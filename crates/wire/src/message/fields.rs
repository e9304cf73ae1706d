use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{
    BadId, Fault, Id, MAX_DEPTH, Malformed, Message, Outcome, RpcError, Strictness, first_token,
    readable,
};
use crate::object::{each_json_member, is_null, is_object, parse_part, unquote};
use crate::scan::{JsonCheck, after_space, deeper_than};

/// The members of an envelope: JSON values, not yet checked for their meaning.
#[derive(Clone, Copy, Default)]
pub(super) struct EnvelopeFields<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a RawValue>,
    result: Option<&'a str>,
    error: Option<&'a str>,
    twice: Option<&'static str>,
}

impl<'a> EnvelopeFields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let json = std::str::from_utf8(bytes).ok();
        json.and_then(Self::scan).ok_or_else(|| fault(bytes))
    }

    /// Checks the whole message and finds its members, in one pass. Collects
    /// without judging, so that a fault can still name the id.
    fn scan(json: &'a str) -> Option<Self> {
        let bytes = json.as_bytes();
        let check = JsonCheck::new(bytes);
        let mut fields = EnvelopeFields::default();
        let mut at = after_space(bytes, 0);
        if *bytes.get(at)? != b'{' {
            return None;
        }
        at = after_space(bytes, at + 1);
        if *bytes.get(at)? == b'}' {
            return (after_space(bytes, at + 1) == bytes.len()).then_some(fields);
        }
        loop {
            let (name_end, value) = check.after_name(at)?;
            let name = unquote(&json[at..name_end])?;
            let end = if name == "params" {
                fields.take_params(&json[value..]).map(|size| value + size)
            } else {
                let end = check.after_value(value, MAX_DEPTH - 1);
                end.inspect(|end| fields.put(&name, &json[value..*end]))
            }?;
            at = after_space(bytes, end);
            match *bytes.get(at)? {
                b',' => at = after_space(bytes, at + 1),
                b'}' => return (after_space(bytes, at + 1) == bytes.len()).then_some(fields),
                _ => return None,
            }
        }
    }

    /// Takes the params at the start of `json` and returns their length. They
    /// are used as a raw value, which only serde_json's own check can make.
    fn take_params(&mut self, json: &'a str) -> Option<usize> {
        let mut values = serde_json::Deserializer::from_str(json).into_iter();
        let params: &'a RawValue = values.next()?.ok()?;
        if deeper_than(params.get().as_bytes(), MAX_DEPTH - 1) {
            return None;
        }
        if self.params.replace(params).is_some() {
            self.twice = Some("params");
        }
        Some(params.get().len())
    }

    fn put(&mut self, name: &str, value: &'a str) {
        let (name, field) = match name {
            "jsonrpc" => ("jsonrpc", &mut self.jsonrpc),
            "id" => ("id", &mut self.id),
            "method" => ("method", &mut self.method),
            "result" => ("result", &mut self.result),
            "error" => ("error", &mut self.error),
            _ => return,
        };
        if field.replace(value).is_some() {
            self.twice = Some(name);
        }
    }

    pub(super) fn without_nulls(mut self) -> Self {
        for field in [&mut self.id, &mut self.method, &mut self.error] {
            *field = field.filter(|json| *json != "null");
        }
        // A null result alone is a response; beside an error it is filler.
        if self.error.is_some() || self.method.is_some() {
            self.result = self.result.filter(|json| *json != "null");
        }
        self
    }

    /// The message that the members form, or the fault.
    pub(super) fn judge(self, strictness: Strictness) -> Result<Message<'a>, Malformed> {
        self.judge_all(strictness)
            .map_err(|fault| self.blame(fault))
    }

    fn judge_all(self, strictness: Strictness) -> Result<Message<'a>, Fault> {
        if let Some(name) = self.twice {
            return Err(Fault::Duplicate(name));
        }
        if self.jsonrpc.and_then(unquote).as_deref() != Some("2.0") {
            return Err(Fault::JsonRpc);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => self.judge_call(method),
            (None, Some(result), None) => {
                let id = self.id.and_then(parse_part).ok_or(BadId::Missing)?;
                if strictness == Strictness::Strict {
                    Id::new(id)?;
                }
                Ok(Message::Response {
                    id: Some(id),
                    outcome: Outcome::Result(result),
                })
            }
            (None, None, Some(error)) => self.judge_error(error, strictness),
            (None, None, None) => Err(Fault::NoPurpose),
            _ => Err(Fault::TwoPurposes),
        }
    }

    fn judge_call(self, method: &'a str) -> Result<Message<'a>, Fault> {
        let method = unquote(method).ok_or(Fault::Method)?;
        let params = self.params.filter(|raw| !is_null(raw));
        if params.is_some_and(|raw| !is_object(raw)) {
            return Err(Fault::Params);
        }
        Ok(match self.id.and_then(parse_part) {
            Some(id) => Message::Request {
                id: Id::new(id)?,
                method,
                params,
            },
            None => Message::Notification { method, params },
        })
    }

    fn judge_error(self, error: &str, strictness: Strictness) -> Result<Message<'a>, Fault> {
        let id = self.id.filter(|json| *json != "null").and_then(parse_part);
        let error = parse_part(error).ok_or(Fault::Error)?;
        let error = match (RpcError::read(error), strictness) {
            (Some(error), _) => error,
            (None, Strictness::Lenient) => RpcError::guess(error),
            (None, Strictness::Strict) => return Err(Fault::Error),
        };
        if let (Some(id), Strictness::Strict) = (id, strictness) {
            Id::new(id)?;
        }
        Ok(Message::Response {
            id,
            outcome: Outcome::Error(error),
        })
    }

    /// Adds the id, if it is unambiguous, so that the error reaches the sender.
    fn blame(self, fault: Fault) -> Malformed {
        let id = self.id.filter(|_| self.twice != Some("id"));
        let id = id.and_then(parse_part).and_then(|raw| Id::new(raw).ok());
        let answers = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        Malformed::new(fault, id, answers)
    }
}

/// Why a message is not an envelope.
fn fault(bytes: &[u8]) -> Malformed {
    let json = match readable(bytes) {
        Ok(json) => json,
        Err(Fault::TooDeep) => return too_deep(bytes),
        Err(fault) => return fault.into(),
    };
    let valid = serde_json::from_str::<IgnoredAny>(json);
    match (first_token(bytes), valid) {
        (Some(b'['), _) => Fault::Batch.into(),
        (None, _) => Fault::Empty.into(),
        (_, Err(error)) => Fault::from(error).into(),
        // Only names are decoded: this one has a lone surrogate.
        (Some(b'{'), Ok(_)) => Fault::Syntax { line: 1, column: 1 }.into(),
        (Some(_), Ok(_)) => Fault::NotAnObject.into(),
    }
}

/// Reads the envelope alone, so that the error can name the id of the request.
fn too_deep(bytes: &[u8]) -> Malformed {
    let json = std::str::from_utf8(bytes).unwrap_or_default();
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return Fault::TooDeep.into();
    }
    let mut fields = EnvelopeFields::default();
    each_json_member(json.trim_start(), |name, value| {
        fields.put(&name.decoded(), value);
    });
    fields.without_nulls().blame(Fault::TooDeep)
}
