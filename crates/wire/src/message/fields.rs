use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    BadId, Fault, Id, Malformed, Message, Outcome, Reader, RpcError, first_token, readable,
};
use crate::object::{is_null, is_object, text};

/// The members of an envelope as found, before any judgement.
#[derive(Clone, Copy, Default)]
pub(super) struct Fields<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    twice: Option<&'static str>,
}

impl<'a> Fields<'a> {
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

    fn slot(&mut self, name: Name) -> Option<(&'static str, &mut Option<&'a RawValue>)> {
        Some(match name {
            Name::JsonRpc => ("jsonrpc", &mut self.jsonrpc),
            Name::Id => ("id", &mut self.id),
            Name::Method => ("method", &mut self.method),
            Name::Params => ("params", &mut self.params),
            Name::Result => ("result", &mut self.result),
            Name::Error => ("error", &mut self.error),
            Name::Other => return None,
        })
    }

    pub(super) fn without_nulls(mut self) -> Self {
        for field in [&mut self.id, &mut self.method, &mut self.error] {
            *field = field.filter(|raw| !is_null(raw));
        }
        // A null result alone is an answer; beside an error it is filler.
        if self.error.is_some() || self.method.is_some() {
            self.result = self.result.filter(|raw| !is_null(raw));
        }
        self
    }

    /// What the members make, or why nothing.
    pub(super) fn judge(self, reader: Reader) -> Result<Message<'a>, Malformed> {
        self.judge_all(reader).map_err(|fault| self.blame(fault))
    }

    fn judge_all(self, reader: Reader) -> Result<Message<'a>, Fault> {
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
                if reader == Reader::Strict {
                    Id::new(id)?;
                }
                Ok(Message::Response {
                    id: Some(id),
                    outcome: Outcome::Result(result),
                })
            }
            (None, None, Some(error)) => self.judge_error(error, reader),
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

    fn judge_error(self, error: &RawValue, reader: Reader) -> Result<Message<'a>, Fault> {
        let id = self.id.filter(|raw| !is_null(raw));
        let error = match (RpcError::read(error), reader) {
            (Some(error), _) => error,
            (None, Reader::Lenient) => RpcError::guess(error),
            (None, Reader::Strict) => return Err(Fault::Error),
        };
        if let (Some(id), Reader::Strict) = (id, reader) {
            Id::new(id)?;
        }
        Ok(Message::Response {
            id,
            outcome: Outcome::Error(error),
        })
    }

    /// Adds the id, where it is beyond doubt, so that the sender can be told.
    fn blame(self, fault: Fault) -> Malformed {
        let id = self.id.filter(|_| self.twice != Some("id"));
        let answers = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        Malformed::new(fault, id.and_then(|raw| Id::new(raw).ok()), answers)
    }
}

/// Its envelope is shallow, and reading no more than that takes no recursion:
/// whoever waits for the message can be told.
fn too_deep(bytes: &[u8]) -> Malformed {
    let fields = std::str::from_utf8(bytes).ok();
    let fields: Option<Fields<'_>> = fields.and_then(|json| serde_json::from_str(json).ok());
    match fields {
        Some(fields) => fields.without_nulls().blame(Fault::TooDeep),
        None => Fault::TooDeep.into(),
    }
}

enum Name {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "jsonrpc" => Name::JsonRpc,
                    "id" => Name::Id,
                    "method" => Name::Method,
                    "params" => Name::Params,
                    "result" => Name::Result,
                    "error" => Name::Error,
                    _ => Name::Other,
                })
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }

            // Collects and never judges, so that a fault can still name the id.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::default();
                while let Some(name) = map.next_key::<Name>()? {
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
        deserializer.deserialize_map(FieldsVisitor)
    }
}
