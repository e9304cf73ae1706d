//! The links in results of an entry's tools (SPEC E12). A link to a server
//! whose resources the entry does not have gets a mark: a MAC of the entry, the
//! tool and the URI. It opens for that entry as long as the tool is granted, on
//! any replica, and nothing has to be stored. The same link always looks the
//! same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::seal::Seal;
use crate::uris::{self, UriRole};
use store::Grant;

pub(super) struct Links {
    pub grant: Arc<Grant>,
    pub seal: Arc<Seal>,
    /// The grant's tools that are not shown, by position.
    pub hidden: HashSet<usize>,
    /// The tools of the entry's filter: server and name there. Numbered after
    /// the grant's.
    pub matched: Vec<(Arc<str>, String)>,
    /// The pages of tools that have one (MCP Apps), by URI.
    pub pages: HashMap<String, usize>,
}

/// A URI in a result of an entry's tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolLink<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// As the server knows it.
    pub uri: &'a str,
}

impl Links {
    /// The server of a tool, and its name there.
    fn tool(&self, number: usize) -> Option<(&str, &str)> {
        let bound = &self.grant.tools;
        match bound.get(number) {
            Some(tool) => Some((&tool.server, &tool.tool)),
            None => {
                let (server, tool) = self.matched.get(number - bound.len())?;
                Some((server, tool))
            }
        }
    }

    /// The tool that linked to a URI, and the URI at the tool's server.
    pub(super) fn open<'a>(&'a self, uri: &'a str) -> Option<ToolLink<'a>> {
        if let Some(page) = self.pages.get(uri) {
            let (server, tool) = self.tool(*page)?;
            return Some(ToolLink { server, tool, uri });
        }
        let (mark, uri) = uris::unmarked(uri)?;
        let all = 0..self.grant.tools.len() + self.matched.len();
        let mut shown = all.filter(|number| !self.hidden.contains(number));
        shown.find_map(|number| {
            let (server, tool) = self.tool(number)?;
            let parts = [server, tool, uri];
            let marked = self.seal.is_mark(mark, &self.grant.principal, &parts);
            marked.then_some(ToolLink { server, tool, uri })
        })
    }

    /// A URI in a tool's result as the client sees it; `None` as it is.
    pub(super) fn marked(
        &self,
        server: &str,
        tool: &str,
        uri: &str,
        role: UriRole,
    ) -> Option<String> {
        let is_page = |at: &usize| self.tool(*at).is_some_and(|(its, _)| its == server);
        if uris::stays(uri)
            && (role == UriRole::Content || self.pages.get(uri).is_some_and(is_page))
        {
            return None;
        }
        let mark = self.seal.mark(&self.grant.principal, &[server, tool, uri]);
        Some(uris::marked(&mark, uri))
    }
}
