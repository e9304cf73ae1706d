//! The principal of a request, and its rights.

use std::sync::{Arc, LazyLock};

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::api::{AccessRule, access_rule};
use super::auth;
use super::error::ApiError;
use store::{Grant, OwnerScope};

/// There is no default: it exists only where a credential was checked, or where
/// `--no-auth` requires none.
#[derive(Clone, Debug)]
pub enum Principal {
    /// May do everything.
    Admin,
    /// Has records of their own, and sees no others.
    User(Arc<str>),
    /// Holds the key of an entry, and may use its tools.
    Entry(Arc<Grant>),
}

static ADMIN: LazyLock<Arc<str>> = LazyLock::new(|| store::ADMIN.into());

impl Principal {
    /// The records that the principal may read and change.
    pub fn owner_scope(&self) -> Result<OwnerScope, ApiError> {
        match self {
            Principal::Admin => Ok(OwnerScope::Everyone),
            Principal::User(user) => Ok(OwnerScope::Only(user.clone())),
            Principal::Entry(_) => Err(not_here()),
        }
    }

    /// The records that the principal may read, optionally of one user.
    pub(crate) fn owner_scope_of(&self, user: Option<&str>) -> Result<OwnerScope, ApiError> {
        let Some(user) = user else {
            return self.owner_scope();
        };
        match self.owner_scope()? {
            OwnerScope::Only(own) if *own != *user => Err(ApiError::forbidden(
                "user_id: only the admin can list the records of other users",
            )
            .with_field("user_id")),
            _ => Ok(OwnerScope::Only(user.into())),
        }
    }

    /// The owner of records that the principal creates.
    pub fn owner(&self) -> Arc<str> {
        match self {
            Principal::Admin => ADMIN.clone(),
            Principal::User(user) => user.clone(),
            Principal::Entry(grant) => grant.owner.clone(),
        }
    }

    /// Whether the principal may request a path, as the router spells it. The
    /// guard checks this for every request; handlers need not.
    pub(super) fn may_ask(&self, matched: Option<&str>) -> Result<(), ApiError> {
        let needed = match self {
            Principal::Admin => return Ok(()),
            Principal::User(_) => AccessRule::Users,
            Principal::Entry(_) => AccessRule::EntryKeys,
        };
        let may = matched.is_some_and(|path| access_rule(path) == needed);
        if may { Ok(()) } else { Err(not_here()) }
    }
}

pub(super) fn not_here() -> ApiError {
    ApiError::forbidden("this credential is not for this path")
}

/// A handler's argument. The guard has set it; a request that bypassed the
/// guard is refused.
impl<S: Sync> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Principal, ApiError> {
        parts.extensions.get().cloned().ok_or_else(auth::refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn e8_each_goes_where_they_may() {
        let user = Principal::User("u".into());
        let table = [
            ("/api/v1/tools", true),
            ("/api/v1/mcp_v2/{id}", true),
            ("/api/mcp/servers", false),
            ("/mcp", false),
            ("/sse", false),
            ("/servers/{server}/mcp", false),
            ("/api/mcp/tools", false),
            ("/api/mcp/tools/{name}/call", false),
            ("/api/mcp/resources/read", false),
            ("/api/mcp/prompts", false),
        ];
        for (path, may) in table {
            assert_eq!(user.may_ask(Some(path)).is_ok(), may, "{path}");
            assert!(Principal::Admin.may_ask(Some(path)).is_ok());
        }
        let refused = user.may_ask(None).unwrap_err();
        assert_eq!(refused.code(), Code::Forbidden);
    }

    #[test]
    fn e2_a_user_has_only_their_own() {
        let user = Principal::User("u".into());
        assert_eq!(user.owner_scope().unwrap(), OwnerScope::Only("u".into()));
        assert_eq!(&*user.owner(), "u");
        assert_eq!(
            Principal::Admin.owner_scope().unwrap(),
            OwnerScope::Everyone
        );
        assert_eq!(&*Principal::Admin.owner(), "admin");
        for who in [&user, &Principal::Admin] {
            let only = who.owner_scope_of(Some("u")).unwrap();
            assert_eq!(only, OwnerScope::Only("u".into()));
        }
        assert!(user.owner_scope_of(Some("v")).is_err());
    }
}
