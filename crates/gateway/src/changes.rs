//! Changes that clients may subscribe to, and which client gets which.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::Scope;
use super::control::Control;
use super::renames::{Catalogs, NameConflicts, Renames};
use super::scope::EntryScope;
use super::users::UserServers;
use config::filters::Filters;
use fleet::catalog::{Catalog, CatalogItem};
use fleet::{Fleet, Snapshot};
use store::{ADMIN, EntryId, Grant, Store, StoreChange};
use wire::object::{member, text};

/// A change that clients may subscribe to.
#[derive(Debug)]
pub(super) enum ChangeEvent {
    Lists {
        /// `None` for any server.
        server: Option<Arc<str>>,
        /// The snapshot's version of all offers with the change.
        offers: u64,
        lists: ListSet,
    },
    Resource {
        server: Arc<str>,
        whose: Option<Arc<str>>,
        /// The server's own URI.
        uri: String,
        /// The server's params.
        params: Box<RawValue>,
    },
    /// An entry; `None` for any.
    Entry(Option<EntryId>),
}

/// A set of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListSet {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
}

impl ListSet {
    pub(crate) const ALL: ListSet = ListSet {
        tools: true,
        resources: true,
        prompts: true,
    };

    pub(crate) fn and(self, other: ListSet) -> ListSet {
        ListSet {
            tools: self.tools && other.tools,
            resources: self.resources && other.resources,
            prompts: self.prompts && other.prompts,
        }
    }
}

/// The server and connection that a change comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeSource<'a> {
    pub server: &'a Arc<str>,
    pub whose: Option<&'a Arc<str>>,
}

/// A change as it concerns one subscriber.
#[derive(Debug)]
pub(super) enum ChangeNotice<'a> {
    Nothing,
    Lists(ListSet),
    Resource {
        from: ChangeSource<'a>,
        uri: &'a str,
        params: &'a RawValue,
    },
    /// The entry has changed: it may not have the followed resources any more.
    Entry,
}

/// A client that gets the changes of one endpoint.
pub(super) struct Subscriber {
    scope: Scope,
    store: Arc<dyn Store>,
    users: UserServers,
    /// The version of all offers when it came; older changes are no news.
    since: u64,
}

impl Subscriber {
    pub(crate) fn new(
        scope: Scope,
        store: Arc<dyn Store>,
        users: UserServers,
        since: u64,
    ) -> Subscriber {
        Subscriber {
            scope,
            store,
            users,
            since,
        }
    }

    pub(crate) fn notice<'a>(&mut self, change: &'a ChangeEvent) -> ChangeNotice<'a> {
        match change {
            ChangeEvent::Lists {
                server,
                offers,
                lists,
            } if *offers > self.since => {
                let lists = lists.and(self.shows(server.as_deref()));
                match lists == ListSet::default() {
                    true => ChangeNotice::Nothing,
                    false => ChangeNotice::Lists(lists),
                }
            }
            ChangeEvent::Lists { .. } => ChangeNotice::Nothing,
            ChangeEvent::Resource {
                server,
                whose,
                uri,
                params,
            } if self.shows(Some(server)).resources => {
                let whose = whose.as_ref();
                ChangeNotice::Resource {
                    from: ChangeSource { server, whose },
                    uri,
                    params,
                }
            }
            ChangeEvent::Resource { .. } => ChangeNotice::Nothing,
            ChangeEvent::Entry(which) => match self.scope.grant() {
                Some(grant) if which.is_none_or(|which| which == grant.entry) => self.refresh(),
                _ => ChangeNotice::Nothing,
            },
        }
    }

    /// Takes the entry as it is now.
    pub(crate) fn refresh(&mut self) -> ChangeNotice<'static> {
        let Scope::Entry(known) = &self.scope else {
            return ChangeNotice::Nothing;
        };
        match self.store.grant_of(known.grant().entry) {
            Some(now) if Arc::ptr_eq(&now, known.grant()) => ChangeNotice::Nothing,
            Some(now) => {
                let filter = known.filter().cloned();
                self.scope = Scope::Entry(EntryScope::narrowed(now, filter));
                ChangeNotice::Entry
            }
            // Closed: it shows nothing until it comes back.
            None => ChangeNotice::Entry,
        }
    }

    /// Whether resources of a server may be followed.
    pub(crate) fn may_follow(&self, server: &str) -> bool {
        self.shows(Some(server)).resources
    }

    /// The lists of a server that the endpoint shows.
    fn shows(&self, server: Option<&str>) -> ListSet {
        match (&self.scope, server) {
            (Scope::Everything { .. }, _) => ListSet::ALL,
            (Scope::Server { name, .. }, Some(server)) if **name == *server => ListSet::ALL,
            // The filter may have changed.
            (Scope::Server { filter, .. }, None) if filter.is_some() => ListSet::ALL,
            (Scope::Entry(entry), Some(server)) => {
                let grant = entry.grant();
                match self.users.may_use(&grant.owner, server) {
                    true => granted(grant, server),
                    false => ListSet::default(),
                }
            }
            // The servers open to users, or the filter, may have changed.
            (Scope::Entry(entry), None)
                if entry.filter().is_some() || *entry.grant().owner != *ADMIN =>
            {
                ListSet {
                    tools: true,
                    resources: !entry.grant().exposes.resources.is_empty(),
                    prompts: !entry.grant().exposes.prompts.is_empty(),
                }
            }
            _ => ListSet::default(),
        }
    }
}

fn granted(grant: &Grant, server: &str) -> ListSet {
    if grant.calls.is_closed() {
        return ListSet::default();
    }
    let named = |servers: &[String]| servers.iter().any(|one| one == server);
    ListSet {
        tools: grant.tools.iter().any(|tool| tool.server == server)
            || grant.filter_gives(server, None),
        resources: named(&grant.exposes.resources),
        prompts: named(&grant.exposes.prompts),
    }
}

