//! The views of entries in use. There may be many thousands of entries: the
//! views used last are kept, as far as there is room.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::View;
use super::entry_view::EntryContext;
use super::texts::ToolTexts;
use crate::control::{self, Control};
use crate::scope::EntryScope;
use crate::seal::Seal;
use crate::users::UserServers;
use config::filters::Filters;
use fleet::{Offer, Snapshot};
use store::{EntryId, Grant};

/// Bytes that all views may take together, where nothing else is set.
const DEFAULT_ROOM: usize = 128 << 20;

pub(super) struct EntryViews {
    room: AtomicUsize,
    control: Option<Arc<Control>>,
    users: UserServers,
    seal: Arc<Seal>,
    /// The lock is held for a lookup, never while a view is made.
    cache: Mutex<EntryViewCache>,
    texts: ToolTexts,
}

#[derive(Default)]
struct EntryViewCache {
    by_entry: HashMap<EntryViewKey, CachedEntryView>,
    weight: usize,
    /// Counts the lookups.
    now: u64,
}

/// An entry, and the filter that narrows it.
type EntryViewKey = (EntryId, Option<Arc<str>>);

struct CachedEntryView {
    entry: EntryScope,
    /// The file with the servers that its owner may use and the filter; `None`
    /// if the view does not depend on it.
    filters: Option<Arc<Filters>>,
    /// The snapshot's version of all offers that the view is known to hold for.
    offers: u64,
    /// The servers that the view is made of, and their offers.
    made_of: Vec<(Arc<str>, Option<Arc<Offer>>)>,
    view: Arc<View>,
    weight: usize,
    /// The part of `weight` that lists made on demand take.
    grown: usize,
    /// The lookup that used it last.
    used: u64,
}

impl EntryViews {
    pub(super) fn new(
        control: Option<Arc<Control>>,
        users: UserServers,
        seal: Arc<Seal>,
    ) -> EntryViews {
        EntryViews {
            room: AtomicUsize::new(DEFAULT_ROOM),
            control,
            users,
            seal,
            cache: Mutex::default(),
            texts: ToolTexts::default(),
        }
    }

    pub(super) fn set_room(&self, bytes: usize) {
        self.room.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(&self, entry: &EntryScope, snapshot: &Snapshot) -> Arc<View> {
        let grant = entry.grant();
        let control = self.control.as_ref();
        let room = self.room.load(Ordering::Relaxed);
        let filters = self.users.basis(&grant.owner, entry.filter().is_some());
        let same_offers = |cached: &CachedEntryView| cached.has_same_offers(snapshot, control);
        let cached =
            self.cache
                .lock()
                .find(entry, snapshot.offers, filters.as_ref(), same_offers, room);
        if let Some(view) = cached {
            return view;
        }
        let filter = match (entry.filter(), &filters) {
            (Some(name), Some(filters)) => match filters.find(Some(name)) {
                Ok(filter) => filter,
                Err(error) => return Arc::new(View::unfiltered(&error)),
            },
            _ => None,
        };
        let context = EntryContext {
            seal: &self.seal,
            snapshot,
            control,
            may_use: &|server| self.users.may_use(&grant.owner, server),
            filter,
            texts: &self.texts,
        };
        let view = Arc::new(View::of_entry(grant, &context));
        // The view of an entry that was closed meanwhile is not kept; and one
        // entry must not push out all others.
        let weight = view.weight();
        if !grant.calls.is_closed() && weight <= room / 4 {
            let cached = CachedEntryView {
                entry: entry.clone(),
                filters,
                offers: snapshot.offers,
                made_of: made_of(grant, snapshot, control),
                weight,
                view: view.clone(),
                grown: 0,
                used: 0,
            };
            self.cache.lock().put(cached, room);
        }
        view
    }

    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize) {
        let cache = self.cache.lock();
        (cache.by_entry.len(), cache.weight)
    }
}

impl EntryViewCache {
    /// The cached view, if it still holds for the snapshot with this version
    /// of `offers`.
    fn find(
        &mut self,
        entry: &EntryScope,
        offers: u64,
        filters: Option<&Arc<Filters>>,
        same_offers: impl Fn(&CachedEntryView) -> bool,
        room: usize,
    ) -> Option<Arc<View>> {
        self.now += 1;
        let cached = self.by_entry.get_mut(&entry.key())?;
        let same_filters = cached.filters.as_ref().map(Arc::as_ptr) == filters.map(Arc::as_ptr);
        if !Arc::ptr_eq(cached.entry.grant(), entry.grant()) || !same_filters {
            return None;
        }
        // A request that comes late with an older snapshot gets the newer view.
        if cached.offers < offers {
            if !same_offers(cached) {
                return None;
            }
            cached.offers = offers;
        }
        cached.used = self.now;
        let grown = cached.view.grown() - cached.grown;
        cached.grown += grown;
        cached.weight += grown;
        let view = cached.view.clone();
        self.weight += grown;
        self.make_room(room);
        Some(view)
    }

    fn put(&mut self, mut cached: CachedEntryView, room: usize) {
        cached.used = self.now;
        self.weight += cached.weight;
        if let Some(old) = self.by_entry.insert(cached.entry.key(), cached) {
            self.weight -= old.weight;
        }
        self.make_room(room);
    }

    /// Removes many at once, so that the next requests need not.
    fn make_room(&mut self, room: usize) {
        if self.weight <= room {
            return;
        }
        let entries = self.by_entry.iter();
        let mut oldest: Vec<(u64, EntryViewKey)> = entries
            .map(|(key, cached)| (cached.used, key.clone()))
            .collect();
        oldest.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in oldest {
            if self.weight <= room - room / 8 {
                return;
            }
            if let Some(gone) = self.by_entry.remove(&key) {
                self.weight -= gone.weight;
            }
        }
    }
}

impl CachedEntryView {
    /// Whether the servers that the view is made of still offer the same.
    fn has_same_offers(&self, snapshot: &Snapshot, control: Option<&Arc<Control>>) -> bool {
        // Names of prompts, and of a filter's tools, depend on all servers.
        let grant = self.entry.grant();
        if !grant.exposes.prompts.is_empty() || grant.filter.is_some() {
            return false;
        }
        self.made_of.iter().all(|(server, before)| {
            match (before, control::offer(snapshot, control, server)) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                (None, None) => true,
                _ => false,
            }
        })
    }
}

fn made_of(
    grant: &Grant,
    snapshot: &Snapshot,
    control: Option<&Arc<Control>>,
) -> Vec<(Arc<str>, Option<Arc<Offer>>)> {
    let granted = grant.tools.iter().map(|tool| &tool.server);
    let mut servers: Vec<&String> = granted.chain(&grant.exposes.resources).collect();
    servers.sort_unstable();
    servers.dedup();
    let its = |server: &String| {
        let offer = control::offer(snapshot, control, server);
        (server.as_str().into(), offer.cloned())
    };
    servers.into_iter().map(its).collect()
}
