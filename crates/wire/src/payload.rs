use std::fmt;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::object::raw;

/// A JSON value of a message, in the bytes that the message was received in.
#[derive(Clone)]
pub struct Payload(Bytes);

impl Payload {
    /// `part` is a valid value that was found in `message`.
    pub fn of(message: &Bytes, part: &str) -> Self {
        Self(message.slice_ref(part.as_bytes()))
    }

    /// Checks the bytes again, eight or sixteen at a time: call it once.
    pub fn get(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a part of a str")
    }

    /// A copy, for a value that is read in depth or kept.
    pub fn to_raw(&self) -> Box<RawValue> {
        raw(self.get().to_owned())
    }

    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Box<RawValue>> for Payload {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Box::<str>::from(raw).into_boxed_bytes().into())
    }
}

// Payloads may hold secrets: only their size is shown.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}
