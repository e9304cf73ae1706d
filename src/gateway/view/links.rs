//! What an entry's tools link to (SPEC E12). A link of a server whose
//! resources the entry does not have is handed out with a mark: made of the
//! entry, the tool and the URI, with our secret, so that it opens for whom it
//! was made as long as the tool is granted, here and on any replica, and
//! nothing has to be remembered. The same link always looks the same.

use std::collections::HashMap;
use std::sync::Arc;

use crate::gateway::seal::Seal;
use crate::gateway::uris::{self, Role};
use crate::store::{Grant, GrantedTool};

pub(super) struct Links {
    pub grant: Arc<Grant>,
    pub seal: Arc<Seal>,
    /// The pages of granted tools that have one (MCP Apps), by URI.
    pub pages: HashMap<String, usize>,
}

impl Links {
    /// The tool that a URI was handed out by, and the URI it has there.
    pub fn open<'a>(&self, uri: &'a str) -> Option<(&GrantedTool, &'a str)> {
        if let Some(page) = self.pages.get(uri) {
            return Some((self.grant.tools.get(*page)?, uri));
        }
        let (mark, own) = uris::unmarked(uri)?;
        let principal = &self.grant.principal;
        let mut tools = self.grant.tools.iter();
        let tool = tools.find(|tool| {
            let parts = [&*tool.server, &*tool.tool, own];
            self.seal.is_mark(mark, principal, &parts)
        })?;
        Some((tool, own))
    }

    /// A URI in what a tool said, or in what it linked to.
    pub fn hand(&self, server: &str, tool: &str, uri: &str, role: Role) -> Option<String> {
        let is_page = |at: &usize| self.grant.tools[*at].server == server;
        if uris::stays(uri) && (role == Role::Content || self.pages.get(uri).is_some_and(is_page)) {
            return None;
        }
        let mark = self.seal.mark(&self.grant.principal, &[server, tool, uri]);
        Some(uris::marked(&mark, uri))
    }
}
