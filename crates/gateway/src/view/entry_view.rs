//! Making the view of an entry: the tools bound to it under the names of their
//! bindings, the tools of its filter (SPEC D7), and the resources and prompts of
//! the servers that it exposes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::View;
use super::build::{self, ServerOffer};
use super::info::EndpointInfo;
use super::instructions;
use super::links::Links;
use super::list_entry;
use super::texts::ToolTexts;
use crate::control::{self, Control};
use crate::naming;
use crate::seal::Seal;
use config::filters::Filter;
use fleet::Snapshot;
use fleet::catalog::{CatalogItem, ListKind};
use store::{Grant, ToolRecord};
use wire::result::Freshness;

/// The sources of an entry's view, except its grant.
pub(super) struct EntryContext<'a> {
    pub seal: &'a Arc<Seal>,
    pub snapshot: &'a Snapshot,
    pub control: Option<&'a Arc<Control>>,
    /// Whether the entry's owner may use a server.
    pub may_use: &'a dyn Fn(&str) -> bool,
    /// A named filter that narrows it.
    pub filter: Option<&'a Filter>,
    pub texts: &'a ToolTexts,
}

impl EntryContext<'_> {
    fn admits(&self, server: &str) -> bool {
        (self.may_use)(server) && self.filter.is_none_or(|filter| filter.admits(server))
    }

    fn allows(&self, server: &str, tool: &str) -> bool {
        (self.may_use)(server) && self.filter.is_none_or(|filter| filter.allows(server, tool))
    }
}

impl View {
    pub(super) fn of_entry(grant: &Arc<Grant>, context: &EntryContext<'_>) -> View {
        let exposes = &grant.exposes;
        let mut view = View::empty(None, EndpointInfo::of_entry(exposes));
        let exposed = |servers: &[String], server: &str| {
            servers.iter().any(|one| one == server) && context.admits(server)
        };
        let resources = build::offers(context.snapshot, |server| {
            exposed(&exposes.resources, server)
        });
        view.servers = build::shown_servers(&resources);
        for kind in [ListKind::Resources, ListKind::Templates] {
            view.lists[kind as usize].freshness = build::freshness(&resources, kind);
            build::add_resources(&mut view, &resources, kind);
        }
        if !exposes.prompts.is_empty() {
            let shown = |server: &str| exposed(&exposes.prompts, server);
            let prompts = build::offers(context.snapshot, shown);
            let freshness = build::freshness(&prompts, ListKind::Prompts);
            view.lists[ListKind::Prompts as usize].freshness = freshness;
            build::add_prompts(&mut view, &prompts);
        }
        let mut links = Links {
            grant: grant.clone(),
            seal: context.seal.clone(),
            hidden: hidden(grant, context),
            matched: Vec::new(),
            pages: HashMap::new(),
        };
        let bound = bound_tools(&mut view, &mut links, context);
        let matched = matched_tools(&mut view, &mut links, context);
        let freshness = bound.into_iter().chain(matched).reduce(Freshness::and);
        view.lists[ListKind::Tools as usize].freshness = freshness.unwrap_or(Freshness::NONE);
        view.info.instructions = instructions(&view, context);
        view.links = Some(links);
        view
    }
}

/// The granted tools that are not shown: their servers are closed to users, or
/// a filter does not let them through.
fn hidden(grant: &Grant, context: &EntryContext<'_>) -> HashSet<usize> {
    let tools = grant.tools.iter().enumerate();
    let hidden = tools.filter(|(_, tool)| !context.allows(&tool.server, &tool.tool));
    hidden.map(|(number, _)| number).collect()
}

/// The instructions of all servers that the view shows anything of.
fn instructions(view: &View, context: &EntryContext<'_>) -> Option<Box<RawValue>> {
    let named = view.tools.values().chain(view.prompts.values());
    let named = named.map(|target| &target.server);
    let servers: BTreeSet<&Arc<str>> = named.chain(&view.servers).collect();
    let texts = servers.into_iter().map(|server| {
        let offer = control::offer(context.snapshot, context.control, server);
        let text = offer.and_then(|offer| offer.peer.instructions.as_deref());
        (&**server, text)
    });
    instructions::joined("", texts)
}

