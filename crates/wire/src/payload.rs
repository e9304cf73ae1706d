use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde_json::value::RawValue;

use super::object::raw;

/// A JSON value of a message, in the bytes that the message was received in.
#[derive(Clone)]
pub struct Payload(ByteString);

impl Payload {
    /// `part` is a valid value that was found in `message`.
    pub fn of(message: &Bytes, part: &str) -> Self {
        let bytes = message.slice_ref(part.as_bytes());
        Self(bytes.try_into().expect("a part of a str"))
    }

    pub fn get(&self) -> &str {
        &self.0
    }

    /// A copy, for a value that is read in depth or kept.
    pub fn to_raw(&self) -> Box<RawValue> {
        raw(self.get().to_owned())
    }

    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

impl From<Box<RawValue>> for Payload {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Box::<str>::from(raw).into())
    }
}

// Payloads may hold secrets: only their size is shown.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}
