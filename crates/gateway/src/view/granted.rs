//! Making the view of an entry: the tools bound to it, under the names they
//! were given, what its filter gives beside them (SPEC D7), and of resources
//! and prompts what its owner switched on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::build::{self, ServerOffer};
use super::entry::{self, PreparedTool};
use super::hello::EndpointInfo;
use super::instructions;
use super::links::{Links, MatchedTool};
use super::texts::ToolTexts;
use super::{RouteTarget, View};
use crate::control::{self, Control};
use crate::naming;
use crate::seal::Seal;
use config::filters::Filter;
use fleet::Snapshot;
use fleet::catalog::{Item, Kind};
use store::{Grant, ToolRecord};
use wire::result::Freshness;

/// What an entry is made of beside its grant.
pub(super) struct EntryContext<'a> {
    pub seal: &'a Arc<Seal>,
    pub snapshot: &'a Snapshot,
    pub control: Option<&'a Arc<Control>>,
    /// Whether the entry's owner may use a server.
    pub open: &'a dyn Fn(&str) -> bool,
    /// A named filter that narrows it.
    pub narrowing: Option<&'a Filter>,
    pub texts: &'a ToolTexts,
}

impl EntryContext<'_> {
    fn admits(&self, server: &str) -> bool {
        (self.open)(server) && self.narrowing.is_none_or(|filter| filter.admits(server))
    }

    fn allows(&self, server: &str, tool: &str) -> bool {
        (self.open)(server)
            && self
                .narrowing
                .is_none_or(|filter| filter.allows(server, tool))
    }
}

impl View {
    pub(super) fn of_entry(grant: &Arc<Grant>, around: &EntryContext<'_>) -> View {
        let exposes = &grant.exposes;
        let mut view = View::empty(None, EndpointInfo::of_entry(exposes));
        let exposed = |servers: &[String], server: &str| {
            servers.iter().any(|one| one == server) && around.admits(server)
        };
        let resources = offers(around, |server| exposed(&exposes.resources, server));
        let shown = resources.iter().filter(|offered| offered.shown);
        view.servers = shown.map(|offered| offered.server.clone()).collect();
        for kind in [Kind::Resources, Kind::Templates] {
            view.lists[kind as usize].freshness = freshness(&resources, kind);
            build::resources(&mut view, &resources, kind);
        }
        if !exposes.prompts.is_empty() {
            let prompts = offers(around, |server| exposed(&exposes.prompts, server));
            view.lists[Kind::Prompts as usize].freshness = freshness(&prompts, Kind::Prompts);
            build::prompts(&mut view, &prompts);
        }
        let mut links = Links {
            grant: grant.clone(),
            seal: around.seal.clone(),
            hidden: hidden(grant, around),
            matched: Vec::new(),
            pages: HashMap::new(),
        };
        let bound = bound_tools(&mut view, &mut links, around);
        let matched = matched_tools(&mut view, &mut links, around);
        let freshness = bound.into_iter().chain(matched).reduce(Freshness::and);
        view.lists[Kind::Tools as usize].freshness = freshness.unwrap_or(Freshness::NONE);
        view.hello.instructions = said(&view, around);
        view.links = Some(links);
        view
    }
}

/// The granted tools that are not given: their servers are closed to users,
/// or a filter does not let them through.
fn hidden(grant: &Grant, around: &EntryContext<'_>) -> HashSet<usize> {
    let tools = grant.tools.iter().enumerate();
    let hidden = tools.filter(|(_, tool)| !around.allows(&tool.server, &tool.tool));
    hidden.map(|(number, _)| number).collect()
}

/// What the servers say of which the entry has anything.
fn said(view: &View, around: &EntryContext<'_>) -> Option<Box<RawValue>> {
    let named = view.tools.values().chain(view.prompts.values());
    let named = named.map(|target| &target.server);
    let servers: BTreeSet<&Arc<str>> = named.chain(&view.servers).collect();
    let texts = servers.into_iter().map(|server| {
        let offer = control::offer(around.snapshot, around.control, server);
        (
            &**server,
            offer.and_then(|offer| offer.peer.instructions.as_deref()),
        )
    });
    instructions::joined("", texts)
}

/// What there is, and of whom anything is shown.
fn offers<'a>(around: &EntryContext<'a>, shown: impl Fn(&str) -> bool) -> Vec<ServerOffer<'a>> {
    let offered = |(server, its): (&'a Arc<str>, &'a Arc<fleet::ServerView>)| {
        Some(ServerOffer {
            server,
            offer: its.offer.as_deref()?,
            shown: shown(server),
            control: None,
        })
    };
    let servers = around.snapshot.servers.iter();
    servers.filter_map(offered).collect()
}

