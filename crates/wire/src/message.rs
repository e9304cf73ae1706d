//! JSON-RPC messages: a strict borrowed envelope around raw payloads.
//!
//! [`parse`] reads messages of clients and refuses those that two parsers might
//! read differently. [`parse_upstream`] reads messages of servers, where the
//! harm is a lost response rather than a smuggled one.

mod batch;
mod error;
mod fault;
mod fields;
mod id;
mod write;

#[cfg(test)]
mod fidelity;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::scan;
pub(crate) use batch::MAX_BATCH;
pub use batch::{is_batch, parse_batch};
pub use error::{RpcError, code};
pub use fault::{Fault, Malformed};
use fields::EnvelopeFields;
pub use id::{BadId, Id};
pub use write::{
    compact, error, is_one_line, notification, request, request_with, response, response_start,
};

/// Deepest nesting of arrays and objects in one message.
pub const MAX_DEPTH: usize = 64;

pub enum Message<'a> {
    Request {
        id: Id<'a>,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Response {
        /// Absent if the peer could not read the request that it responds to.
        id: Option<&'a RawValue>,
        outcome: Outcome<'a>,
    },
}

pub enum Outcome<'a> {
    /// Valid JSON.
    Result(&'a str),
    Error(RpcError),
}

/// Reads one message of a client.
///
/// Refused: a byte order mark, depth over [`MAX_DEPTH`], an envelope member
/// written twice, a wrong or missing `jsonrpc`, an id that is not a string or
/// a safe integer, params that are not an object, anything that is not
/// exactly one of request, notification, result, error. Ignored: unknown
/// members and other cases of known ones; they are not forwarded. `params:
/// null` is no params, as several SDKs write it.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    EnvelopeFields::read(bytes)?.judge(Strictness::Strict)
}

/// Reads one message of a server.
///
/// As [`parse`], but tolerates what servers in use write: a byte order mark;
/// `null` for an absent member (`"error":null` beside a result, `"id":null`
/// on a notification); an error without a proper code or message, or that is
/// a bare string; any id on a response, which then matches no request.
/// `jsonrpc` is still required: every official client requires it, and a JSON
/// log line on stdout must not pass for a message.
pub fn parse_upstream(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    EnvelopeFields::read(bytes)?
        .without_nulls()
        .judge(Strictness::Lenient)
}

/// The outcome in a response of a server; `None` if it is another message.
pub fn outcome(bytes: &[u8]) -> Option<Outcome<'_>> {
    match parse_upstream(bytes) {
        Ok(Message::Response { outcome, .. }) => Some(outcome),
        _ => None,
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    Strict,
    Lenient,
}

fn first_token(bytes: &[u8]) -> Option<u8> {
    bytes
        .iter()
        .copied()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The checks before every parse: UTF-8, no byte order mark, bounded depth.
fn readable(bytes: &[u8]) -> Result<&str, Fault> {
    if bytes.starts_with(BOM) {
        return Err(Fault::ByteOrderMark);
    }
    if scan::deeper_than(bytes, MAX_DEPTH) {
        return Err(Fault::TooDeep);
    }
    std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8)
}

// Payloads may hold secrets: only their size is shown.
impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |raw: &Option<&RawValue>| raw.map_or(0, |raw| raw.get().len());
        match self {
            Self::Request { id, method, params } => {
                write!(f, "Request({id}, {method:?}, {} bytes)", size(params))
            }
            Self::Notification { method, params } => {
                write!(f, "Notification({method:?}, {} bytes)", size(params))
            }
            Self::Response { id, outcome } => {
                write!(
                    f,
                    "Response({}, {outcome:?})",
                    id.map_or("null", RawValue::get)
                )
            }
        }
    }
}

impl fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(json) => write!(f, "Result({} bytes)", json.len()),
            Self::Error(error) => write!(f, "Error({error:?})"),
        }
    }
}
