//! What an endpoint shows, and to whom.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::store::Grant;

/// What an endpoint shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All servers together, names made unique; narrowed by a named filter.
    Everything { filter: Option<Arc<str>> },
    /// One server as it is.
    Server(Arc<str>),
    /// What one entry was given, under the names it was given.
    Entry(EntryScope),
}

impl Scope {
    pub(super) fn grant(&self) -> Option<&Arc<Grant>> {
        match self {
            Scope::Entry(entry) => Some(&entry.0),
            _ => None,
        }
    }
}

/// An entry as a request found it. Two of one entry are the same endpoint,
/// whatever has changed about it in between.
#[derive(Clone, Debug)]
pub struct EntryScope(Arc<Grant>);

impl EntryScope {
    pub fn new(grant: Arc<Grant>) -> EntryScope {
        EntryScope(grant)
    }

    pub fn grant(&self) -> &Arc<Grant> {
        &self.0
    }
}

impl PartialEq for EntryScope {
    fn eq(&self, other: &EntryScope) -> bool {
        self.0.entry == other.0.entry
    }
}

impl Eq for EntryScope {}

impl Hash for EntryScope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.entry.hash(state);
    }
}

/// Who asks, and through which endpoint.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Opaque and stable: `admin`, `entry:12`. Nothing of one principal is
    /// ever shown to another.
    pub principal: Arc<str>,
    pub scope: Scope,
}

impl Caller {
    pub fn entry(grant: Arc<Grant>) -> Caller {
        Caller {
            principal: grant.principal.clone(),
            scope: Scope::Entry(EntryScope::new(grant)),
        }
    }
}
