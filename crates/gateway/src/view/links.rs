//! What an entry's tools link to (SPEC E12). A link of a server whose
//! resources the entry does not have is handed out with a mark: made of the
//! entry, the tool and the URI, with our secret, so that it opens for whom it
//! was made as long as the tool is granted, here and on any replica, and
//! nothing has to be remembered. The same link always looks the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::seal::Seal;
use crate::uris::{self, UriRole};
use store::Grant;

pub(super) struct Links {
    pub grant: Arc<Grant>,
    pub seal: Arc<Seal>,
    /// Those of the grant's tools that are not given here.
    pub hidden: HashSet<usize>,
    /// What the entry's filter gives beside them; numbered after them.
    pub matched: Vec<MatchedTool>,
    /// The pages of tools that have one (MCP Apps), by URI.
    pub pages: HashMap<String, usize>,
}

/// A tool that an entry has by its filter.
pub(super) struct MatchedTool {
    pub server: Arc<str>,
    pub tool: String,
}

/// A URI that a tool of an entry handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLink<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// As the server knows it.
    pub uri: &'a str,
}

impl Links {
    /// The server and the name there of a tool, by its number.
    fn tool(&self, number: usize) -> Option<(&str, &str)> {
        let bound = &self.grant.tools;
        match bound.get(number) {
            Some(tool) => Some((&tool.server, &tool.tool)),
            None => {
                let matched = self.matched.get(number - bound.len())?;
                Some((&matched.server, &matched.tool))
            }
        }
    }

    /// The tool that a URI was handed out by, and the URI it has there.
    pub(super) fn open<'a>(&'a self, uri: &'a str) -> Option<ToolLink<'a>> {
        if let Some(page) = self.pages.get(uri) {
            let (server, tool) = self.tool(*page)?;
            return Some(ToolLink { server, tool, uri });
        }
        let (mark, own) = uris::unmarked(uri)?;
        let all = 0..self.grant.tools.len() + self.matched.len();
        let mut given = all.filter(|number| !self.hidden.contains(number));
        given.find_map(|number| {
            let (server, tool) = self.tool(number)?;
            let parts = [server, tool, own];
            let marked = self.seal.is_mark(mark, &self.grant.principal, &parts);
            marked.then_some(ToolLink {
                server,
                tool,
                uri: own,
            })
        })
    }

    /// A URI in what a tool said, or in what it linked to.
    pub(super) fn hand(
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
