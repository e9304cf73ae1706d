use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fault, Malformed, first_token, readable};

/// Most messages in one batch array.
pub(crate) const MAX_BATCH: usize = 32;

/// Whether the body is an array, which only 2025-03-26 knows.
pub fn is_batch(bytes: &[u8]) -> bool {
    first_token(bytes) == Some(b'[')
}

/// The elements of a batch, each to be given to a reader of its own.
pub fn parse_batch(bytes: &[u8]) -> Result<Vec<&RawValue>, Malformed> {
    let json = readable(bytes)?;
    if !is_batch(bytes) {
        return Err(Fault::NotABatch.into());
    }
    let Batch(messages) = serde_json::from_str(json).map_err(Fault::from)?;
    match messages.len() {
        0 => Err(Fault::EmptyBatch.into()),
        1..=MAX_BATCH => Ok(messages),
        _ => Err(Fault::LongBatch.into()),
    }
}

struct Batch<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BatchVisitor;
        impl<'de> Visitor<'de> for BatchVisitor {
            type Value = Batch<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            // One more than allowed shows that the batch is too long; the
            // rest is skipped.
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Batch<'de>, A::Error> {
                let mut messages = Vec::new();
                while messages.len() <= MAX_BATCH {
                    match seq.next_element()? {
                        Some(message) => messages.push(message),
                        None => return Ok(Batch(messages)),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Batch(messages))
            }
        }
        deserializer.deserialize_seq(BatchVisitor)
    }
}
