//! The views of entries in use. There may be many thousands of entries: those
//! that were asked for last are kept, as far as there is room.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::View;
use super::granted::EntryContext;
use super::texts::ToolTexts;
use crate::control::{self, Control};
use crate::scope::EntryScope;
use crate::seal::Seal;
use crate::users::UserServers;
use config::filters::Filters;
use fleet::{Offer, Snapshot};
use parking_lot::Mutex;
use store::{EntryId, Grant};

/// Most bytes of all views together, about, where nothing else is set.
pub(super) const ROOM: usize = 128 << 20;

/// The lock is held for a lookup, never while a view is made.
pub(super) struct EntryViews {
    room: AtomicUsize,
    control: Option<Arc<Control>>,
    users: UserServers,
    kept: Mutex<EntryViewCache>,
    texts: ToolTexts,
}

#[derive(Default)]
struct EntryViewCache {
    by_entry: HashMap<EntryViewKey, CachedEntryView>,
    weight: usize,
    /// Counts the lookups: who was asked for when.
    now: u64,
}

/// An entry, and the filter that narrows it.
type EntryViewKey = (EntryId, Option<Arc<str>>);

struct CachedEntryView {
    entry: EntryScope,
    /// What said which servers its owner may use, and what narrows it; `None`
    /// where neither is so.
    filters: Option<Arc<Filters>>,
    /// The snapshot's version that the view was last seen to be true of.
    offers: u64,
    made_of: Vec<(Arc<str>, Option<Arc<Offer>>)>,
    view: Arc<View>,
    weight: usize,
    /// What of it are pages and lists in other formats, which come later if
    /// at all.
    grown: usize,
    used: u64,
}

/// What a view is made of beside its grant.
type Basis<'a> = (
    &'a Snapshot,
    Option<&'a Arc<Control>>,
    Option<&'a Arc<Filters>>,
);

impl EntryViews {
    pub(super) fn new(
        room: usize,
        control: Option<Arc<Control>>,
        users: UserServers,
    ) -> EntryViews {
        EntryViews {
            room: AtomicUsize::new(room),
            control,
            users,
            kept: Mutex::default(),
            texts: ToolTexts::default(),
        }
    }

    pub(super) fn set_room(&self, bytes: usize) {
        self.room.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(
        &self,
        entry: &EntryScope,
        seal: &Arc<Seal>,
        snapshot: &Snapshot,
    ) -> Arc<View> {
        let grant = entry.grant();
        let control = self.control.as_ref();
        let room = self.room.load(Ordering::Relaxed);
        let narrowed = entry.filter().is_some();
        let filters = self.users.basis(&grant.owner, narrowed);
        let basis = (snapshot, control, filters.as_ref());
        if let Some(view) = self.kept.lock().find(entry, basis, room) {
            return view;
        }
        let narrowing = match (entry.filter(), &filters) {
            (Some(name), Some(filters)) => filters.find(Some(name)),
            _ => Ok(None),
        };
        let narrowing = match narrowing {
            Ok(filter) => filter,
            Err(error) => return Arc::new(View::unfiltered(&error)),
        };
        let view = Arc::new(View::of_entry(
            grant,
            &EntryContext {
                seal,
                snapshot,
                control,
                open: &|server| self.users.may_use(&grant.owner, server),
                narrowing,
                texts: &self.texts,
            },
        ));
        // What came to an end while it waited is nobody's to keep; and one
        // entry must not push out all others.
        let weight = view.weight();
        if !grant.calls.is_closed() && weight <= room / 4 {
            let kept = CachedEntryView {
                entry: entry.clone(),
                filters,
                offers: snapshot.offers,
                made_of: made_of(grant, snapshot, control),
                weight,
                view: view.clone(),
                grown: 0,
                used: 0,
            };
            self.kept.lock().put(kept, room);
        }
        view
    }

    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize) {
        let kept = self.kept.lock();
        (kept.by_entry.len(), kept.weight)
    }
}

impl EntryViewCache {
    fn find(
        &mut self,
        entry: &EntryScope,
        (snapshot, control, filters): Basis<'_>,
        room: usize,
    ) -> Option<Arc<View>> {
        self.now += 1;
        let kept = self.by_entry.get_mut(&entry.key())?;
        let same_filters = match (&kept.filters, filters) {
            (Some(old), Some(now)) => Arc::ptr_eq(old, now),
            (old, now) => old.is_none() && now.is_none(),
        };
        if !Arc::ptr_eq(kept.entry.grant(), entry.grant()) || !same_filters {
            return None;
        }
        // Who comes late with an older snapshot gets the newer view.
        if kept.offers < snapshot.offers {
            if !kept.holds(snapshot, control) {
                return None;
            }
            kept.offers = snapshot.offers;
        }
        kept.used = self.now;
        let grown = kept.view.grown() - kept.grown;
        kept.grown += grown;
        kept.weight += grown;
        let view = kept.view.clone();
        self.weight += grown;
        if self.weight > room {
            self.make_room(room);
        }
        Some(view)
    }

    fn put(&mut self, mut kept: CachedEntryView, room: usize) {
        kept.used = self.now;
        self.weight += kept.weight;
        if let Some(old) = self.by_entry.insert(kept.entry.key(), kept) {
            self.weight -= old.weight;
        }
        if self.weight > room {
            self.make_room(room);
        }
    }

    /// Many at once, so that the next ones need not look.
    fn make_room(&mut self, room: usize) {
        let entries = self.by_entry.iter();
        let mut oldest: Vec<(u64, EntryViewKey)> = entries
            .map(|(key, kept)| (kept.used, key.clone()))
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
    /// Whether all that the view was made of is still what is offered.
    fn holds(&self, snapshot: &Snapshot, control: Option<&Arc<Control>>) -> bool {
        // Names of prompts, and of what a filter gives, are given over all
        // servers.
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
