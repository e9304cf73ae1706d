//! The entity tag of a server: names the definition that an edit is based on.

use axum::extract::FromRequestParts;
use http::header;
use http::request::Parts;
use sha2::{Digest, Sha256};

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
        let hex: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        format!("\"{hex}\"")
    }
}

/// The tags of an `If-Match` header.
pub(super) struct IfMatch(Option<Vec<String>>);

impl IfMatch {
    pub(crate) fn given(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn fits(&self, tag: &str) -> bool {
        match &self.0 {
            Some(tags) => tags.iter().any(|one| one == tag || one == "*"),
            None => true,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IfMatch, ApiError> {
        if !parts.headers.contains_key(header::IF_MATCH) {
            return Ok(IfMatch(None));
        }
        let lines = parts.headers.get_all(header::IF_MATCH).iter();
        let words = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .map(|tag| tag.trim().to_owned());
        Ok(IfMatch(Some(words.collect())))
    }
}
