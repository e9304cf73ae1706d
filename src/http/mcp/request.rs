//! A client's request, kept beyond the body it came in.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::gateway::Incoming;
use crate::wire::{Id, method};

pub(super) struct Request {
    pub id: Box<RawValue>,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
}

impl Request {
    pub(super) fn new(id: Id<'_>, method: &str, params: Option<&RawValue>) -> Request {
        Request {
            id: id.raw().to_owned(),
            method: match method::find(method) {
                Some(known) => Cow::Borrowed(known.name),
                None => Cow::Owned(method.to_owned()),
            },
            params: params.map(ToOwned::to_owned),
        }
    }

    pub(super) fn incoming(&self) -> Incoming<'_> {
        Incoming {
            id: &self.id,
            method: &self.method,
            params: self.params.as_deref(),
        }
    }
}
