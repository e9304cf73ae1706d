//! Making a view: of one server as it is, or of all of them with names of
//! our own, in an order of our own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::aliases::Aliases;
use super::entry::{self, ListEntry, PreparedTool};
use super::formatted::FormattedLists;
use super::hello::{EndpointInfo, INTRODUCTION};
use super::instructions;
use super::list::ViewList;
use super::{RouteTarget, View};
use crate::control::{self, Control};
use crate::{naming, uris};
use config::filters::{Filter, FilterError};
use fleet::catalog::{Item, Kind};
use fleet::{Offer, Snapshot};
use wire::meta::{member, text};
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
            // Of many servers, none is shown.
            return View::empty(None, EndpointInfo::ours());
        }
        let Some(view) = snapshot.find(server) else {
            if let (Some(offer), Some(control)) =
                (control::offer(snapshot, control, server), control)
            {
                return one(server, offer, filter, Some(control));
            }
            return nothing(server, format!("no server is called {server:?}"));
        };
        match &view.offer {
            Some(offer) => one(&view.wanted.name, offer, filter, None),
            None => {
                let reason = view.state.error().map(|error| format!(": {error}"));
                let reason = reason.unwrap_or_default();
                nothing(
                    server,
                    format!("server {server:?} is not connected{reason}"),
                )
            }
        }
    }

    /// All servers, or what a filter lets through.
    pub(super) fn of_all(
        snapshot: &Snapshot,
        filter: Result<Option<&Filter>, FilterError>,
        control: Option<&Arc<Control>>,
    ) -> View {
        match filter {
            Ok(filter) => everything(snapshot, filter, control),
            Err(error) => View::unfiltered(&error),
        }
    }

    /// Nothing, for want of the filter that should narrow it.
    pub(super) fn unfiltered(error: &FilterError) -> View {
        View {
            fault: Some(RpcError::new(code::INVALID_PARAMS, error.to_string())),
            ..View::empty(None, EndpointInfo::ours())
        }
    }

    pub(super) fn empty(only: Option<Arc<str>>, hello: EndpointInfo) -> View {
        View {
            lists: Kind::ALL.map(|kind| ViewList::new(kind, hello.info.clone())),
            only,
            hello,
            tools: HashMap::new(),
            prompts: HashMap::new(),
            servers: BTreeSet::new(),
            verbatim: HashMap::new(),
            links: None,
            absent: Vec::new(),
            fault: None,
            formatted: FormattedLists::default(),
            aliases: Aliases::default(),
            control: None,
        }
    }
}

fn nothing(server: &Arc<str>, why: String) -> View {
    View {
        fault: Some(RpcError::new(code::INTERNAL, why)),
        ..View::empty(Some(server.clone()), EndpointInfo::nobody(server))
    }
}

/// One server: its own names, its own order.
fn one(
    server: &Arc<str>,
    offer: &Offer,
    filter: Option<&Filter>,
    control: Option<&Arc<Control>>,
) -> View {
    let hides = |tool: &str| filter.is_some_and(|filter| !filter.allows(server, tool));
    let mut view = View::empty(Some(server.clone()), EndpointInfo::of(server, offer));
    view.control = control.cloned();
    for kind in Kind::ALL {
        let list = &mut view.lists[kind as usize];
        let facts = offer.catalog.facts(kind);
        list.freshness = fresh(offer, kind);
        list.rest = facts.rest.clone();
        list.missing = facts.missing;
        for item in offer.catalog.items(kind) {
            let at = list.entries.len();
            let target =
                |prepared: Option<&mut PreparedTool>| target(server, item, at, prepared, control);
            let raw = item.raw.clone();
            match kind {
                Kind::Tools if hides(&item.key) => {}
                Kind::Tools => {
                    let mut prepared = entry::tool(raw, offer.peer.era, false);
                    let target = target(Some(&mut prepared));
                    view.tools.insert(item.key.clone(), target);
                    list.entries.push(prepared.entry);
                }
                Kind::Prompts => {
                    view.prompts.insert(item.key.clone(), target(None));
                    list.entries.push(ListEntry::same(raw, false));
                }
                Kind::Resources | Kind::Templates => {
                    list.entries.push(ListEntry::same(raw, false));
                }
            }
        }
    }
    view
}

pub(super) fn fresh(offer: &Offer, kind: Kind) -> Freshness {
    match offer.stale {
        true => Freshness::NONE,
        false => offer.catalog.facts(kind).freshness,
    }
}

fn target(
    server: &Arc<str>,
    item: &Item,
    at: usize,
    prepared: Option<&mut PreparedTool>,
    control: Option<&Arc<Control>>,
) -> RouteTarget {
    let (headers, wrapped, task_only) = match prepared {
        Some(prepared) => (
            std::mem::take(&mut prepared.headers),
            prepared.wrapped,
            prepared.task_only,
        ),
        None => Default::default(),
    };
    RouteTarget {
        server: server.clone(),
        name: item.key.clone(),
        headers,
        wrapped,
        named_by_key: false,
        task_only,
        at,
        control: control.cloned(),
    }
}

