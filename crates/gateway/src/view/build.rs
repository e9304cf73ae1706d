//! Making a view: of one server as it is, or of all of them with names and an
//! order of our own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::formatted::FormattedLists;
use super::info::{EndpointInfo, INTRODUCTION};
use super::instructions;
use super::list::ViewList;
use super::list_entry::{self, ListEntry, PreparedTool};
use super::{RouteTarget, View};
use crate::control::{self, Control};
use crate::{naming, uris};
use config::filters::{Filter, FilterError};
use fleet::catalog::{CatalogItem, ListKind};
use fleet::{Offer, ServerView, Snapshot};
use wire::object::{inner_member, member, text};
use wire::result::Freshness;
use wire::{RpcError, code};

impl View {
    /// One server as it is, or what a filter lets through of it.
    pub(super) fn of_server(
        server: &Arc<str>,
        snapshot: &Snapshot,
        filter: Option<&Filter>,
        control: Option<&Arc<Control>>,
    ) -> View {
        if filter.is_some_and(|filter| !filter.admits(server)) {
            return View::empty(None, EndpointInfo::of_portway());
        }
        let Some(view) = snapshot.find(server) else {
            let offer = control::offer(snapshot, control, server);
            return match offer {
                Some(offer) => one_server(server, offer, filter, control),
                None => View::unavailable(server, format!("no server is called {server:?}")),
            };
        };
        match &view.offer {
            Some(offer) => one_server(&view.wanted.name, offer, filter, None),
            None => {
                let reason = view.state.error().map(|error| format!(": {error}"));
                let reason = reason.unwrap_or_default();
                let text = format!("server {server:?} is not connected{reason}");
                View::unavailable(server, text)
            }
        }
    }

    /// Nothing, since the filter that should narrow it cannot be had.
    pub(super) fn unfiltered(error: &FilterError) -> View {
        View {
            fault: Some(RpcError::new(code::INVALID_PARAMS, error.to_string())),
            ..View::empty(None, EndpointInfo::of_portway())
        }
    }

    fn unavailable(server: &Arc<str>, reason: String) -> View {
        View {
            fault: Some(RpcError::new(code::INTERNAL, reason)),
            ..View::empty(Some(server.clone()), EndpointInfo::of_absent(server))
        }
    }

    pub(super) fn empty(only: Option<Arc<str>>, info: EndpointInfo) -> View {
        View {
            lists: ListKind::ALL.map(|kind| ViewList::new(kind, info.server_info.clone())),
            only,
            info,
            tools: HashMap::new(),
            prompts: HashMap::new(),
            servers: BTreeSet::new(),
            verbatim: HashMap::new(),
            links: None,
            absent: Vec::new(),
            fault: None,
            formatted: FormattedLists::default(),
            aliases: Default::default(),
            control: None,
        }
    }

