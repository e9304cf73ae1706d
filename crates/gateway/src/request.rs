//! A client's request, kept beyond the body it came in.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::ClientRequest;
use wire::method;

pub struct OwnedRequest {
    pub id: Box<RawValue>,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
}

impl OwnedRequest {
    pub fn of(incoming: ClientRequest<'_>) -> OwnedRequest {
        OwnedRequest {
            id: incoming.id.to_owned(),
            method: match method::find(incoming.method) {
                Some(known) => Cow::Borrowed(known.name),
                None => Cow::Owned(incoming.method.to_owned()),
            },
            params: incoming.params.map(ToOwned::to_owned),
        }
    }

    pub fn incoming(&self) -> ClientRequest<'_> {
        ClientRequest {
            id: &self.id,
            method: &self.method,
            params: self.params.as_deref(),
        }
    }
}
