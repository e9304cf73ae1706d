use std::fmt;

use serde_json::value::RawValue;

use crate::object::unquote;

/// Longest id as written, quotes included.
const MAX_BYTES: usize = 256;

/// Above this, peers that read numbers as doubles would return another id.
const MAX_SAFE: u64 = 1 << 53;

/// A request id: a string or a safe integer, kept as it was written so that
/// the answer carries the same bytes.
#[derive(Clone, Copy, Debug)]
pub struct Id<'a>(&'a RawValue);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    #[error("is missing")]
    Missing,
    #[error("must be a string or an integer")]
    Kind,
    #[error("is longer than {MAX_BYTES} bytes")]
    Long,
    #[error("is an integer beyond 2^53")]
    Unsafe,
    #[error("is not valid Unicode")]
    Unicode,
}

impl<'a> Id<'a> {
    pub fn new(raw: &'a RawValue) -> Result<Self, BadId> {
        Self::check(raw.get()).map(|()| Self(raw))
    }

    /// Whether JSON text is an id.
    pub(crate) fn check(json: &str) -> Result<(), BadId> {
        if json.len() > MAX_BYTES {
            return Err(BadId::Long);
        }
        if json.starts_with('"') {
            // A lone surrogate would come back as something else from a peer
            // that decodes and encodes it.
            unquote(json).ok_or(BadId::Unicode)?;
            return Ok(());
        }
        let digits = json.strip_prefix('-').unwrap_or(json);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadId::Kind);
        }
        match digits.parse::<u64>() {
            Ok(number) if number <= MAX_SAFE => Ok(()),
            _ => Err(BadId::Unsafe),
        }
    }

    pub fn raw(self) -> &'a RawValue {
        self.0
    }

    /// The number, if the id is one that Portway assigned.
    pub fn as_u64(self) -> Option<u64> {
        self.0.get().parse().ok()
    }
}

/// Byte equality: `1` and `"1"` are two ids, and so are two spellings.
impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Id<'_> {}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}
