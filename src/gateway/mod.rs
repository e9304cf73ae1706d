//! The MCP server our clients talk to: who asks and what they say, to an
//! answer or a stream of messages. This room filters, renames and bridges
//! eras. It knows no header, no status code and no process.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::fleet::Fleet;
use crate::wire::meta::LogLevel;
use crate::wire::{self, Era, RpcError, code};

mod session;
mod view;

pub use session::{Session, Sessions};
pub use view::{View, Views};

/// What an endpoint shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All servers together, names made unique; narrowed by a named filter.
    Everything { filter: Option<Arc<str>> },
    /// One server as it is.
    Server(Arc<str>),
}

/// Who asks, and through which endpoint.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Opaque and stable: `admin`, `entry:12`. Nothing of one principal is
    /// ever shown to another.
    pub principal: Arc<str>,
    pub scope: Scope,
}

/// The client of one request: modern ones say all this in the request, legacy
/// ones once, when they open their session.
#[derive(Clone)]
pub struct Client {
    pub era: Era,
    pub version: String,
    pub capabilities: Arc<RawValue>,
    pub log_level: Option<LogLevel>,
    /// Legacy clients only.
    pub session: Option<Arc<Session>>,
}

/// One request. `params` are as the client sent them.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    pub id: &'a RawValue,
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
}

/// A whole JSON-RPC response, spelled for its client.
#[derive(Debug)]
pub struct Reply {
    pub body: Bytes,
    /// The code where it is an error: some have an HTTP status of their own.
    pub error: Option<i64>,
}

impl Reply {
    pub fn result(id: &RawValue, result: &RawValue) -> Reply {
        Reply {
            body: wire::response(id, result).into(),
            error: None,
        }
    }

    pub fn error(id: &RawValue, error: &RpcError) -> Reply {
        Reply {
            body: wire::error(Some(id), error).into(),
            error: Some(error.code),
        }
    }
}

/// What comes of a request.
pub enum Flow {
    Reply(Reply),
    /// Something may come before the answer.
    Stream(Box<dyn Source>),
}

/// One thing on the way to a client.
#[derive(Debug)]
pub enum Item {
    /// A notification or, to a legacy client, a request: a whole message.
    Message(Bytes),
    /// The answer; nothing follows.
    Last(Reply),
}

/// What belongs to one request, in order. Dropping it gives the request up:
/// upstream is told.
#[async_trait]
pub trait Source: Send {
    /// Must not be called again after [`Item::Last`]. Cancel-safe.
    async fn next(&mut self) -> Item;
}

pub struct Gateway {
    pub fleet: Fleet,
    pub views: Views,
    pub sessions: Sessions,
}

impl Gateway {
    /// Answers one request.
    pub async fn dispatch(&self, caller: &Caller, client: &Client, incoming: Incoming<'_>) -> Flow {
        let _ = (caller, client);
        let error = RpcError::new(code::METHOD_NOT_FOUND, "not yet");
        Flow::Reply(Reply::error(incoming.id, &error))
    }

    /// Takes a notification of a legacy client, or of a modern one on stdio.
    pub fn notification(
        &self,
        caller: &Caller,
        session: &Arc<Session>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let _ = (caller, session, method, params);
    }
}
