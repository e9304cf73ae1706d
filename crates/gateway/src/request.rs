//! A client's request, and the client that sends it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::session::Session;
use wire::meta::LogLevel;
use wire::{Era, method};

/// The client of one request: modern clients send all this with each request,
/// legacy clients once, when they open their session.
#[derive(Clone)]
pub struct Client {
    pub era: Era,
    pub version: &'static str,
    pub capabilities: Arc<RawValue>,
    pub log_level: Option<LogLevel>,
    /// Legacy clients only.
    pub session: Option<Arc<Session>>,
}

/// One request. `params` are as the client sent them.
#[derive(Clone, Copy)]
pub struct ClientRequest<'a> {
    pub id: &'a RawValue,
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
}

impl ClientRequest<'_> {
    /// The method's name, without a copy where the method is known.
    pub(super) fn static_method(self) -> Cow<'static, str> {
        match method::find(self.method) {
            Some(known) => Cow::Borrowed(known.name),
            None => Cow::Owned(self.method.to_owned()),
        }
    }
}

/// A request that outlives the body it came in.
pub struct OwnedRequest {
    pub id: Box<RawValue>,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
}

impl OwnedRequest {
    pub fn of(request: ClientRequest<'_>) -> OwnedRequest {
        OwnedRequest {
            id: request.id.to_owned(),
            method: request.static_method(),
            params: request.params.map(ToOwned::to_owned),
        }
    }

    pub fn as_request(&self) -> ClientRequest<'_> {
        ClientRequest {
            id: &self.id,
            method: &self.method,
            params: self.params.as_deref(),
        }
    }
}