    /// Adds a tool or prompt at the end of its list.
    pub(super) fn add(
        &mut self,
        kind: ListKind,
        (name, named_by_key): (String, bool),
        prepared: PreparedTool,
        (offered, item): (ServerOffer<'_>, &CatalogItem),
    ) {
        let list = &mut self.lists[kind as usize];
        let target = RouteTarget {
            server: offered.server.clone(),
            name: item.key.as_str().into(),
            traits: prepared.traits,
            named_by_key,
            at: list.entries.len(),
            control: offered.control.cloned(),
        };
        list.entries.push(prepared.entry);
        match kind {
            ListKind::Prompts => self.prompts.insert(name, target),
            _ => self.tools.insert(name, target),
        };
    }
}

/// One server: its own names, its own order.
fn one_server(
    server: &Arc<str>,
    offer: &Offer,
    filter: Option<&Filter>,
    control: Option<&Arc<Control>>,
) -> View {
    let hidden = |tool: &str| filter.is_some_and(|filter| !filter.allows(server, tool));
    let offered = ServerOffer {
        server,
        offer,
        shown: true,
        control,
    };
    let mut view = View::empty(Some(server.clone()), EndpointInfo::of_server(server, offer));
    view.control = control.cloned();
    for kind in ListKind::ALL {
        let list = &mut view.lists[kind as usize];
        let facts = offer.catalog.facts(kind);
        list.freshness = offered.freshness(kind);
        list.rest = facts.rest.clone();
        list.missing = facts.missing;
        for item in offer.catalog.items(kind) {
            let raw = item.raw.clone();
            let prepared = match kind {
                ListKind::Tools if hidden(&item.key) => continue,
                ListKind::Tools => list_entry::tool(raw, offer.peer.era, false),
                ListKind::Prompts => ListEntry::same(raw, false).into(),
                ListKind::Resources | ListKind::Templates => {
                    let entry = ListEntry::same(raw, false);
                    view.lists[kind as usize].entries.push(entry);
                    continue;
                }
            };
            view.add(kind, (item.key.clone(), false), prepared, (offered, item));
        }
    }
    view
}

/// What one server offers to a view of many.
#[derive(Clone, Copy)]
pub(super) struct ServerOffer<'a> {
    pub server: &'a Arc<str>,
    pub offer: &'a Offer,
    /// Whether the view shows anything of it.
    pub shown: bool,
    /// Set where it is Portway itself.
    pub control: Option<&'a Arc<Control>>,
}

impl<'a> ServerOffer<'a> {
    /// Portway's own tools.
    pub(super) fn of_control(
        control: Option<&'a Arc<Control>>,
        snapshot: &Snapshot,
        shown: impl Fn(&str) -> bool,
    ) -> Option<ServerOffer<'a>> {
        let server = control?.name();
        Some(ServerOffer {
            server,
            offer: control?.offer(snapshot)?,
            shown: shown(server),
            control,
        })
    }

    pub(super) fn freshness(self, kind: ListKind) -> Freshness {
        if self.offer.stale {
            Freshness::NONE
        } else {
            self.offer.catalog.facts(kind).freshness
        }
    }
}

/// The offers of all connected servers.
pub(super) fn offers<'a>(
    snapshot: &'a Snapshot,
    shown: impl Fn(&str) -> bool,
) -> Vec<ServerOffer<'a>> {
    let offered = |(server, view): (&'a Arc<str>, &'a Arc<ServerView>)| {
        Some(ServerOffer {
            server,
            offer: view.offer.as_deref()?,
            shown: shown(server),
            control: None,
        })
    };
    snapshot.servers.iter().filter_map(offered).collect()
}

/// The servers for which `shown` is true and that are not connected, by how
/// their names start.
pub(super) fn absent(snapshot: &Snapshot, shown: impl Fn(&str) -> bool) -> Vec<(String, Arc<str>)> {
    let absent = snapshot.servers.iter();
    absent
        .filter(|(server, view)| view.offer.is_none() && shown(server))
        .map(|(server, _)| (naming::start(server), server.clone()))
        .collect()
}

