//! The entity tag of a server: names the definition that an edit is based on.

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use super::coding::items;
use super::error::ApiError;
use config::view::definition_fields;
use config::{Secret, ServerSpec};

/// Makes tags. Definitions hold secrets, so a reader could use a plain hash of
/// one to test guesses.
#[derive(Clone)]
pub struct Tags([u8; 32]);

impl Tags {
    pub fn new(secret: &Secret) -> Tags {
        let key = Sha256::new()
            .chain_update(b"portway entity tags\0")
            .chain_update(secret.expose())
            .finalize();
        Tags(key.into())
    }

    /// The tag, with its quotes.
    pub fn of(&self, spec: &ServerSpec) -> String {
        let spec = serde_json::Value::Object(definition_fields(spec)).to_string();
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(spec)
            .finalize();
        format!("\"{}\"", hex(&digest[..16]))
    }
}

/// The tags of an `If-Match` header.
pub(super) struct IfMatch(Option<Vec<String>>);

impl IfMatch {
    pub(crate) fn given(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn fits(&self, tag: &str) -> bool {
        let tags = self.0.as_ref();
        tags.is_none_or(|tags| tags.iter().any(|one| one == tag || one == "*"))
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IfMatch, ApiError> {
        let given = parts.headers.contains_key(header::IF_MATCH);
        let tags = || items(&parts.headers, &header::IF_MATCH).map(str::to_owned);
        Ok(IfMatch(given.then(|| tags().collect())))
    }
}

/// Whether `If-None-Match` names a tag, compared weakly.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let mut known = items(headers, &header::IF_NONE_MATCH);
    known.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
