//! Keys of entries: shown once, stored as a digest.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{DuringOperation, NewKey, StoreResult, Timestamp, key};
use config::Secret;

/// The prefix of every key that Portway generates.
pub const KEY_PREFIX: &str = "pwk_";
/// The last characters of a key, by which its owner recognizes it.
const HINT: usize = 4;
/// A shorter key (of another application) gets no hint: it would reveal too much.
const SHORTEST_HINTED: usize = 16;

/// A key as a client sends it. Has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Secret);

impl ApiKey {
    /// 256 random bits.
    pub fn random() -> StoreResult<ApiKey> {
        let bits = key::random_bits().during("make a key")?;
        Ok(ApiKey::from_bits(&bits))
    }

    /// For bits that are as good as random.
    pub fn from_bits(bits: &[u8; 32]) -> ApiKey {
        ApiKey(Secret::new(format!(
            "{KEY_PREFIX}{}",
            URL_SAFE_NO_PAD.encode(bits)
        )))
    }

    /// A key that a client sent; any text.
    pub fn given(text: &str) -> ApiKey {
        ApiKey(Secret::new(text))
    }

    /// For the one response that shows it, and for the service behind a proxy.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(self.expose())
    }

    /// The key in the form that the store keeps.
    pub fn record(&self, expires_at: Option<Timestamp>) -> NewKey {
        let text = self.expose();
        let length = text.chars().count();
        let shown = if length < SHORTEST_HINTED { 0 } else { HINT };
        NewKey {
            digest: self.digest(),
            hint: text.chars().skip(length - shown).collect(),
            expires_at,
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// SHA-256 of a key: keys are random, so nothing slower is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub fn of(key: &str) -> KeyDigest {
        KeyDigest(Sha256::digest(key).into())
    }

    pub fn matches(&self, other: &KeyDigest) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub fn from_bytes(bytes: [u8; 32]) -> KeyDigest {
        KeyDigest(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A checksum as text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hides the digest: it is of no use in a log.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

impl Serialize for KeyDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for KeyDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyDigest, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(de::Error::custom)?
            .try_into()
            .map_err(|_| de::Error::custom("a digest has 32 bytes"))?;
        Ok(KeyDigest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_a_short_key_has_no_hint() {
        for (key, hint) in [
            ("..", ""),
            ("hose", ""),
            ("fifteen letters", ""),
            ("sixteen letters!", "ers!"),
            ("十六个字符长的密钥也有一个提示的", "提示的"),
        ] {
            let shown = ApiKey::given(key).record(None).hint;
            assert!(
                shown.ends_with(hint) && shown.is_empty() == hint.is_empty(),
                "{key}: {shown}"
            );
        }
    }
}
