//! The views in use, each kept until what it was made of has changed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::View;
use super::shelf::{EntryViews, ROOM};
use crate::control::{self, Control};
use crate::{Scope, Seal, UserServers};
use config::filters::Filters;
use fleet::{Offer, Snapshot};

pub struct Views {
    filters: watch::Receiver<Arc<Filters>>,
    seal: Arc<Seal>,
    control: Option<Arc<Control>>,
    entries: EntryViews,
    /// The lock is held for a lookup, never while a view is made.
    kept: Mutex<HashMap<Scope, CachedView>>,
}

struct CachedView {
    basis: ViewBasis,
    view: Arc<View>,
}

/// What a view is made of.
struct ViewBasis {
    /// The snapshot's.
    offers: u64,
    part: ViewSource,
}

enum ViewSource {
    /// All servers, narrowed by these.
    All(Arc<Filters>),
    /// One server, if it has anything to offer, and what narrows it.
    One(Option<Arc<Offer>>, Option<Arc<Filters>>),
}

impl ViewBasis {
    fn of(
        scope: &Scope,
        snapshot: &Snapshot,
        filters: &Arc<Filters>,
        control: Option<&Arc<Control>>,
    ) -> ViewBasis {
        let part = match scope {
            Scope::Everything { .. } => ViewSource::All(filters.clone()),
            Scope::Server { name, filter } => {
                let offer = match snapshot.find(name) {
                    Some(view) => view.offer.as_ref(),
                    None => control::offer(snapshot, control, name),
                };
                let filters = filter.as_ref().map(|_| filters.clone());
                ViewSource::One(offer.cloned(), filters)
            }
            // Kept on a shelf of their own.
            Scope::Entry(_) => ViewSource::One(None, None),
        };
        ViewBasis {
            offers: snapshot.offers,
            part,
        }
    }

    /// Whether what was made of this is still true. Of two that ask at once,
    /// one may come with an older snapshot and gets the newer view.
    fn holds(&self, now: &ViewBasis) -> bool {
        match (&self.part, &now.part) {
            (ViewSource::All(old), ViewSource::All(new)) => {
                Arc::ptr_eq(old, new) && self.offers >= now.offers
            }
            (ViewSource::One(Some(old), narrowed), ViewSource::One(Some(new), narrows)) => {
                let (narrowed, narrows) = (narrowed.as_ref(), narrows.as_ref());
                narrowed.map(Arc::as_ptr) == narrows.map(Arc::as_ptr)
                    && (Arc::ptr_eq(old, new) || self.offers > now.offers)
            }
            _ => false,
        }
    }
}

impl Views {
    pub fn new(users: UserServers, seal: Arc<Seal>, control: Option<Arc<Control>>) -> Views {
        Views {
            filters: users.filters(),
            seal,
            entries: EntryViews::new(ROOM, control.clone(), users),
            control,
            kept: Mutex::default(),
        }
    }

    /// How many bytes the views of entries may take together.
    pub(crate) fn set_room(&self, bytes: usize) {
        self.entries.set_room(bytes);
    }

    /// Whether Portway's own tools can be shown at all.
    pub fn has_control(&self) -> bool {
        self.control.is_some()
    }

    pub(crate) fn control(&self) -> Option<&Arc<Control>> {
        self.control.as_ref()
    }

    /// The view of a scope on what runs now; made anew only when a catalog or
    /// the filters have changed.
    pub fn get(&self, scope: &Scope, snapshot: &Arc<Snapshot>) -> Arc<View> {
        if let Scope::Entry(entry) = scope {
            return self.entries.get(entry, &self.seal, snapshot);
        }
        let filters = self.filters.borrow().clone();
        let control = self.control.as_ref();
        let basis = ViewBasis::of(scope, snapshot, &filters, control);
        if let Some(kept) = self.kept.lock().get(scope)
            && kept.basis.holds(&basis)
        {
            return kept.view.clone();
        }
        let view = Arc::new(match scope {
            Scope::Server { name, filter: None } => View::of_server(name, snapshot, None, control),
            Scope::Server {
                name,
                filter: Some(filter),
            } => match filters.find(Some(filter)) {
                Ok(filter) => View::of_server(name, snapshot, filter, control),
                Err(error) => View::unfiltered(&error),
            },
            Scope::Everything { filter } => {
                View::of_all(snapshot, filters.find(filter.as_deref()), control)
            }
            Scope::Entry(entry) => return self.entries.get(entry, &self.seal, snapshot),
        });
        self.keep(
            scope,
            snapshot,
            &filters,
            CachedView {
                basis,
                view: view.clone(),
            },
        );
        view
    }

    fn keep(&self, scope: &Scope, snapshot: &Snapshot, filters: &Filters, fresh: CachedView) {
        let mut kept = self.kept.lock();
        let is_known = |filter: &Option<Arc<str>>| {
            let mut filter = filter.iter();
            filter.all(|name| filters.named.contains_key(&**name))
        };
        kept.retain(|scope, _| match scope {
            Scope::Everything { filter } => is_known(filter),
            Scope::Server { name, filter } => {
                let there = snapshot.find(name).is_some() || **name == *control::NAME;
                there && is_known(filter)
            }
            Scope::Entry(_) => false,
        });
        // Scopes come from outside: those that show nothing are not kept.
        if fresh.view.fault.is_some() {
            kept.remove(scope);
        } else if !kept
            .get(scope)
            .is_some_and(|kept| kept.basis.holds(&fresh.basis))
        {
            kept.insert(scope.clone(), fresh);
        }
    }
}

#[cfg(test)]
impl Views {
    pub fn filtered(filters: watch::Receiver<Arc<Filters>>) -> Views {
        let secret = config::Secret::new("a secret of thirty-two characters");
        let users = UserServers::new(None, filters);
        Views::new(users, Arc::new(Seal::new(&secret)), None)
    }
}

/// Without any filter.
#[cfg(test)]
impl Default for Views {
    fn default() -> Views {
        // Nobody will ever send: what is there first is read all the same.
        Views::filtered(watch::channel(Arc::default()).1)
    }
}
