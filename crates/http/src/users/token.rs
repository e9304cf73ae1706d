//! A user's token: three parts, of which the last signs the others.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::keys::KeyType;
use store::ADMIN;

/// Real tokens have one or two thousand bytes.
const LONGEST: usize = 8 * 1024;
/// The allowed difference of clocks, in seconds.
const LEEWAY: f64 = 30.0;
/// The project's audience and role of users who have signed in.
const AUTHENTICATED: &str = "authenticated";
const LONGEST_ID: usize = 128;

/// Why a token is refused; for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token cannot be read")]
    Form,
    #[error("the token's algorithm is not one of the keys we have")]
    Algorithm,
    #[error("the token names no key that we know")]
    Key,
    #[error("the project's keys cannot be fetched")]
    NoKeys,
    #[error("the token's signature is wrong")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    TooEarly,
    #[error("the token was issued by somebody else")]
    Issuer,
    #[error("the token is for somebody else")]
    Audience,
    #[error("the token's role is not that of a user")]
    Role,
    #[error("the token names no user")]
    User,
}

/// The algorithm that a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Hs256,
    Published(KeyType),
}

pub(super) struct Token<'a> {
    /// The bytes that were signed.
    pub signed: &'a str,
    pub signature: Vec<u8>,
    pub header: Header,
    claims: &'a str,
}

#[derive(Deserialize)]
pub(super) struct Header {
    alg: String,
    pub kid: Option<String>,
    /// Extensions that must be understood; we support none.
    crit: Option<serde::de::IgnoredAny>,
}

impl<'a> Token<'a> {
    pub(super) fn read(text: &'a str) -> Result<Token<'a>, TokenError> {
        if text.len() > LONGEST {
            return Err(TokenError::Form);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Form)?;
        let header: Header = part(header)?;
        if header.crit.is_some() {
            return Err(TokenError::Form);
        }
        Ok(Token {
            signed,
            signature: bytes(signature)?,
            header,
            claims,
        })
    }

    pub(super) fn algorithm(&self) -> Result<Algorithm, TokenError> {
        match self.header.alg.as_str() {
            "HS256" => Ok(Algorithm::Hs256),
            "ES256" => Ok(Algorithm::Published(KeyType::Es256)),
            "RS256" => Ok(Algorithm::Published(KeyType::Rs256)),
            _ => Err(TokenError::Algorithm),
        }
    }

    /// Untrusted until the signature has been verified.
    pub(super) fn claims(&self) -> Result<Claims, TokenError> {
        part(self.claims)
    }
}

fn bytes(part: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Form)
}

fn part<T: DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    serde_json::from_slice(&bytes(part)?).map_err(|_| TokenError::Form)
}

