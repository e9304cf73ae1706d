//! `Idempotency-Key`: a create that may be sent twice creates one record.

use axum::extract::FromRequestParts;
use http::request::Parts;
use sha2::{Digest, Sha256};

use super::{RecordsApi, refuse};
use crate::error::{ApiError, FieldProblem};
use store::Idempotency;

const HEADER: &str = "Idempotency-Key";
const LONGEST: usize = 255;

/// A handler's argument: the client's key, if it sent one.
pub(crate) struct IdempotencyKey(pub Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IdempotencyKey, ApiError> {
        let mut lines = parts.headers.get_all(HEADER).iter();
        let key = match (lines.next(), lines.next()) {
            (None, _) => return Ok(IdempotencyKey(None)),
            (Some(line), None) => line.to_str().ok().filter(|key| fits(key)),
            _ => None,
        };
        match key {
            Some(key) => Ok(IdempotencyKey(Some(key.to_owned()))),
            None => Err(ApiError::invalid_field(
                HEADER,
                format!("must be one header of 1 to {LONGEST} visible ASCII characters"),
            )),
        }
    }
}

fn fits(key: &str) -> bool {
    (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

impl RecordsApi {
    /// Refuses a create, unless an earlier request has made it: servers, rights
    /// and the time may have changed, and a replay gets the original response.
    pub(super) async fn refuse_new(
        &self,
        request: &CreateRequest<'_>,
        problems: Vec<FieldProblem>,
    ) -> Result<(), ApiError> {
        if !problems.is_empty()
            && let Some(once) = request.once()
            && self.store.is_repeated(once).await?
        {
            return Ok(());
        }
        refuse(problems)
    }
}

/// The parts of a create that distinguish it from another.
pub(crate) struct CreateRequest<'a> {
    pub route: &'static str,
    pub owner: &'a str,
    pub key: Option<&'a str>,
    /// The digest of its bytes: a client that repeats a request sends the same.
    pub body: [u8; 32],
}

impl<'a> CreateRequest<'a> {
    pub(super) fn new(
        route: &'static str,
        owner: &'a str,
        key: Option<&'a str>,
        body: &[u8],
    ) -> CreateRequest<'a> {
        CreateRequest {
            route,
            owner,
            key,
            body: Sha256::digest(body).into(),
        }
    }

    /// For the store, which keeps only digests of it.
    pub(super) fn once(&self) -> Option<Idempotency> {
        let key = self.key?;
        let mut digest = Sha256::new();
        for part in [self.owner, self.route, key] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Some(Idempotency {
            key: digest.finalize().into(),
            body: self.body,
        })
    }
}
