//! What one endpoint shows, prepared: names, lists as bytes, and the way back
//! from a name to its server.

mod aliases;
mod build;
mod entry;
#[cfg(test)]
pub(super) mod fixture;
mod formatted;
mod granted;
mod hello;
mod instructions;
mod kept;
mod links;
mod list;
mod shelf;
#[cfg(test)]
mod tests;
mod texts;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::control::Control;
use super::text::PreparedResult;
use super::uris::{self, UriRole};
use fleet::catalog::Kind;
use wire::header::ParamHeader;
use wire::{Era, RpcError, code};

pub use kept::Views;

pub use formatted::ToolList;

use aliases::Aliases;
use formatted::FormattedLists;
use hello::EndpointInfo;
use links::{Links, ToolLink};
use list::ViewList;

/// The catalog of one scope at one moment. Immutable.
pub struct View {
    /// The only server, on an endpoint of its own.
    only: Option<Arc<str>>,
    hello: EndpointInfo,
    lists: [ViewList; 4],
    tools: HashMap<String, RouteTarget>,
    prompts: HashMap<String, RouteTarget>,
    /// Whose resources can be read.
    servers: BTreeSet<Arc<str>>,
    /// URIs that stay as they are, and whose they are.
    verbatim: HashMap<String, Arc<str>>,
    /// What an entry's tools may have linked to.
    links: Option<Links>,
    /// How names of servers start that are defined and not there.
    absent: Vec<(String, Arc<str>)>,
    /// Why there is nothing to show.
    fault: Option<RpcError>,
    formatted: FormattedLists,
    aliases: Aliases,
    /// Set where Portway itself is the only server.
    control: Option<Arc<Control>>,
}

/// Where a tool or prompt of a view really is.
#[derive(Debug)]
pub struct RouteTarget {
    pub server: Arc<str>,
    /// Its name there.
    pub name: String,
    /// The headers a modern client must send with it.
    pub headers: Vec<ParamHeader>,
    /// Its `outputSchema` was wrapped for legacy clients, so its results are.
    pub wrapped: bool,
    /// Its name in the view is made of its server's and its own (SPEC D2).
    pub(super) named_by_key: bool,
    /// It runs as a task and not otherwise, and tasks are not carried.
    pub task_only: bool,
    /// Where in its list it stands.
    pub(super) at: usize,
    /// Set where Portway itself is that server.
    pub control: Option<Arc<Control>>,
}

/// Where something that a client is handed comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultOrigin<'a> {
    pub server: &'a str,
    /// The granted tool, by its own name, where an entry got it by that.
    pub via: Option<&'a str>,
}

/// A client as lists see it: which spelling it gets.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    pub era: Era,
    pub version: &'a str,
}

impl View {
    pub fn tool(&self, visible: &str) -> Option<&RouteTarget> {
        let listed = self.tools.get(visible);
        listed.or_else(|| Some(self.qualified_tool(visible)?.1))
    }

    pub fn prompt(&self, visible: &str) -> Option<&RouteTarget> {
        let listed = self.prompts.get(visible);
        listed.or_else(|| Some(self.qualified_prompt(visible)?.1))
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

    /// The server that a tool or prompt would be of, by the look of its name,
    /// if that server is not there.
    pub fn absent(&self, visible: &str) -> Option<&Arc<str>> {
        let starts = |(start, _): &&(String, Arc<str>)| visible.starts_with(start.as_str());
        self.absent.iter().find(starts).map(|(_, server)| server)
    }

    /// Portway itself, on an endpoint of its own.
    pub fn control(&self) -> Option<&Arc<Control>> {
        self.control.as_ref()
    }

    /// Whether there is nothing to show at all.
    pub fn is_empty(&self) -> bool {
        self.fault.is_some()
    }

    /// What it takes up in memory, about, before any list was asked for.
    fn weight(&self) -> usize {
        let lists: usize = self.lists.iter().map(ViewList::weight).sum();
        let names = self.tools.len() + self.prompts.len() + self.verbatim.len();
        let said = self.hello.instructions.as_ref();
        let said = said.map_or(0, |text| text.get().len());
        4096 + lists + names * 256 + 2 * said
    }

    /// What the lists made so far take up beside it.
    fn grown(&self) -> usize {
        let pages: usize = self.lists.iter().map(ViewList::paged).sum();
        pages + self.formatted()
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

    /// The one server that has URIs of the same authority: pages refer to
    /// others that no list shows.
    fn related(&self, uri: &str) -> Option<&Arc<str>> {
        let wanted = uris::authority(uri)?;
        let mut owners = self.verbatim.iter();
        let owners = owners
            .by_ref()
            .filter(|(known, _)| uris::authority(known) == Some(wanted));
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

    /// Whether clients may expect anything of this capability.
    pub fn has(&self, capability: &str) -> bool {
        self.hello.offers(capability)
    }

    /// A server's result with its URIs as this endpoint's clients know them.
    pub(crate) fn result_to_client<'a>(
        &self,
        origin: ResultOrigin<'_>,
        method: &str,
        result: &'a RawValue,
    ) -> Cow<'a, RawValue> {
        match self.only {
            Some(_) => Cow::Borrowed(result),
            None => uris::result(&|uri, role| self.spelled(origin, uri, role), method, result),
        }
    }

    /// A server's error with the URI as this endpoint's clients know it.
    pub(crate) fn error_to_client(&self, origin: ResultOrigin<'_>, error: RpcError) -> RpcError {
        match self.only {
            Some(_) => error,
            None => uris::error(&|uri, role| self.spelled(origin, uri, role), error),
        }
    }

    fn spelled(&self, origin: ResultOrigin<'_>, uri: &str, role: UriRole) -> Option<String> {
        let server = origin.server;
        match (&self.links, origin.via) {
            (Some(links), Some(tool)) if !self.servers.contains(server) => {
                links.hand(server, tool, uri, role)
            }
            _ => uris::to_shared(server)(uri, role),
        }
    }

    /// The tool that handed a URI to this entry, and the URI it has at that
    /// tool's server.
    pub fn handed<'a>(&'a self, uri: &'a str) -> Option<ToolLink<'a>> {
        self.links.as_ref()?.open(uri)
    }

    /// The result of a list method, whole and spelled for its reader.
    pub fn list(
        &self,
        method: &str,
        reader: Reader<'_>,
        params: Option<&RawValue>,
    ) -> Result<PreparedResult, RpcError> {
        self.offers(method)?;
        let kind = Kind::of_method(method).ok_or_else(|| unknown(method))?;
        let list = &self.lists[kind as usize];
        if list.missing {
            return Err(unknown(method));
        }
        list.page(reader.era, params)
    }

    /// The entries of a list as modern clients see them, all pages.
    pub fn listed(&self, kind: Kind) -> Vec<Cow<'_, RawValue>> {
        let entries = self.lists[kind as usize].entries.iter();
        entries.map(|entry| entry.shown(Era::Modern)).collect()
    }

    /// Whether anybody here answers a method: a server must not be asked for
    /// what it never said it can do.
    pub fn offers(&self, method: &str) -> Result<(), RpcError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let needed = wire::method::find(method).and_then(|method| method.capability);
        match needed {
            Some(capability) if !self.hello.offers(capability) => Err(unknown(method)),
            _ => Ok(()),
        }
    }

    /// Names the tools as they are now: equal as long as nothing about them
    /// changes, whatever order they come in.
    pub fn hash(&self) -> String {
        self.lists[Kind::Tools as usize].hash()
    }
}

fn unknown(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("{method} is not available"))
}
