//! The servers that users may bind (SPEC E2): those in `userServers` of
//! `.portway.json`, or else in the setting `SUPABASE_USER_SERVERS`; all if
//! neither is given, as before there was a list. The admin may use all.
//!
//! The list is checked when a tool is bound and at every request of an entry,
//! so a server that is removed from it stops serving users' entries at once. It
//! is not part of definitions: those are imported and edited through the API,
//! and a definition must not open itself to users.

use std::sync::Arc;

use tokio::sync::watch;

use config::filters::Filters;
use config::globs;
use store::ADMIN;

#[derive(Clone)]
pub struct UserServers {
    setting: Option<Arc<[String]>>,
    filters: watch::Receiver<Arc<Filters>>,
}

impl UserServers {
    pub fn new(setting: Option<&[String]>, filters: watch::Receiver<Arc<Filters>>) -> UserServers {
        UserServers {
            setting: setting.map(Into::into),
            filters,
        }
    }

    /// Whether an owner's records and entries may use a server.
    pub fn may_use(&self, owner: &str, server: &str) -> bool {
        if owner == ADMIN {
            return true;
        }
        let filters = self.filters.borrow();
        // An unreadable file may list fewer servers.
        if filters.unreadable.is_some() {
            return false;
        }
        let listed = filters.user_servers.as_deref().or(self.setting.as_deref());
        listed.is_none_or(|listed| globs::matches_any(listed, server))
    }

    /// The file that may list them.
    pub(super) fn filters(&self) -> watch::Receiver<Arc<Filters>> {
        self.filters.clone()
    }

    /// The file that the view of an entry depends on; `None` for an entry of the
    /// admin without a filter.
    pub(super) fn basis(&self, owner: &str, narrowed: bool) -> Option<Arc<Filters>> {
        (narrowed || owner != ADMIN).then(|| self.filters.borrow().clone())
    }

    /// Whether nothing lists the servers that are open to users.
    pub fn is_unlisted(&self) -> bool {
        self.setting.is_none() && self.filters.borrow().user_servers.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::problem::Problem;

    #[test]
    fn e2_a_list_confines_users_to_its_servers() {
        let (file, filters) = watch::channel(Arc::new(Filters::default()));
        let unlisted = UserServers::new(None, filters.clone());
        assert!(unlisted.is_unlisted() && unlisted.may_use("ann", "fs"));
        let closed = UserServers::new(Some(&[]), filters.clone());
        assert!(!closed.is_unlisted() && !closed.may_use("ann", "fs"));
        assert!(closed.may_use(ADMIN, "fs"));
        let listed = ["fs".to_owned(), "gh-*".to_owned()];
        let users = UserServers::new(Some(&listed), filters);
        for (server, open) in [("fs", true), ("gh-x", true), ("fsx", false), ("db", false)] {
            assert_eq!(users.may_use("ann", server), open, "{server}");
        }
        // If the file has a list, it takes effect at once.
        let listed = |user_servers, unreadable| Filters {
            user_servers,
            unreadable,
            ..Filters::default()
        };
        file.send_replace(Arc::new(listed(Some(vec!["db".into()]), None)));
        assert!(users.may_use("ann", "db") && !users.may_use("ann", "fs"));
        file.send_replace(Arc::new(listed(Some(Vec::new()), None)));
        assert!(!users.may_use("ann", "db"));
        let problem = Problem::new("", "cannot be read");
        file.send_replace(Arc::new(listed(None, Some(problem))));
        assert!(!users.may_use("ann", "fs") && !unlisted.may_use("ann", "fs"));
        assert!(users.may_use(ADMIN, "fs"));
    }
}
