//! The endpoints and their callers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::ability::Abilities;
use super::session::Session;
use fleet::Slot;
use store::{ADMIN, EntryId, Grant};

/// The tools, resources and prompts that an endpoint shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All servers together, names made unique; narrowed by a named filter.
    Everything { filter: Option<Arc<str>> },
    /// One server as it is; narrowed by a named filter.
    Server {
        name: Arc<str>,
        filter: Option<Arc<str>>,
    },
    /// The tools of one entry, under its own names; narrowed by a named filter.
    Entry(EntryScope),
}

impl Scope {
    /// One server, with all that it has.
    pub fn server(name: Arc<str>) -> Scope {
        Scope::Server { name, filter: None }
    }

    /// The server of an endpoint that shows all of one server. Some servers
    /// have more than they list, so unlisted names and URIs are passed on.
    pub(super) fn whole_server(&self) -> Option<&Arc<str>> {
        match self {
            Scope::Server { name, filter: None } => Some(name),
            _ => None,
        }
    }

    pub(super) fn grant(&self) -> Option<&Arc<Grant>> {
        match self {
            Scope::Entry(entry) => Some(&entry.grant),
            _ => None,
        }
    }
}

/// An entry as a request found it. Two of the same entry and filter are equal,
/// whatever has changed about the entry in between.
#[derive(Clone, Debug)]
pub struct EntryScope {
    grant: Arc<Grant>,
    filter: Option<Arc<str>>,
}

impl EntryScope {
    /// Narrowed by a named filter.
    pub fn narrowed(grant: Arc<Grant>, filter: Option<Arc<str>>) -> EntryScope {
        EntryScope { grant, filter }
    }

    pub fn grant(&self) -> &Arc<Grant> {
        &self.grant
    }

    pub fn filter(&self) -> Option<&Arc<str>> {
        self.filter.as_ref()
    }

    /// Identifies the endpoint.
    pub(super) fn key(&self) -> (EntryId, Option<Arc<str>>) {
        (self.grant.entry, self.filter.clone())
    }
}

impl PartialEq for EntryScope {
    fn eq(&self, other: &EntryScope) -> bool {
        self.key() == other.key()
    }
}

impl Eq for EntryScope {}

impl Hash for EntryScope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// The principal of a request, and the endpoint it uses.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Opaque and stable: `admin`, `entry:12`. Nothing of one principal is
    /// ever shown to another.
    pub principal: Arc<str>,
    pub scope: Scope,
}

impl Caller {
    pub fn entry(grant: Arc<Grant>) -> Caller {
        Caller::narrowed(grant, None)
    }

    /// The user that owns the entry, or the admin.
    pub fn owner(&self) -> &Arc<str> {
        match &self.scope {
            Scope::Entry(entry) => &entry.grant.owner,
            Scope::Everything { .. } | Scope::Server { .. } => &self.principal,
        }
    }

    /// The slot in which servers serve the caller's requests.
    pub(super) fn slot(&self, abilities: Abilities, session: Option<&Session>) -> Slot {
        Slot {
            principal: self.principal.clone(),
            owner: self.owner().clone(),
            session: session.map(Session::key),
            ended: session.map(|session| session.ended().clone()),
            capabilities: abilities.legacy(),
        }
    }

    /// The key of the caller's share of sessions: the user with all entries, or
    /// the principal.
    pub(super) fn share(&self) -> &Arc<str> {
        match self.owner() {
            owner if **owner != *ADMIN => owner,
            _ => &self.principal,
        }
    }

    /// An entry, narrowed by a named filter.
    pub fn narrowed(grant: Arc<Grant>, filter: Option<Arc<str>>) -> Caller {
        Caller {
            principal: grant.principal.clone(),
            scope: Scope::Entry(EntryScope::narrowed(grant, filter)),
        }
    }
}
