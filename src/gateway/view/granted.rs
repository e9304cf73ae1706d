//! Making the view of an entry: the tools it was given, under the names it
//! was given, and of resources and prompts what its owner switched on.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::build::{self, Offered};
use super::entry;
use super::hello::Hello;
use super::links::Links;
use super::{Target, View};
use crate::fleet::Snapshot;
use crate::fleet::catalog::{Item, Kind};
use crate::gateway::control::{self, Control};
use crate::gateway::seal::Seal;
use crate::store::{Grant, GrantedTool};
use crate::wire::invisible::without_tags;
use crate::wire::object::set_member;
use crate::wire::result::Freshness;

impl View {
    pub(super) fn of_entry(
        grant: &Arc<Grant>,
        seal: &Arc<Seal>,
        snapshot: &Snapshot,
        control: Option<&Arc<Control>>,
    ) -> View {
        let control = control.filter(|_| Control::may_be_given(grant));
        let exposes = &grant.exposes;
        let mut view = View::empty(None, Hello::of_entry(exposes));
        let exposed = |kind: Kind, server: &str| {
            let servers = match kind {
                Kind::Resources | Kind::Templates => &exposes.resources,
                Kind::Prompts => &exposes.prompts,
                Kind::Tools => return false,
            };
            servers.iter().any(|one| one == server)
        };
        let resources = offers(snapshot, |server| exposed(Kind::Resources, server));
        let shown = resources.iter().filter(|offered| offered.shown);
        view.servers = shown.map(|offered| offered.server.clone()).collect();
        for kind in [Kind::Resources, Kind::Templates] {
            view.lists[kind as usize].freshness = freshness(&resources, kind);
            build::resources(&mut view, &resources, kind);
        }
        if !exposes.prompts.is_empty() {
            let prompts = offers(snapshot, |server| exposed(Kind::Prompts, server));
            view.lists[Kind::Prompts as usize].freshness = freshness(&prompts, Kind::Prompts);
            build::prompts(&mut view, &prompts);
        }
        let pages = tools(&mut view, grant, snapshot, control);
        view.links = Some(Links {
            grant: grant.clone(),
            seal: seal.clone(),
            pages,
        });
        view
    }
}

/// What there is, and of whom anything is shown.
fn offers<'a>(snapshot: &'a Snapshot, shown: impl Fn(&str) -> bool) -> Vec<Offered<'a>> {
    let offered = |(server, its): (&'a Arc<str>, &'a Arc<crate::fleet::ServerView>)| {
        Some(Offered {
            server,
            offer: its.offer.as_deref()?,
            shown: shown(server),
            control: None,
        })
    };
    snapshot.servers.iter().filter_map(offered).collect()
}

fn freshness(offers: &[Offered<'_>], kind: Kind) -> Freshness {
    let shown = offers.iter().filter(|offered| offered.shown);
    let each = shown.map(|offered| build::fresh(offered.offer, kind));
    each.reduce(Freshness::and).unwrap_or(Freshness::NONE)
}

/// In the grant's own order, which is that of the names. Returns the pages of
/// those that have one.
fn tools(
    view: &mut View,
    grant: &Grant,
    snapshot: &Snapshot,
    control: Option<&Arc<Control>>,
) -> HashMap<String, usize> {
    let mut pages = HashMap::new();
    let mut freshness: Option<Freshness> = None;
    for (number, granted) in grant.tools.iter().enumerate() {
        let found = find(granted, snapshot, control);
        let Some((offered, item)) = found else {
            continue;
        };
        let offer = offered.offer;
        let its = build::fresh(offer, Kind::Tools);
        freshness = Some(freshness.map_or(its, |all| all.and(its)));
        if let Some(uri) = build::app_of(item) {
            pages.entry(uri).or_insert(number);
        }
        let raw = described(entry::renamed(item, &granted.name), granted);
        let mut prepared = entry::tool(raw, offer.peer.era, offer.stale);
        let target = Target {
            server: offered.server.clone(),
            name: item.key.clone(),
            headers: std::mem::take(&mut prepared.headers),
            wrapped: prepared.wrapped,
            named_by_key: false,
            at: view.lists[Kind::Tools as usize].entries.len(),
            control: offered.control.cloned(),
        };
        view.tools.insert(granted.name.clone(), target);
        view.lists[Kind::Tools as usize]
            .entries
            .push(prepared.entry);
    }
    view.lists[Kind::Tools as usize].freshness = freshness.unwrap_or(Freshness::NONE);
    pages
}

fn find<'a>(
    granted: &GrantedTool,
    snapshot: &'a Snapshot,
    control: Option<&'a Arc<Control>>,
) -> Option<(Offered<'a>, &'a Item)> {
    let offer = control::offer(snapshot, control, &granted.server)?;
    let (server, control) = match snapshot.servers.get_key_value(granted.server.as_str()) {
        Some((server, _)) => (server, None),
        None => (control?.name(), control),
    };
    let mut items = offer.catalog.items(Kind::Tools).iter();
    let item = items.find(|item| item.key == granted.tool)?;
    let offered = Offered {
        server,
        offer,
        shown: true,
        control,
    };
    Some((offered, item))
}

fn described(raw: Arc<RawValue>, granted: &GrantedTool) -> Arc<RawValue> {
    let Some(description) = &granted.description else {
        return raw;
    };
    let quoted = serde_json::Value::from(description.as_str()).to_string();
    match RawValue::from_string(without_tags(&quoted).into_owned()) {
        Ok(description) => Arc::from(set_member(&raw, "description", &description)),
        Err(_) => raw,
    }
}
