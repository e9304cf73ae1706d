//! The sessions of legacy clients.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::wire::RpcError;
use crate::wire::meta::LogLevel;

use super::Caller;

/// What a client answered to a request of ours.
pub type ClientAnswer = Result<Box<RawValue>, RpcError>;

/// One legacy client's session, the part that lives in memory.
pub struct Session {
    /// The revision agreed on.
    pub version: String,
    pub capabilities: Arc<RawValue>,
    next: AtomicU64,
    asked: Mutex<HashMap<u64, oneshot::Sender<ClientAnswer>>>,
    running: Mutex<HashMap<String, CancellationToken>>,
}

pub struct Sessions;

impl Session {
    /// A request to the client: the message to send it, and where its answer
    /// will come. Dropping the receiver forgets it.
    pub fn ask(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> (Bytes, oneshot::Receiver<ClientAnswer>) {
        let _ = (method, params, &self.next, &self.asked, &self.running);
        let (_, receiver) = oneshot::channel();
        (Bytes::new(), receiver)
    }

    pub fn key(&self) -> Arc<str> {
        "".into()
    }

    /// The client's answer to something we asked; false if it was not asked.
    pub fn answer(&self, id: &RawValue, answer: ClientAnswer) -> bool {
        let _ = (id, answer);
        false
    }

    /// The level from which on the client wants log messages.
    pub fn level(&self) -> Option<LogLevel> {
        None
    }

    pub fn set_level(&self, level: LogLevel) {
        let _ = level;
    }

    /// Sends something that belongs to no request: on the session's own
    /// stream, buffered within bounds while there is none.
    pub fn tell(&self, message: Bytes) {
        let _ = message;
    }
}

impl Sessions {
    /// The session with this id, if it is one of this caller's.
    pub fn find(&self, caller: &Caller, id: &str) -> Option<Arc<Session>> {
        let _ = (caller, id);
        None
    }
}