/// What one server offers to a view of many.
#[derive(Clone, Copy)]
pub(super) struct ServerOffer<'a> {
    pub server: &'a Arc<str>,
    pub offer: &'a Offer,
    /// Whether anything of it is shown.
    pub shown: bool,
    /// Set where it is Portway itself.
    pub control: Option<&'a Arc<Control>>,
}

/// All servers. Names are given over all of them, so that no filter changes
/// one; then sorted, since that is the one order that no server can disturb.
fn everything(
    snapshot: &Snapshot,
    filter: Option<&Filter>,
    control: Option<&Arc<Control>>,
) -> View {
    let mut view = View::empty(None, EndpointInfo::ours());
    let admits = |server: &str| filter.is_none_or(|filter| filter.admits(server));
    let mut offers = Vec::new();
    for (server, its) in &snapshot.servers {
        let shown = admits(server);
        match &its.offer {
            Some(offer) => offers.push(ServerOffer {
                server,
                offer,
                shown,
                control: None,
            }),
            None if shown => view.absent.push((naming::start(server), server.clone())),
            None => {}
        }
    }
    let shown = || offers.iter().filter(|offered| offered.shown);
    view.servers = shown().map(|offered| offered.server.clone()).collect();
    for kind in Kind::ALL {
        let freshness = shown().map(|offered| fresh(offered.offer, kind));
        view.lists[kind as usize].freshness =
            freshness.reduce(Freshness::and).unwrap_or(Freshness::NONE);
    }
    // Last: it has nothing but tools, and they are no less fresh for it.
    if let Some(control) = control
        && let Some(offer) = control.offer(snapshot)
    {
        offers.push(ServerOffer {
            server: control.name(),
            offer,
            shown: admits(control.name()),
            control: Some(control),
        });
    }
    let shown = offers.iter().filter(|offered| offered.shown);
    let said = shown.map(|one| (&**one.server, one.offer.peer.instructions.as_deref()));
    view.hello.instructions = instructions::joined(INTRODUCTION, said);
    // Before the tools: who lists a page has more right to it than who
    // mentions one.
    for kind in [Kind::Resources, Kind::Templates] {
        resources(&mut view, &offers, kind);
    }
    tools(&mut view, &offers, filter);
    prompts(&mut view, &offers);
    view
}

/// The entries of one kind with their names, by name.
pub(super) fn named<'a>(
    offers: &[ServerOffer<'a>],
    kind: Kind,
) -> Vec<(String, ServerOffer<'a>, &'a Item)> {
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

fn tools(view: &mut View, offers: &[ServerOffer<'_>], filter: Option<&Filter>) {
    for (name, offered, item) in named(offers, Kind::Tools) {
        let ServerOffer { server, offer, .. } = offered;
        if filter.is_some_and(|filter| !filter.allows(server, &item.key)) {
            continue;
        }
        if let Some(uri) = app_of(item) {
            view.verbatim.entry(uri).or_insert_with(|| server.clone());
        }
        let raw = entry::renamed(item, &name);
        let mut prepared = entry::tool(raw, offer.peer.era, offer.stale);
        let list = &mut view.lists[Kind::Tools as usize];
        let at = list.entries.len();
        let mut target = target(server, item, at, Some(&mut prepared), offered.control);
        target.named_by_key = true;
        view.tools.insert(name, target);
        list.entries.push(prepared.entry);
    }
}

/// The page of a tool that has one (MCP Apps), which need not be listed.
pub(super) fn app_of(item: &Item) -> Option<String> {
    if !item.raw.get().contains("ui://") {
        return None;
    }
    let uri = text(member(
        member(member(&item.raw, "_meta")?, "ui")?,
        "resourceUri",
    )?)?;
    uris::stays(&uri).then(|| uri.into_owned())
}

pub(super) fn prompts(view: &mut View, offers: &[ServerOffer<'_>]) {
    for (name, ServerOffer { server, offer, .. }, item) in named(offers, Kind::Prompts) {
        let entry = ListEntry::same(entry::renamed(item, &name), offer.stale);
        let list = &mut view.lists[Kind::Prompts as usize];
        let mut target = target(server, item, list.entries.len(), None, None);
        target.named_by_key = true;
        list.entries.push(entry);
        view.prompts.insert(name, target);
    }
}

/// In the order of servers, each in its own.
pub(super) fn resources(view: &mut View, offers: &[ServerOffer<'_>], kind: Kind) {
    let shown = offers.iter().filter(|offered| offered.shown);
    for ServerOffer { server, offer, .. } in shown {
        for item in offer.catalog.items(kind) {
            let uri = uris::shared(server, &item.key);
            if uris::stays(&uri) {
                let owner = view.verbatim.entry(item.key.clone());
                let owner = owner.or_insert_with(|| (*server).clone());
                if owner != *server {
                    tracing::warn!(%server, "{uri:?} of server {server} is hidden by that of {owner}");
                    continue;
                }
            }
            let entry = ListEntry::same(entry::renamed(item, &uri), offer.stale);
            view.lists[kind as usize].entries.push(entry);
        }
    }
}
