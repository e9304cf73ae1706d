//! Changes that clients may subscribe to, and which client gets which.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::Scope;
use super::control::Control;
use super::listening::ResourceFollower;
use super::permission::{GrantPermission, Requirement};
use super::renames::{Catalogs, NameConflicts, Renames};
use super::resolve::no_resource;
use super::scope::EntryScope;
use super::users::UserServers;
use config::filters::Filters;
use fleet::catalog::{Catalog, CatalogItem};
use fleet::{CallError, Fleet, ResourceSubscription, Snapshot, Subscriptions};
use store::{ADMIN, EntryId, Grant, Store, StoreChange};
use upstream::UpstreamError;
use wire::object::{member, text};
use wire::{RpcError, code};

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
    Resource(ResourceChange),
    /// An entry; `None` for any.
    Entry(Option<EntryId>),
}

/// A changed resource, as its server reports it.
#[derive(Debug)]
pub(super) struct ResourceChange {
    pub server: Arc<str>,
    /// The owner of the connection that reports it; `None` if shared.
    pub whose: Option<Arc<str>>,
    /// The server's own URI.
    pub uri: String,
    /// The server's params.
    pub params: Box<RawValue>,
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

    /// The methods of the notifications that these lists have changed.
    pub(crate) fn notifications(self) -> impl Iterator<Item = &'static str> {
        let each = [
            (self.tools, "notifications/tools/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
        ];
        each.into_iter()
            .filter_map(|(told, method)| told.then_some(method))
    }
}

/// A change as it concerns one subscriber.
#[derive(Debug)]
pub(super) enum ChangeNotice<'a> {
    Lists(ListSet),
    Resource(&'a ResourceChange),
    /// The entry has changed: it may not have the followed resources any more.
    Entry,
}

/// A client that gets the changes of one endpoint.
pub(super) struct Subscriber {
    changes: broadcast::Receiver<Arc<ChangeEvent>>,
    scope: Scope,
    store: Arc<Store>,
    users: UserServers,
    /// The version of all offers when it came; older changes are no news.
    since: u64,
}

impl Subscriber {
    /// The next change, or `Some(None)` where some were missed. `None` at the
    /// end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Option<Arc<ChangeEvent>>> {
        match self.changes.recv().await {
            Ok(change) => Some(Some(change)),
            Err(RecvError::Lagged(_)) => Some(None),
            Err(RecvError::Closed) => None,
        }
    }

    /// What a change means to the client, if anything. After missed changes
    /// everything may have changed.
    pub(crate) fn notice<'a>(
        &mut self,
        change: Option<&'a ChangeEvent>,
    ) -> Option<ChangeNotice<'a>> {
        match change {
            Some(ChangeEvent::Lists {
                server,
                offers,
                lists,
            }) => {
                let lists = lists.and(self.shows(server.as_deref()));
                let news = *offers > self.since && lists != ListSet::default();
                news.then_some(ChangeNotice::Lists(lists))
            }
            Some(ChangeEvent::Resource(change)) => {
                let shown = self.may_follow(&change.server);
                shown.then_some(ChangeNotice::Resource(change))
            }
            Some(ChangeEvent::Entry(which)) => {
                let entry = self.scope.grant()?.entry;
                let changed = which.is_none_or(|which| which == entry) && self.refresh();
                changed.then_some(ChangeNotice::Entry)
            }
            None => {
                self.refresh();
                Some(ChangeNotice::Entry)
            }
        }
    }

    /// Takes the entry as it is now; false if it has not changed.
    fn refresh(&mut self) -> bool {
        let Scope::Entry(known) = &self.scope else {
            return false;
        };
        // A closed entry shows nothing until it comes back.
        if let Some(now) = self.store.grant_of(known.grant().entry) {
            if Arc::ptr_eq(&now, known.grant()) {
                return false;
            }
            let filter = known.filter().cloned();
            self.scope = Scope::Entry(EntryScope::narrowed(now, filter));
        }
        true
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
                if self.users.may_use(&grant.owner, server) {
                    granted(grant, server)
                } else {
                    ListSet::default()
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

/// Changes that a subscriber may be behind by.
const CHANGES: usize = 1024;

/// The changes that clients may subscribe to, in one place: lists from the
/// snapshots, resources from the notifications of their servers.
#[derive(Clone)]
pub(super) struct Hub(Arc<HubShared>);

struct HubShared {
    fleet: Fleet,
    store: Arc<Store>,
    users: UserServers,
    changes: broadcast::Sender<Arc<ChangeEvent>>,
    subscriptions: Subscriptions,
}

impl Hub {
    /// Must be called inside the runtime: it starts to watch at once.
    pub(crate) fn new(
        fleet: &Fleet,
        store: &Arc<Store>,
        users: &UserServers,
        control: Option<Arc<Control>>,
        renames: &broadcast::Sender<Arc<Renames>>,
    ) -> Hub {
        let (changes, _) = broadcast::channel(CHANGES);
        tokio::spawn(watch_filters(users.filters(), changes.clone()));
        let lists = watch_lists(fleet.clone(), control, changes.clone(), renames.clone());
        tokio::spawn(lists);
        tokio::spawn(watch_resources(fleet.clone(), changes.clone()));
        tokio::spawn(watch_entries(store.changes(), changes.clone()));
        Hub(Arc::new(HubShared {
            fleet: fleet.clone(),
            store: store.clone(),
            users: users.clone(),
            changes,
            subscriptions: Subscriptions::new(fleet.clone()),
        }))
    }

    /// A subscriber to the changes of a scope from now on.
    pub(crate) fn subscribe(&self, scope: &Scope) -> Subscriber {
        Subscriber {
            changes: self.0.changes.subscribe(),
            scope: scope.clone(),
            store: self.0.store.clone(),
            users: self.0.users.clone(),
            since: self.0.fleet.snapshot().offers,
        }
    }

    /// Follows a resource of a server: returns once the server has agreed.
    pub(crate) async fn follow(
        &self,
        follower: ResourceFollower<'_>,
        server: &Arc<str>,
        uri: &str,
    ) -> Result<Arc<ResourceSubscription>, RpcError> {
        let ResourceFollower { scope, slot } = follower;
        let permission = GrantPermission::of(scope, &self.0.store, Requirement::Resources, server);
        let subscribed = self.0.subscriptions.follow(server, uri, slot, permission);
        subscribed.await.map_err(|error| match error {
            UpstreamError::Revoked => no_resource(uri),
            UpstreamError::Rpc(error) => error,
            other => RpcError::new(code::INTERNAL, CallError::from(other).to_string()),
        })
    }
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
        let renamed = named.then(|| clashes.follow(&known, &now));
        for one in renamed.into_iter().flatten() {
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
        if update.note.method == "notifications/resources/updated"
            && let Some(params) = update.note.params.as_deref()
            && let Some(uri) = member(params, "uri").and_then(text)
        {
            let _ = changes.send(Arc::new(ChangeEvent::Resource(ResourceChange {
                server: update.server.clone(),
                whose: update.whose.clone(),
                uri: uri.into_owned(),
                params: params.to_owned(),
            })));
        }
    }
}
