//! Users of a Supabase project, identified by the tokens it signs for them.
//!
//! The type of the key we hold decides the algorithm, never the token itself:
//! the project's secret is for HS256 alone, and a published key for the one
//! algorithm of its type.

mod jwks;
mod keys;
mod token;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;
use upstream::ClientError;
use url::Url;

use super::auth;
use super::error::ApiError;
use config::Secret;
use jwks::Jwks;
use token::{Algorithm, Token, TokenError};

const KEYS: &str = "auth/v1/.well-known/jwks.json";
const ISSUER: &str = "auth/v1";

pub struct Users {
    secret: Option<hmac::Key>,
    project: Option<UserProject>,
}

struct UserProject {
    issuer: String,
    keys: Arc<Jwks>,
}

/// Whether a credential has the form of a user's token.
pub(super) fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl Users {
    /// `None` if the settings name no way to identify users.
    pub fn new(
        project: Option<&Url>,
        secret: Option<&Secret>,
    ) -> Result<Option<Users>, ClientError> {
        let project = match project {
            Some(url) => Some(UserProject {
                issuer: below(url, ISSUER),
                keys: Jwks::new(url, below(url, KEYS))?,
            }),
            None => None,
        };
        let hs256 = |secret: &Secret| hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let users = Users {
            secret: secret.map(hs256),
            project,
        };
        Ok((users.secret.is_some() || users.project.is_some()).then_some(users))
    }

    /// The id of the user of a token.
    pub(super) async fn verify(&self, text: &str) -> Result<Arc<str>, TokenError> {
        let token = Token::read(text)?;
        self.check_signature(&token).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0.0, |since| since.as_secs_f64());
        let issuer = self.project.as_ref().map(|project| project.issuer.as_str());
        token.claims()?.user(now, issuer)
    }

    async fn check_signature(&self, token: &Token<'_>) -> Result<(), TokenError> {
        let good = match token.algorithm()? {
            Algorithm::Hs256 => {
                let secret = self.secret.as_ref().ok_or(TokenError::Algorithm)?;
                hmac::verify(secret, token.signed.as_bytes(), &token.signature).is_ok()
            }
            Algorithm::Published(kind) => {
                let project = self.project.as_ref().ok_or(TokenError::Algorithm)?;
                let id = token.header.kid.as_deref().ok_or(TokenError::Key)?;
                let key = project.keys.find(id, kind).await?;
                key.verifies(token.signed.as_bytes(), &token.signature)
            }
        };
        good.then_some(()).ok_or(TokenError::Signature)
    }
}

impl TokenError {
    /// Whether nothing proves that the project signed it.
    pub(super) fn is_guess(&self) -> bool {
        matches!(
            self,
            TokenError::Form | TokenError::Algorithm | TokenError::Key | TokenError::Signature
        )
    }
}

impl From<TokenError> for ApiError {
    fn from(why: TokenError) -> ApiError {
        match why {
            TokenError::NoKeys => {
                ApiError::unavailable("users' tokens cannot be checked now; try again")
            }
            why => auth::refused().with_cause(why),
        }
    }
}

/// A path below the project's URL, which may or may not end with a slash.
fn below(url: &Url, path: &str) -> String {
    format!("{}/{path}", url.as_str().trim_end_matches('/'))
}