pub(super) fn shown_servers(offers: &[ServerOffer<'_>]) -> BTreeSet<Arc<str>> {
    let shown = offers.iter().filter(|offered| offered.shown);
    shown.map(|offered| offered.server.clone()).collect()
}

pub(super) fn freshness(offers: &[ServerOffer<'_>], kind: ListKind) -> Freshness {
    let shown = offers.iter().filter(|offered| offered.shown);
    let each = shown.map(|offered| offered.freshness(kind));
    each.reduce(Freshness::and).unwrap_or(Freshness::NONE)
}

impl View {
    /// All servers, or what a filter lets through. Names are given over all of
    /// them, so that no filter changes one; then sorted, since that is the one
    /// order that no server can disturb.
    pub(super) fn of_all(
        snapshot: &Snapshot,
        filter: Option<&Filter>,
        control: Option<&Arc<Control>>,
    ) -> View {
        let mut view = View::empty(None, EndpointInfo::of_portway());
        let admits = |server: &str| filter.is_none_or(|filter| filter.admits(server));
        view.absent = absent(snapshot, admits);
        let mut offers = offers(snapshot, admits);
        view.servers = shown_servers(&offers);
        for kind in ListKind::ALL {
            view.lists[kind as usize].freshness = freshness(&offers, kind);
        }
        // Last: it has nothing but tools, and lists are no less fresh for it.
        offers.extend(ServerOffer::of_control(control, snapshot, admits));
        let shown = offers.iter().filter(|offered| offered.shown);
        let texts = shown.map(|one| (&**one.server, one.offer.peer.instructions.as_deref()));
        view.info.instructions = instructions::joined(INTRODUCTION, texts);
        // Before the tools: the server that lists a page has more right to it than
        // one that mentions it.
        for kind in [ListKind::Resources, ListKind::Templates] {
            add_resources(&mut view, &offers, kind);
        }
        for (name, offered, item) in named(&offers, ListKind::Tools) {
            let ServerOffer { server, offer, .. } = offered;
            if filter.is_some_and(|filter| !filter.allows(server, &item.key)) {
                continue;
            }
            if let Some(uri) = app_of(item) {
                view.verbatim.entry(uri).or_insert_with(|| server.clone());
            }
            let raw = list_entry::renamed(item, &name);
            let prepared = list_entry::tool(raw, offer.peer.era, offer.stale);
            view.add(ListKind::Tools, (name, true), prepared, (offered, item));
        }
        add_prompts(&mut view, &offers);
        view
    }
}

/// The shown entries of one kind with their names, by name.
pub(super) fn named<'a>(
    offers: &[ServerOffer<'a>],
    kind: ListKind,
) -> Vec<(String, ServerOffer<'a>, &'a CatalogItem)> {
    let items = offers.iter().flat_map(|offered| {
        let items = offered.offer.catalog.items(kind).iter();
        items.map(move |item| (*offered, item))
    });
    let keys = items
        .clone()
        .map(|(offered, item)| (&**offered.server, item.key.as_str()));
    let mut named: Vec<_> = naming::names(keys)
        .into_iter()
        .zip(items)
        .map(|(named, (offered, item))| (named.name, offered, item))
        .filter(|(_, offered, _)| offered.shown)
        .collect();
    named.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    named
}

/// The page of a tool that has one (MCP Apps), which need not be listed.
pub(super) fn app_of(item: &CatalogItem) -> Option<String> {
    if !item.raw.get().contains("ui://") {
        return None;
    }
    let ui = inner_member(&item.raw, "_meta", "ui")?;
    let uri = text(member(ui, "resourceUri")?)?;
    uris::stays(&uri).then(|| uri.into_owned())
}

pub(super) fn add_prompts(view: &mut View, offers: &[ServerOffer<'_>]) {
    for (name, offered, item) in named(offers, ListKind::Prompts) {
        let raw = list_entry::renamed(item, &name);
        let prepared = ListEntry::same(raw, offered.offer.stale).into();
        view.add(ListKind::Prompts, (name, true), prepared, (offered, item));
    }
}

/// In the order of servers, each in its own.
pub(super) fn add_resources(view: &mut View, offers: &[ServerOffer<'_>], kind: ListKind) {
    let shown = offers.iter().filter(|offered| offered.shown);
    for ServerOffer { server, offer, .. } in shown {
        for item in offer.catalog.items(kind) {
            let uri = uris::shared(server, &item.key);
            if uris::stays(&uri) {
                let owner = view.verbatim.entry(item.key.clone());
                let owner = owner.or_insert_with(|| (*server).clone());
                if owner != *server {
                    tracing::warn!(%server, "{uri:?} of server {server:?} is hidden: server {owner:?} has the same URI");
                    continue;
                }
            }
            let entry = ListEntry::same(list_entry::renamed(item, &uri), offer.stale);
            view.lists[kind as usize].entries.push(entry);
        }
    }
}
