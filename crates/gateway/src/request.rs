//! A client's request, and the client that sends it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::session::Session;
use wire::meta::{LogLevel, RequestParams};
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

/// One request. `params` are as the client sent them; `found` are their
/// members.
#[derive(Clone, Copy)]
pub struct ClientRequest<'a> {
    pub id: &'a RawValue,
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
    pub found: RequestParams<'a>,
}

impl<'a> ClientRequest<'a> {
    pub fn new(
        id: &'a RawValue,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> ClientRequest<'a> {
        ClientRequest {
            id,
            method,
            params,
            found: RequestParams::find(params),
        }
    }
}

/// The method's name, without a copy where the method is known.
pub(super) fn static_method(name: &str) -> Cow<'static, str> {
    match method::find(name) {
        Some(known) => Cow::Borrowed(known.name),
        None => Cow::Owned(name.to_owned()),
    }
}

/// A request that outlives the body it came in.
pub struct OwnedRequest {
    pub id: Box<RawValue>,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
}

impl OwnedRequest {
    pub fn of(id: &RawValue, method: &str, params: Option<&RawValue>) -> OwnedRequest {
        OwnedRequest {
            id: id.to_owned(),
            method: static_method(method),
            params: params.map(ToOwned::to_owned),
        }
    }

    pub fn as_request(&self) -> ClientRequest<'_> {
        ClientRequest::new(&self.id, &self.method, self.params.as_deref())
    }
}
