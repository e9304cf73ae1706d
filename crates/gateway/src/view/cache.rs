//! The views in use, each kept until its sources change.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::View;
use super::entry_cache::EntryViews;
use crate::control::{self, Control};
use crate::{Scope, Seal, UserServers};
use config::filters::Filters;
use fleet::{Offer, Snapshot};

pub struct Views {
    filters: watch::Receiver<Arc<Filters>>,
    control: Option<Arc<Control>>,
    entries: EntryViews,
    /// The lock is held for a lookup, never while a view is made.
    cached: Mutex<HashMap<Scope, CachedView>>,
}

struct CachedView {
    basis: ViewBasis,
    view: Arc<View>,
}

/// The sources of a view.
struct ViewBasis {
    /// The snapshot's version of all offers.
    offers: u64,
    /// The offer of the only server, if it has any; `None` for all servers.
    only: Option<Option<Arc<Offer>>>,
    /// `None` where no filter narrows the view.
    filters: Option<Arc<Filters>>,
}

impl ViewBasis {
    /// Whether a view made of this is still valid. Of two requests at once, one
    /// may have an older snapshot and gets the newer view.
    fn holds(&self, now: &ViewBasis) -> bool {
        let filters = |basis: &ViewBasis| basis.filters.as_ref().map(Arc::as_ptr);
        let offers = match (&self.only, &now.only) {
            (None, None) => self.offers >= now.offers,
            (Some(Some(old)), Some(Some(new))) => Arc::ptr_eq(old, new) || self.offers > now.offers,
            _ => false,
        };
        offers && filters(self) == filters(now)
    }
}

impl Views {
    pub fn new(users: UserServers, seal: Arc<Seal>, control: Option<Arc<Control>>) -> Views {
        Views {
            filters: users.filters(),
            entries: EntryViews::new(control.clone(), users, seal),
            control,
            cached: Mutex::default(),
        }
    }

    /// How many bytes the views of entries may take together.
    pub(crate) fn set_room(&self, bytes: usize) {
        self.entries.set_room(bytes);
    }

    pub(crate) fn control(&self) -> Option<&Arc<Control>> {
        self.control.as_ref()
    }

    /// The view of a scope on what runs now; made anew only when a catalog or
    /// the filters have changed.
    pub(crate) fn get(&self, scope: &Scope, snapshot: &Arc<Snapshot>) -> Arc<View> {
        let (only, filter) = match scope {
            Scope::Everything { filter } => (None, filter),
            Scope::Server { name, filter } => (Some(name), filter),
            Scope::Entry(entry) => return self.entries.get(entry, snapshot),
        };
        let filters = self.filters.borrow().clone();
        let control = self.control.as_ref();
        let whole_server = only.is_some() && filter.is_none();
        let basis = ViewBasis {
            offers: snapshot.offers,
            only: only.map(|name| match snapshot.find(name) {
                Some(view) => view.offer.clone(),
                None => control::offer(snapshot, control, name).cloned(),
            }),
            filters: (!whole_server).then(|| filters.clone()),
        };
        if let Some(cached) = self.cached.lock().get(scope)
            && cached.basis.holds(&basis)
        {
            return cached.view.clone();
        }
        let filter = if whole_server {
            Ok(None)
        } else {
            filters.find(filter.as_deref())
        };
        let view = Arc::new(match (only, filter) {
            (_, Err(error)) => View::unfiltered(&error),
            (Some(name), Ok(filter)) => View::of_server(name, snapshot, filter, control),
            (None, Ok(filter)) => View::of_all(snapshot, filter, control),
        });
        let fresh = CachedView {
            basis,
            view: view.clone(),
        };
        self.put(scope, snapshot, &filters, fresh);
        view
    }

    fn put(&self, scope: &Scope, snapshot: &Snapshot, filters: &Filters, fresh: CachedView) {
        let mut cached = self.cached.lock();
        let is_known = |filter: &Option<Arc<str>>| {
            let mut filter = filter.iter();
            filter.all(|name| filters.named.contains_key(&**name))
        };
        cached.retain(|scope, _| match scope {
            Scope::Everything { filter } => is_known(filter),
            Scope::Server { name, filter } => {
                let there = snapshot.find(name).is_some() || **name == *control::NAME;
                there && is_known(filter)
            }
            Scope::Entry(_) => false,
        });
        // Scopes come from outside: those that show nothing are not kept.
        if fresh.view.fault.is_some() {
            cached.remove(scope);
        } else if !cached
            .get(scope)
            .is_some_and(|cached| cached.basis.holds(&fresh.basis))
        {
            cached.insert(scope.clone(), fresh);
        }
    }
}

#[cfg(test)]
impl Views {
    pub(super) fn filtered(filters: watch::Receiver<Arc<Filters>>) -> Views {
        let secret = config::Secret::new("a secret of thirty-two characters");
        let users = UserServers::new(None, filters);
        Views::new(users, Arc::new(Seal::new(&secret)), None)
    }
}

/// Without any filter.
#[cfg(test)]
impl Default for Views {
    fn default() -> Views {
        Views::filtered(watch::channel(Arc::default()).1)
    }
}
