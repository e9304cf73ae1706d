//! Finds out who asks: the admin, a user by their token, or whoever holds the
//! key of an entry.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::auth::{self, Access, Shown};
use super::error::ApiError;
use super::guard::Knock;
use super::guesses::{Guesses, too_many};
use super::principal::Principal;
use super::users::{self, Users};
use store::{Grant, Granted, KEY_PREFIX, KeyDigest, Store, Timestamp};

/// What a store may take to look up a key that memory is not sure of.
const ASKING: Duration = Duration::from_secs(5);

pub(super) struct Door {
    pub access: Access,
    pub keys: Option<Arc<dyn Store>>,
    pub users: Option<Users>,
    pub guesses: Guesses,
}

impl Door {
    pub(super) async fn who(
        &self,
        knock: &Knock<'_>,
        endpoint: bool,
    ) -> Result<Principal, ApiError> {
        let text = match self.access.look(knock.method, knock.headers, endpoint)? {
            Shown::Admin => return Ok(Principal::Admin),
            Shown::Other(text) => text,
        };
        if let Some(users) = self.users.as_ref().filter(|_| users::is_token(text)) {
            return users.verify(text).await.map(Principal::User);
        }
        match self.entry(text).await? {
            Some(grant) => Ok(Principal::Entry(grant)),
            // Where none is asked for, a credential that means nothing to us
            // does no harm; a key that has been withdrawn is not such a one.
            None if matches!(self.access, Access::Open) && !text.starts_with(KEY_PREFIX) => {
                Ok(Principal::Admin)
            }
            None => Err(self.wrong(knock.remote, auth::refused)),
        }
    }

    /// What is said to a wrong key.
    pub(super) fn wrong(&self, from: Option<IpAddr>, refusal: fn() -> ApiError) -> ApiError {
        match self.is_one_too_many(from) {
            true => too_many(),
            false => refusal(),
        }
    }

    pub(super) fn is_one_too_many(&self, from: Option<IpAddr>) -> bool {
        from.is_some_and(|from| self.guesses.is_one_too_many(from))
    }

    /// What a key opens now. Any text takes the same way through here.
    pub(super) async fn entry(&self, key: &str) -> Result<Option<Arc<Grant>>, ApiError> {
        let Some(store) = &self.keys else {
            return Ok(None);
        };
        let digest = KeyDigest::of(key);
        let grant = match store.grant(&digest) {
            Granted::Yes(grant) => Some(grant),
            Granted::No => None,
            Granted::Ask => match tokio::time::timeout(ASKING, store.ask(&digest)).await {
                Ok(asked) => asked?,
                Err(_) => return Err(ApiError::unavailable("the database does not answer")),
            },
        };
        if let Some(grant) = &grant {
            grant.touch(Timestamp::now());
        }
        Ok(grant)
    }
}