#[derive(Deserialize)]
pub(super) struct Claims {
    exp: Option<f64>,
    nbf: Option<f64>,
    iss: Option<String>,
    aud: Option<Audience>,
    role: Option<String>,
    sub: Option<String>,
    /// Any client can get such a token.
    is_anonymous: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Claims {
    /// The user at `now`, in seconds since 1970.
    pub(super) fn user(self, now: f64, issuer: Option<&str>) -> Result<Arc<str>, TokenError> {
        // Also if it is missing, or is not a comparable number.
        if !self.exp.is_some_and(|exp| now < exp + LEEWAY) {
            return Err(TokenError::Expired);
        }
        if self.nbf.is_some_and(|nbf| now < nbf - LEEWAY) {
            return Err(TokenError::TooEarly);
        }
        if issuer.is_some_and(|issuer| self.iss.as_deref() != Some(issuer)) {
            return Err(TokenError::Issuer);
        }
        let ours = match &self.aud {
            Some(Audience::One(one)) => one == AUTHENTICATED,
            Some(Audience::Many(many)) => many.iter().any(|one| one == AUTHENTICATED),
            None => false,
        };
        if !ours {
            return Err(TokenError::Audience);
        }
        if self.is_anonymous == Some(true) {
            return Err(TokenError::Role);
        }
        // `anon` and `service_role` are keys of applications.
        if self.role.is_some_and(|role| role != AUTHENTICATED) {
            return Err(TokenError::Role);
        }
        let fits = |user: &String| {
            (1..=LONGEST_ID).contains(&user.len())
                && user.bytes().all(|byte| byte.is_ascii_graphic())
                && !user.eq_ignore_ascii_case(ADMIN)
        };
        self.sub
            .filter(fits)
            .map(Into::into)
            .ok_or(TokenError::User)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: f64 = 1_800_000_000.0;
    const ISSUER: &str = "https://x.supabase.co/auth/v1";

    fn verdict(change: &[(&str, Value)]) -> Result<Arc<str>, TokenError> {
        let mut claims = json!({
            "exp": NOW + 60.0, "iss": ISSUER, "aud": "authenticated",
            "role": "authenticated", "sub": "u-1", "email": "a@b.example",
        });
        for (name, value) in change {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(*name),
                value => claims
                    .as_object_mut()
                    .unwrap()
                    .insert((*name).to_owned(), value.clone()),
            };
        }
        let claims: Claims = serde_json::from_value(claims).map_err(|_| TokenError::Form)?;
        claims.user(NOW, Some(ISSUER))
    }

    #[test]
    fn e2_claims_say_who_it_is_and_until_when() {
        assert_eq!(&*verdict(&[]).unwrap(), "u-1");
        let good = [
            ("exp", json!(NOW - 29.0)),
            ("exp", json!(NOW as u64 + 1)),
            ("nbf", json!(NOW + 29.0)),
            ("aud", json!(["other", "authenticated"])),
            ("role", Value::Null),
        ];
        for (name, value) in good {
            assert!(verdict(&[(name, value.clone())]).is_ok(), "{name} {value}");
        }
        let bad = [
            ("exp", json!(NOW - 31.0), TokenError::Expired),
            ("exp", Value::Null, TokenError::Expired),
            ("exp", json!("9999999999"), TokenError::Form),
            ("nbf", json!(NOW + 31.0), TokenError::TooEarly),
            (
                "iss",
                json!("https://y.supabase.co/auth/v1"),
                TokenError::Issuer,
            ),
            ("iss", Value::Null, TokenError::Issuer),
            ("aud", json!("anon"), TokenError::Audience),
            ("aud", json!([]), TokenError::Audience),
            ("aud", Value::Null, TokenError::Audience),
            ("role", json!("anon"), TokenError::Role),
            ("role", json!("service_role"), TokenError::Role),
            ("is_anonymous", json!(true), TokenError::Role),
            ("sub", Value::Null, TokenError::User),
            ("sub", json!(""), TokenError::User),
            ("sub", json!("Admin"), TokenError::User),
            ("sub", json!("a b"), TokenError::User),
            ("sub", json!("x".repeat(129)), TokenError::User),
            ("sub", json!(7), TokenError::Form),
        ];
        for (name, value, why) in bad {
            assert_eq!(
                verdict(&[(name, value.clone())]),
                Err(why),
                "{name} {value}"
            );
        }
    }

    #[test]
    fn e2_a_token_has_three_parts_of_a_bounded_size() {
        let header = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let read = |text: &str| Token::read(text).map(|token| token.algorithm());
        let good = format!("{}.e30.AA", header(r#"{"alg":"ES256","typ":"JWT"}"#));
        assert_eq!(read(&good), Ok(Ok(Algorithm::Published(KeyType::Es256))));
        for alg in ["none", "None", "HS384", "PS256", "EdDSA", "es256", ""] {
            let text = format!("{}.e30.", header(&format!(r#"{{"alg":"{alg}"}}"#)));
            assert_eq!(read(&text), Ok(Err(TokenError::Algorithm)), "{alg}");
        }
        let bad = [
            "..".to_owned(),
            "a.b".to_owned(),
            format!("{}.e30.!", header(r#"{"alg":"ES256"}"#)),
            format!("{}=.e30.AA", header(r#"{"alg":"ES256"}"#)),
            format!("{}.e30.AA", header(r#"{"alg":"ES256","alg":"HS256"}"#)),
            format!("{}.e30.AA", header(r#"{"alg":"ES256","crit":["exp"]}"#)),
            format!("{}.e30.AA", header(r#"{"kid":"1"}"#)),
            format!("{}.e30.AA", header("7")),
            format!("{good}{}", "A".repeat(LONGEST)),
        ];
        for text in bad {
            assert_eq!(read(&text), Err(TokenError::Form), "{text}");
        }
    }
}