/// In the grant's own order, which is that of the names.
fn bound_tools(
    view: &mut View,
    links: &mut Links,
    context: &EntryContext<'_>,
) -> Option<Freshness> {
    let grant = links.grant.clone();
    let control = context.control.filter(|_| Control::may_be_given(&grant));
    let mut freshness: Option<Freshness> = None;
    for (number, granted) in grant.tools.iter().enumerate() {
        let found = find(granted, context.snapshot, control);
        let Some((offered, item)) = found.filter(|_| !links.hidden.contains(&number)) else {
            continue;
        };
        let its = offered.freshness(ListKind::Tools);
        freshness = Some(freshness.map_or(its, |all| all.and(its)));
        if let Some(uri) = build::app_of(item) {
            links.pages.entry(uri).or_insert(number);
        }
        let prepared = context.texts.get(granted, item, offered.offer);
        let name = (granted.name.clone(), false);
        view.add(ListKind::Tools, name, prepared, (offered, item));
    }
    freshness
}

/// The tools of the entry's filter, under the names of the shared endpoint; a
/// name that a binding has stays the binding's.
fn matched_tools(
    view: &mut View,
    links: &mut Links,
    context: &EntryContext<'_>,
) -> Option<Freshness> {
    let grant = links.grant.clone();
    let filter = grant.filter.as_ref()?;
    let admits = |server: &str| filter.may_grant(server) && context.admits(server);
    view.absent = build::absent(context.snapshot, admits);
    let mut offers = build::offers(context.snapshot, admits);
    let freshness = build::freshness(&offers, ListKind::Tools);
    // Portway's own tools count for the names, and are given by bindings only.
    let control = ServerOffer::of_control(context.control, context.snapshot, |_| false);
    offers.extend(control);
    let key = |tool: &Arc<ToolRecord>| (tool.server.clone(), tool.tool.clone());
    let bound: HashSet<(String, String)> = grant.tools.iter().map(key).collect();
    for (name, offered, item) in build::named(&offers, ListKind::Tools) {
        let server = offered.server;
        let given = filter.grants(server, &item.key) && context.allows(server, &item.key);
        if !given || bound.contains(&(server.to_string(), item.key.clone())) {
            continue;
        }
        let taken = |name: &str| grant.tool(name).is_some() || view.tools.contains_key(name);
        let name = naming::unless(name, (&**server, item.key.as_str()), taken);
        if let Some(uri) = build::app_of(item) {
            let number = grant.tools.len() + links.matched.len();
            links.pages.entry(uri).or_insert(number);
        }
        links.matched.push((server.clone(), item.key.clone()));
        let (raw, offer) = (list_entry::renamed(item, &name), offered.offer);
        let prepared = list_entry::tool(raw, offer.peer.era, offer.stale);
        view.add(ListKind::Tools, (name, true), prepared, (offered, item));
    }
    (!links.matched.is_empty()).then_some(freshness)
}

fn find<'a>(
    granted: &ToolRecord,
    snapshot: &'a Snapshot,
    control: Option<&'a Arc<Control>>,
) -> Option<(ServerOffer<'a>, &'a CatalogItem)> {
    let offer = control::offer(snapshot, control, &granted.server)?;
    let (server, control) = match snapshot.servers.get_key_value(granted.server.as_str()) {
        Some((server, _)) => (server, None),
        None => (control?.name(), control),
    };
    let mut items = offer.catalog.items(ListKind::Tools).iter();
    let item = items.find(|item| item.key == granted.tool)?;
    let offered = ServerOffer {
        server,
        offer,
        shown: true,
        control,
    };
    Some((offered, item))
}