fn freshness(offers: &[ServerOffer<'_>], kind: Kind) -> Freshness {
    let shown = offers.iter().filter(|offered| offered.shown);
    let each = shown.map(|offered| build::fresh(offered.offer, kind));
    each.reduce(Freshness::and).unwrap_or(Freshness::NONE)
}

/// In the grant's own order, which is that of the names.
fn bound_tools(view: &mut View, links: &mut Links, around: &EntryContext<'_>) -> Option<Freshness> {
    let grant = links.grant.clone();
    let control = around.control.filter(|_| Control::may_be_given(&grant));
    let mut freshness: Option<Freshness> = None;
    for (number, granted) in grant.tools.iter().enumerate() {
        let found = find(granted, around.snapshot, control);
        let Some((offered, item)) = found.filter(|_| !links.hidden.contains(&number)) else {
            continue;
        };
        let its = build::fresh(offered.offer, Kind::Tools);
        freshness = Some(freshness.map_or(its, |all| all.and(its)));
        if let Some(uri) = build::app_of(item) {
            links.pages.entry(uri).or_insert(number);
        }
        let prepared = around.texts.get(granted, item, offered.offer);
        add(view, granted.name.clone(), prepared, (offered, item), false);
    }
    freshness
}

/// What the entry's filter gives beside its bindings, under the names of the
/// shared endpoint; a name that a binding has stays the binding's.
fn matched_tools(
    view: &mut View,
    links: &mut Links,
    around: &EntryContext<'_>,
) -> Option<Freshness> {
    let grant = links.grant.clone();
    let filter = grant.filter.as_ref()?;
    let admits = |server: &str| filter.may_grant(server) && around.admits(server);
    for (server, its) in &around.snapshot.servers {
        if its.offer.is_none() && admits(server) {
            view.absent.push((naming::start(server), server.clone()));
        }
    }
    let mut offers = offers(around, admits);
    let freshness = freshness(&offers, Kind::Tools);
    // Portway's own tools count for the names, and are given by bindings only.
    if let Some(control) = around.control
        && let Some(offer) = control.offer(around.snapshot)
    {
        offers.push(ServerOffer {
            server: control.name(),
            offer,
            shown: false,
            control: Some(control),
        });
    }
    let key = |tool: &Arc<ToolRecord>| (tool.server.clone(), tool.tool.clone());
    let bound: HashSet<(String, String)> = grant.tools.iter().map(key).collect();
    for (name, offered, item) in build::named(&offers, Kind::Tools) {
        let server = offered.server;
        let given = filter.grants(server, &item.key) && around.allows(server, &item.key);
        if !given || bound.contains(&(server.to_string(), item.key.clone())) {
            continue;
        }
        let taken = |name: &str| grant.tool(name).is_some() || view.tools.contains_key(name);
        let name = naming::unless(name, (&**server, item.key.as_str()), taken);
        if let Some(uri) = build::app_of(item) {
            let number = grant.tools.len() + links.matched.len();
            links.pages.entry(uri).or_insert(number);
        }
        links.matched.push(MatchedTool {
            server: server.clone(),
            tool: item.key.clone(),
        });
        let (raw, offer) = (entry::renamed(item, &name), offered.offer);
        let prepared = entry::tool(raw, offer.peer.era, offer.stale);
        add(view, name, prepared, (offered, item), true);
    }
    (!links.matched.is_empty()).then_some(freshness)
}

fn add(
    view: &mut View,
    name: String,
    mut prepared: PreparedTool,
    (offered, item): (ServerOffer<'_>, &Item),
    named_by_key: bool,
) {
    let list = &mut view.lists[Kind::Tools as usize];
    let target = RouteTarget {
        server: offered.server.clone(),
        name: item.key.clone(),
        headers: std::mem::take(&mut prepared.headers),
        wrapped: prepared.wrapped,
        named_by_key,
        task_only: prepared.task_only,
        at: list.entries.len(),
        control: offered.control.cloned(),
    };
    list.entries.push(prepared.entry);
    view.tools.insert(name, target);
}

fn find<'a>(
    granted: &ToolRecord,
    snapshot: &'a Snapshot,
    control: Option<&'a Arc<Control>>,
) -> Option<(ServerOffer<'a>, &'a Item)> {
    let offer = control::offer(snapshot, control, &granted.server)?;
    let (server, control) = match snapshot.servers.get_key_value(granted.server.as_str()) {
        Some((server, _)) => (server, None),
        None => (control?.name(), control),
    };
    let mut items = offer.catalog.items(Kind::Tools).iter();
    let item = items.find(|item| item.key == granted.tool)?;
    let offered = ServerOffer {
        server,
        offer,
        shown: true,
        control,
    };
    Some((offered, item))
}
