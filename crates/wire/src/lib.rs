//! The wire format of MCP in both eras: bytes to messages and back, one era's
//! spelling into the other's.
//!
//! Pure functions of their arguments: no clock, no I/O, no runtime. Payloads
//! stay [`RawValue`](serde_json::value::RawValue): a payload without a rewrite
//! passes byte for byte, in order, big integers and odd escapes included.
//! The JSON-RPC envelope is always written anew, never forwarded.

pub mod capability;
pub mod era;
pub mod header;
pub mod invisible;
pub mod message;
pub mod meta;
pub mod method;
pub mod object;
mod payload;
pub mod result;
mod scan;
pub mod schema;
pub mod sse;

pub use era::{Era, LEGACY, MODERN};
pub use message::{
    Id, Malformed, Message, Outcome, RpcError, code, compact, error, is_one_line, notification,
    outcome, parse, parse_upstream, request, request_with, response, response_start,
};
pub use payload::Payload;
