//! Finds the principal of a request: the admin, a user by their token, or an
//! entry by its key.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::auth::{self, Access, ShownCredential};
use super::error::ApiError;
use super::guard::RequestInfo;
use super::guesses::{Guesses, too_many};
use super::principal::Principal;
use super::users::{self, Users};
use store::{Grant, GrantLookup, KEY_PREFIX, KeyDigest, Store, Timestamp};

/// The time limit for the lookup of a key that memory is not sure of.
const ASKING: Duration = Duration::from_secs(5);

pub(super) struct Authenticator {
    pub access: Access,
    pub keys: Option<Arc<Store>>,
    pub users: Option<Users>,
    pub guesses: Guesses,
}

impl Authenticator {
    pub(super) async fn authenticate(
        &self,
        info: &RequestInfo<'_>,
        endpoint: bool,
    ) -> Result<Principal, ApiError> {
        let (text, users) = match self.access.look(info.method, info.headers, endpoint)? {
            ShownCredential::Admin => return Ok(Principal::Admin),
            ShownCredential::Key(text) => (text, None),
            ShownCredential::Other(text) => (text, self.users.as_ref()),
        };
        let mut refusal = None;
        if let Some(users) = users.filter(|_| users::is_token(text)) {
            match users.verify(text).await {
                Ok(user) => return Ok(Principal::User(user)),
                Err(why) => refusal = Some(why),
            }
        }
        // A key that was imported from elsewhere may look like a token.
        match (self.entry(text).await?, refusal) {
            (Some(grant), _) => Ok(Principal::Entry(grant)),
            (None, Some(refusal)) if refusal.is_guess() => {
                Err(self.wrong(info.remote, || refusal.into()))
            }
            (None, Some(refusal)) => Err(refusal.into()),
            // Where no credential is required, an unknown one does no harm; a
            // revoked key of ours is still refused.
            (None, None)
                if matches!(self.access, Access::Open) && !text.starts_with(KEY_PREFIX) =>
            {
                Ok(Principal::Admin)
            }
            (None, None) => Err(self.wrong(info.remote, auth::refused)),
        }
    }

    /// The error for a wrong key.
    pub(super) fn wrong(
        &self,
        from: Option<IpAddr>,
        refusal: impl FnOnce() -> ApiError,
    ) -> ApiError {
        if self.is_one_too_many(from) {
            too_many()
        } else {
            refusal()
        }
    }

    pub(super) fn is_one_too_many(&self, from: Option<IpAddr>) -> bool {
        from.is_some_and(|from| self.guesses.is_one_too_many(from))
    }

    /// The current grant of a key. Any text takes the same path through here.
    pub(super) async fn entry(&self, key: &str) -> Result<Option<Arc<Grant>>, ApiError> {
        match &self.keys {
            Some(store) => grant_of(store, key).await,
            None => Ok(None),
        }
    }
}

pub(super) async fn grant_of(store: &Store, key: &str) -> Result<Option<Arc<Grant>>, ApiError> {
    let digest = KeyDigest::of(key);
    let grant = match store.grant(&digest) {
        GrantLookup::Yes(grant) => Some(grant),
        GrantLookup::No => None,
        GrantLookup::Ask => match tokio::time::timeout(ASKING, store.ask(&digest)).await {
            Ok(asked) => asked?,
            Err(_) => return Err(ApiError::unavailable("the database does not answer")),
        },
    };
    if let Some(grant) = &grant {
        grant.touch(Timestamp::now());
    }
    Ok(grant)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use http::{HeaderMap, Method, Uri, header};
    use ring::hmac;

    use super::auth::AdminToken;
    use super::*;
    use crate::error::Code;
    use crate::guard::BodyLength;
    use config::Secret;

    const SECRET: &str = "the secret of a project, 0123456789";

    fn signed(secret: &str) -> String {
        let claims = r#"{"sub":"u","role":"authenticated","aud":"authenticated","exp":1}"#;
        let [head, claims] =
            [r#"{"alg":"HS256"}"#, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        let text = format!("{head}.{claims}");
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let seal = hmac::sign(&key, text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(seal))
    }

    /// The errors when a client sends a credential repeatedly.
    async fn shown(name: header::HeaderName, value: String) -> Vec<Code> {
        let door = Authenticator {
            access: Access::Token(AdminToken::new(Secret::new("the admin token"))),
            keys: None,
            users: Users::new(None, Some(&Secret::new(SECRET))).unwrap(),
            guesses: Guesses::default(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        let info = RequestInfo {
            method: &Method::POST,
            uri: &Uri::from_static("/mcp"),
            headers: &headers,
            length: BodyLength::None,
            local: None,
            remote: Some([192, 0, 2, 1].into()),
            matched: Some("/mcp"),
            connection: None,
            accepted: None,
        };
        let mut codes = Vec::new();
        for _ in 0..30 {
            codes.push(door.authenticate(&info, true).await.unwrap_err().code());
        }
        codes
    }

    #[tokio::test]
    async fn t_what_looks_like_a_token_is_counted_as_a_wrong_key() {
        let forged = signed("another secret");
        for (name, value) in [
            (header::AUTHORIZATION, format!("Bearer {forged}")),
            (header::HeaderName::from_static("x-api-key"), forged),
        ] {
            let codes = shown(name, value).await;
            assert_eq!(codes[0], Code::Unauthorized);
            assert_eq!(codes[29], Code::TooManyRequests);
        }
        // A token that has only expired is not a guess: its user must learn that.
        let expired = format!("Bearer {}", signed(SECRET));
        let codes = shown(header::AUTHORIZATION, expired).await;
        assert!(codes.iter().all(|code| *code == Code::Unauthorized));
    }
}
