//! The catalog of one endpoint, prepared: names, lists as bytes, and the server
//! behind each name.

mod build;
mod cache;
mod entry_cache;
mod entry_view;
#[cfg(test)]
pub(super) mod fixture;
mod formatted;
mod info;
mod instructions;
mod links;
mod list;
mod list_entry;
#[cfg(test)]
mod tests;
mod texts;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::body::PreparedResult;
use super::changes::ListSet;
use super::control::Control;
use super::naming;
use super::uris::{self, UriRole};
use fleet::catalog::ListKind;
use wire::header::ParamHeader;
use wire::{Era, RpcError, code};

pub use cache::Views;
use formatted::FormattedLists;
pub use formatted::ToolList;
use info::EndpointInfo;
use links::{Links, ToolLink};
use list::ViewList;

/// The catalog of one scope at one moment. Immutable.
pub struct View {
    /// The only server, at an endpoint of its own.
    only: Option<Arc<str>>,
    info: EndpointInfo,
    lists: [ViewList; 4],
    tools: HashMap<String, RouteTarget>,
    prompts: HashMap<String, RouteTarget>,
    /// The servers whose resources can be read.
    servers: BTreeSet<Arc<str>>,
    /// URIs that are the same at every endpoint, and their servers.
    verbatim: HashMap<String, Arc<str>>,
    /// The links in results of an entry's tools.
    links: Option<Links>,
    /// Servers that are defined and not connected, by their name prefix.
    absent: Vec<(String, Arc<str>)>,
    /// The reason that the view is empty.
    fault: Option<RpcError>,
    formatted: FormattedLists,
    /// From the qualified names (SPEC D2) to those of the view, of tools and of
    /// prompts; made when the first is called.
    aliases: [OnceLock<HashMap<String, String>>; 2],
    /// Set where Portway itself is the only server.
    control: Option<Arc<Control>>,
}

/// The server's tool or prompt behind a name of a view.
pub struct RouteTarget {
    pub server: Arc<str>,
    /// Its name at the server.
    pub name: Arc<str>,
    pub traits: ToolTraits,
    /// Its name in the view is made of its server's and its own (SPEC D2).
    pub(super) named_by_key: bool,
    /// Its position in its list.
    pub(super) at: usize,
    /// Set where Portway itself is that server.
    pub(super) control: Option<Arc<Control>>,
}

/// The traits of a tool that its calls depend on; a prompt has none.
#[derive(Clone, Debug, Default)]
pub struct ToolTraits {
    /// The headers that a modern client must send with it.
    pub headers: Vec<ParamHeader>,
    /// Legacy clients see its `outputSchema`, and so its results, wrapped.
    pub(super) wrapped: bool,
    /// It runs only as a task, and Portway does not support tasks.
    pub(super) task_only: bool,
}

/// The server of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultOrigin<'a> {
    pub server: &'a str,
    /// The granted tool, by its server's name for it, where an entry has the
    /// result by that tool.
    pub linking_tool: Option<&'a str>,
}

impl View {
    pub fn tool(&self, visible: &str) -> Option<&RouteTarget> {
        let listed = self.tools.get(visible);
        listed.or_else(|| Some(self.qualified_tool(visible)?.1))
    }

    pub fn prompt(&self, visible: &str) -> Option<&RouteTarget> {
        let listed = self.prompts.get(visible);
        listed.or_else(|| Some(find_qualified(visible, &self.prompts, &self.aliases[1])?.1))
    }

    fn qualified_tool(&self, name: &str) -> Option<(&String, &RouteTarget)> {
        find_qualified(name, &self.tools, &self.aliases[0])
    }

    /// The tools whose names are made of their servers' and their own, in the
    /// order they are listed.
    pub fn tools_named_by_key(&self) -> Vec<(&str, &RouteTarget)> {
        let tools = self.tools.iter().filter(|(_, target)| target.named_by_key);
        let mut tools: Vec<_> = tools
            .map(|(name, target)| (name.as_str(), target))
            .collect();
        tools.sort_unstable_by_key(|(_, target)| target.at);
        tools
    }

    /// The server that a tool or prompt belongs to by its name, if that server
    /// is not connected.
    pub fn absent(&self, visible: &str) -> Option<&Arc<str>> {
        let starts = |(start, _): &&(String, Arc<str>)| visible.starts_with(start.as_str());
        self.absent.iter().find(starts).map(|(_, server)| server)
    }

    /// Portway itself, at an endpoint of its own.
    pub fn control(&self) -> Option<&Arc<Control>> {
        self.control.as_ref()
    }

    /// Whether there is nothing to show at all.
    pub fn is_empty(&self) -> bool {
        self.fault.is_some()
    }

    /// Its approximate size in memory, without the lists made on demand.
    fn weight(&self) -> usize {
        let lists: usize = self.lists.iter().map(ViewList::weight).sum();
        let names = self.tools.len() + self.prompts.len() + self.verbatim.len();
        let instructions = self.instructions().map_or(0, |text| text.get().len());
        4096 + lists + names * 256 + 2 * instructions
    }

    /// The size of the lists made on demand so far.
    fn grown(&self) -> usize {
        let pages: usize = self.lists.iter().map(ViewList::paged).sum();
        pages + self.formatted.weight()
    }

