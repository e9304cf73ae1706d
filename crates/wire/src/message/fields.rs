use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    BadId, Fault, Id, Malformed, Message, Outcome, RpcError, Strictness, first_token, readable,
};
use crate::object::{is_null, is_object, text};

/// The members of an envelope, not yet checked.
#[derive(Clone, Copy, Default)]
pub(super) struct EnvelopeFields<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    twice: Option<&'static str>,
}

impl<'a> EnvelopeFields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let json = match readable(bytes) {
            Err(Fault::TooDeep) => return Err(too_deep(bytes)),
            json => json?,
        };
        match first_token(bytes) {
            Some(b'{') => Ok(serde_json::from_str(json).map_err(Fault::from)?),
            Some(b'[') => Err(Fault::Batch.into()),
            None => Err(Fault::Empty.into()),
            // Still only "not an object" if it is JSON at all.
            Some(_) => match serde_json::from_str::<IgnoredAny>(json) {
                Ok(_) => Err(Fault::NotAnObject.into()),
                Err(error) => Err(Fault::from(error).into()),
            },
        }
    }

    fn slot(&mut self, name: FieldName) -> Option<(&'static str, &mut Option<&'a RawValue>)> {
        Some(match name {
            FieldName::JsonRpc => ("jsonrpc", &mut self.jsonrpc),
            FieldName::Id => ("id", &mut self.id),
            FieldName::Method => ("method", &mut self.method),
            FieldName::Params => ("params", &mut self.params),
            FieldName::Result => ("result", &mut self.result),
            FieldName::Error => ("error", &mut self.error),
            FieldName::Other => return None,
        })
    }

    pub(super) fn without_nulls(mut self) -> Self {
        for field in [&mut self.id, &mut self.method, &mut self.error] {
            *field = field.filter(|raw| !is_null(raw));
        }
        // A null result alone is a response; beside an error it is filler.
        if self.error.is_some() || self.method.is_some() {
            self.result = self.result.filter(|raw| !is_null(raw));
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
        if self.jsonrpc.and_then(text).as_deref() != Some("2.0") {
            return Err(Fault::JsonRpc);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => self.judge_call(method),
            (None, Some(result), None) => {
                let id = self.id.ok_or(BadId::Missing)?;
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

    fn judge_call(self, method: &'a RawValue) -> Result<Message<'a>, Fault> {
        let method = text(method).ok_or(Fault::Method)?;
        let params = self.params.filter(|raw| !is_null(raw));
        if params.is_some_and(|raw| !is_object(raw)) {
            return Err(Fault::Params);
        }
        Ok(match self.id {
            Some(id) => Message::Request {
                id: Id::new(id)?,
                method,
                params,
            },
            None => Message::Notification { method, params },
        })
    }

    fn judge_error(self, error: &RawValue, strictness: Strictness) -> Result<Message<'a>, Fault> {
        let id = self.id.filter(|raw| !is_null(raw));
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
        let answers = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        Malformed::new(fault, id.and_then(|raw| Id::new(raw).ok()), answers)
    }
}

/// Reads the envelope alone, which is shallow and takes no recursion, so that
/// the error can name the id of the request.
fn too_deep(bytes: &[u8]) -> Malformed {
    let fields = std::str::from_utf8(bytes).ok();
    let fields: Option<EnvelopeFields<'_>> =
        fields.and_then(|json| serde_json::from_str(json).ok());
    match fields {
        Some(fields) => fields.without_nulls().blame(Fault::TooDeep),
        None => Fault::TooDeep.into(),
    }
}

enum FieldName {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldNameVisitor;
        impl Visitor<'_> for FieldNameVisitor {
            type Value = FieldName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName, E> {
                Ok(match name {
                    "jsonrpc" => FieldName::JsonRpc,
                    "id" => FieldName::Id,
                    "method" => FieldName::Method,
                    "params" => FieldName::Params,
                    "result" => FieldName::Result,
                    "error" => FieldName::Error,
                    _ => FieldName::Other,
                })
            }
        }
        deserializer.deserialize_str(FieldNameVisitor)
    }
}

impl<'de> Deserialize<'de> for EnvelopeFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;
        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = EnvelopeFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }

            // Collects without checking, so that a fault can still name the id.
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<EnvelopeFields<'de>, A::Error> {
                let mut fields = EnvelopeFields::default();
                while let Some(name) = map.next_key::<FieldName>()? {
                    let Some((name, slot)) = fields.slot(name) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    if slot.replace(map.next_value()?).is_some() {
                        fields.twice = Some(name);
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}