/// Publishes every change from now on.
pub(super) fn watch(
    fleet: &Fleet,
    store: &dyn Store,
    filters: watch::Receiver<Arc<Filters>>,
    control: Option<Arc<Control>>,
    changes: &broadcast::Sender<Arc<ChangeEvent>>,
    renames: &broadcast::Sender<Arc<Renames>>,
) {
    tokio::spawn(watch_filters(filters, changes.clone()));
    let lists = watch_lists(fleet.clone(), control, changes.clone(), renames.clone());
    tokio::spawn(lists);
    tokio::spawn(watch_resources(fleet.clone(), changes.clone()));
    tokio::spawn(watch_entries(store.changes(), changes.clone()));
}

async fn watch_entries(
    mut records: broadcast::Receiver<StoreChange>,
    changes: broadcast::Sender<Arc<ChangeEvent>>,
) {
    loop {
        let which = match records.recv().await {
            Ok(StoreChange::Entry(entry)) => Some(entry),
            Ok(StoreChange::Everything) | Err(RecvError::Lagged(_)) => None,
            Ok(StoreChange::Records | StoreChange::Servers) => continue,
            Err(RecvError::Closed) => return,
        };
        let _ = changes.send(Arc::new(ChangeEvent::Entry(which)));
    }
}

/// Changes within this time are published together.
const SETTLE: Duration = Duration::from_millis(20);

/// Publishes changed lists.
async fn watch_lists(
    fleet: Fleet,
    control: Option<Arc<Control>>,
    changes: broadcast::Sender<Arc<ChangeEvent>>,
    renames: broadcast::Sender<Arc<Renames>>,
) {
    let mut snapshots = fleet.watch();
    // Portway's own tools are no change.
    let first = control.iter();
    let mut known: Catalogs = first
        .map(|control| (control.name().clone(), control.catalog().clone()))
        .collect();
    let mut clashes = NameConflicts::default();
    loop {
        let snapshot = snapshots.borrow_and_update().clone();
        let now = catalogs(&snapshot, control.as_deref());
        let mut lists = differences(&known, &now);
        let named = lists.values().any(|lists| lists.tools || lists.prompts);
        let renamed = match named {
            true => clashes.follow(&known, &now),
            false => Vec::new(),
        };
        for one in renamed {
            let lists = lists.entry(one.server.clone()).or_default();
            lists.tools |= one.tools;
            lists.prompts |= one.prompts;
            one.log();
            let _ = renames.send(Arc::new(one));
        }
        for (server, lists) in lists {
            let _ = changes.send(Arc::new(ChangeEvent::Lists {
                server: Some(server),
                offers: snapshot.offers,
                lists,
            }));
        }
        known = now;
        // Dropped before the wait: the next publisher would have to copy it.
        drop(snapshot);
        if snapshots.changed().await.is_err() {
            return;
        }
        // Many servers that start at once are compared once, not once for each.
        tokio::time::sleep(SETTLE).await;
    }
}

fn catalogs(snapshot: &Snapshot, control: Option<&Control>) -> Catalogs {
    let own = control.and_then(|control| {
        let offer = control.offer(snapshot)?;
        Some((control.name(), &offer.catalog))
    });
    let servers = snapshot.servers.iter();
    let servers = servers.map(|(name, view)| (name, view.listed()));
    servers
        .chain(own)
        .map(|(name, listed)| (name.clone(), listed.clone()))
        .collect()
}

/// A filter that was edited may show other tools, of any server.
async fn watch_filters(
    mut filters: watch::Receiver<Arc<Filters>>,
    changes: broadcast::Sender<Arc<ChangeEvent>>,
) {
    while filters.changed().await.is_ok() {
        let _ = changes.send(Arc::new(ChangeEvent::Lists {
            server: None,
            offers: u64::MAX,
            lists: ListSet::ALL,
        }));
    }
}

/// The servers whose lists are not the same in both.
fn differences(before: &Catalogs, now: &Catalogs) -> HashMap<Arc<str>, ListSet> {
    let none = Arc::default();
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let changed = now.keys().chain(gone).filter_map(|name| {
        let of = |catalogs: &'_ Catalogs| catalogs.get(name).unwrap_or(&none).clone();
        let lists = compare(&of(before), &of(now));
        (lists != ListSet::default()).then(|| (name.clone(), lists))
    });
    changed.collect()
}

fn compare(old: &Arc<Catalog>, new: &Arc<Catalog>) -> ListSet {
    if Arc::ptr_eq(old, new) {
        return ListSet::default();
    }
    let differ = |old: &[CatalogItem], new: &[CatalogItem]| {
        old.len() != new.len()
            || old
                .iter()
                .zip(new)
                .any(|(old, new)| old.raw.get() != new.raw.get())
    };
    ListSet {
        tools: differ(&old.tools, &new.tools),
        resources: differ(&old.resources, &new.resources) || differ(&old.templates, &new.templates),
        prompts: differ(&old.prompts, &new.prompts),
    }
}

async fn watch_resources(fleet: Fleet, changes: broadcast::Sender<Arc<ChangeEvent>>) {
    let mut updates = fleet.updates();
    loop {
        let update = match updates.recv().await {
            Ok(update) => update,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if update.note.method != "notifications/resources/updated" {
            continue;
        }
        let Some(params) = update.note.params.as_deref() else {
            continue;
        };
        if let Some(uri) = member(params, "uri").and_then(text) {
            let _ = changes.send(Arc::new(ChangeEvent::Resource {
                server: update.server.clone(),
                whose: update.whose.clone(),
                uri: uri.into_owned(),
                params: params.to_owned(),
            }));
        }
    }
}