    /// The server of a resource, and its URI there.
    pub fn resource(&self, uri: &str) -> Option<(Arc<str>, String)> {
        if let Some(only) = &self.only {
            return Some((only.clone(), uri.to_owned()));
        }
        if uris::stays(uri) {
            let server = self.verbatim.get(uri).or_else(|| self.related(uri))?;
            return Some((server.clone(), uri.to_owned()));
        }
        let (server, own) = uris::split(uri)?;
        let server = self.servers.get(&*server)?;
        Some((server.clone(), own.to_owned()))
    }

    /// The only server with URIs of the same authority: pages refer to others
    /// that no list shows.
    fn related(&self, uri: &str) -> Option<&Arc<str>> {
        let wanted = uris::authority(uri)?;
        let known = self.verbatim.iter();
        let owners = known.filter(|(known, _)| uris::authority(known) == Some(wanted));
        let owners: BTreeSet<&Arc<str>> = owners.map(|(_, server)| server).collect();
        owners.first().filter(|_| owners.len() == 1).copied()
    }

    /// A server's URI as this endpoint's clients know it.
    pub(crate) fn uri_to_client(&self, server: &str, uri: &str) -> String {
        match self.only {
            Some(_) => uri.to_owned(),
            None => uris::shared(server, uri).into_owned(),
        }
    }

    /// Whether the endpoint declares a capability.
    pub fn has(&self, capability: &str) -> bool {
        self.info.offers(capability)
    }

    /// The lists that the endpoint declares.
    pub(crate) fn offered_lists(&self) -> ListSet {
        ListSet {
            tools: self.has("tools"),
            resources: self.has("resources"),
            prompts: self.has("prompts"),
        }
    }

    /// A server's result with its URIs as this endpoint's clients know them.
    pub(crate) fn result_to_client<'a>(
        &self,
        origin: ResultOrigin<'_>,
        method: &str,
        result: &'a str,
    ) -> Cow<'a, str> {
        match self.only {
            Some(_) => Cow::Borrowed(result),
            None => uris::result(
                &|uri, role| self.client_uri(origin, uri, role),
                method,
                result,
            ),
        }
    }

    /// A server's error with the URI as this endpoint's clients know it.
    pub(crate) fn error_to_client(&self, origin: ResultOrigin<'_>, error: RpcError) -> RpcError {
        match self.only {
            Some(_) => error,
            None => uris::error(&|uri, role| self.client_uri(origin, uri, role), error),
        }
    }

    fn client_uri(&self, origin: ResultOrigin<'_>, uri: &str, role: UriRole) -> Option<String> {
        let server = origin.server;
        match (&self.links, origin.linking_tool) {
            (Some(links), Some(tool)) if !self.servers.contains(server) => {
                links.marked(server, tool, uri, role)
            }
            _ => uris::to_shared(server)(uri, role),
        }
    }

    /// The entry's tool that linked to a URI.
    pub(crate) fn tool_link<'a>(&'a self, uri: &'a str) -> Option<ToolLink<'a>> {
        self.links.as_ref()?.open(uri)
    }

    /// The result of a list method.
    pub(crate) fn list(
        &self,
        method: &str,
        era: Era,
        params: Option<&RawValue>,
    ) -> Result<PreparedResult, RpcError> {
        self.offers(method)?;
        let kind = ListKind::of_method(method).ok_or_else(|| unknown(method))?;
        let list = &self.lists[kind as usize];
        if list.missing {
            return Err(unknown(method));
        }
        list.page(era, params)
    }

    /// All entries of a list as modern clients see them.
    pub fn listed(&self, kind: ListKind) -> Vec<Cow<'_, RawValue>> {
        let entries = self.lists[kind as usize].entries.iter();
        entries.map(|entry| entry.shown(Era::Modern)).collect()
    }

    /// Refuses a method without a server that declared its capability: a server
    /// must not get requests beyond what it declared.
    pub fn offers(&self, method: &str) -> Result<(), RpcError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match wire::method::find(method).and_then(|method| method.capability) {
            Some(capability) if !self.info.offers(capability) => Err(unknown(method)),
            _ => Ok(()),
        }
    }

    /// A hash of the tools in any order.
    pub fn hash(&self) -> String {
        self.lists[ListKind::Tools as usize].hash()
    }
}

/// A client that listed a tool while another server's had its plain name may
/// still call it by the qualified one.
fn find_qualified<'a>(
    name: &str,
    targets: &'a HashMap<String, RouteTarget>,
    aliases: &OnceLock<HashMap<String, String>>,
) -> Option<(&'a String, &'a RouteTarget)> {
    if !naming::is_qualified(name) {
        return None;
    }
    let aliases = aliases.get_or_init(|| {
        let named = targets.iter().filter(|(_, target)| target.named_by_key);
        let qualified = |target: &RouteTarget| naming::qualified(&target.server, &target.name);
        named
            .map(|(visible, target)| (qualified(target), visible.clone()))
            .collect()
    });
    targets.get_key_value(aliases.get(name)?)
}

fn unknown(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("{method} is not available"))
}
