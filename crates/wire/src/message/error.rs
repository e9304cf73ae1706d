use std::fmt;

use serde_json::value::RawValue;

use super::Malformed;
use crate::object::{is_object, pick, text};

/// Error codes by name. Our own codes go outside -32768..=-32000.
pub mod code {
    pub(crate) const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    /// Legacy only; modern uses `INVALID_PARAMS` with `data.uri`.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    pub const HEADER_MISMATCH: i64 = -32020;
    pub const MISSING_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// 2025-11-25 only.
    pub const URL_ELICITATION: i64 = -32042;
}

/// A JSON-RPC error object. Members beyond these three have no meaning in
/// JSON-RPC and are not carried.
#[derive(Clone, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn with_data(mut self, data: Box<RawValue>) -> Self {
        self.data = Some(data);
        self
    }

    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        let [code, message, data] = pick(raw, ["code", "message", "data"]);
        Some(Self {
            code: code?.get().parse().ok()?,
            message: text(message?)?.into_owned(),
            data: data.map(ToOwned::to_owned),
        })
    }

    /// The best reading of a value that is not a proper error object.
    pub(super) fn guess(raw: &RawValue) -> Self {
        if !is_object(raw) {
            let message = text(raw).unwrap_or(raw.get().into());
            return Self::new(code::INTERNAL, message);
        }
        let [code, message, data] = pick(raw, ["code", "message", "data"]);
        let number = code.and_then(|raw| text(raw).unwrap_or(raw.get().into()).parse::<f64>().ok());
        Self {
            code: number.map_or(code::INTERNAL, |number| number as i64),
            message: message
                .and_then(text)
                .map_or_else(|| "error without a message".to_owned(), Into::into),
            data: data.map(ToOwned::to_owned),
        }
    }
}

impl From<&Malformed> for RpcError {
    fn from(malformed: &Malformed) -> Self {
        Self::new(malformed.code(), malformed.to_string())
    }
}

// `data` may quote arguments or results.
impl fmt::Debug for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.code, self.message)
    }
}
