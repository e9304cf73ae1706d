//! The permission of an entry's call: its grant at the moment it is sent.

use std::sync::Arc;

use super::Scope;
use fleet::Permission;
use store::{Grant, Store, Timestamp};
use upstream::Permit;

/// A grant, and the part of it that a call requires.
#[derive(Clone)]
pub(super) struct GrantPermission {
    store: Arc<Store>,
    grant: Arc<Grant>,
    need: Requirement,
    /// The server that the call goes to.
    server: Arc<str>,
}

/// The grant that the entry needs at the call's server.
#[derive(Clone, Debug)]
pub(super) enum Requirement {
    /// The tool that the entry calls `name`.
    Tool {
        name: String,
        tool: Arc<str>,
    },
    /// A link in a result of this tool.
    Link {
        tool: Arc<str>,
    },
    Resources,
    Prompts,
}

impl GrantPermission {
    /// The permission for a request to `server`; `None` for callers that need
    /// none.
    pub(super) fn of(
        scope: &Scope,
        store: &Arc<Store>,
        need: Requirement,
        server: &Arc<str>,
    ) -> Option<Arc<dyn Permission>> {
        let grant = scope.grant()?.clone();
        Some(Arc::new(GrantPermission {
            store: store.clone(),
            grant,
            need,
            server: server.clone(),
        }))
    }

    /// The entry's grant now. A closed one was replaced meanwhile, maybe more
    /// than once.
    fn current(&self) -> Option<Arc<Grant>> {
        let mut grant = self.store.grant_of(self.grant.entry)?;
        while grant.calls.is_closed() {
            let next = self.store.grant_of(self.grant.entry)?;
            if Arc::ptr_eq(&next, &grant) {
                return None;
            }
            grant = next;
        }
        Some(grant)
    }
}

impl Permit for GrantPermission {
    fn enter(&self) -> bool {
        // The call may have waited long in a queue.
        !self.grant.expired(Timestamp::now()) && self.grant.calls.enter()
    }

    fn leave(&self) {
        self.grant.calls.leave();
    }
}

impl Permission for GrantPermission {
    /// The same permission under the current grant of the entry, if the key of
    /// the call still gives it.
    fn renewed(&self) -> Option<Arc<dyn Permission>> {
        let grant = self.current()?;
        let same_key = grant.digest.matches(&self.grant.digest);
        let open = !grant.expired(Timestamp::now());
        let kept = same_key && open && self.need.is_met(&grant, &self.server);
        kept.then(|| -> Arc<dyn Permission> {
            Arc::new(GrantPermission {
                grant,
                ..self.clone()
            })
        })
    }
}

impl Requirement {
    fn is_met(&self, grant: &Grant, server: &str) -> bool {
        let named = |servers: &[String]| servers.iter().any(|one| one == server);
        match self {
            Requirement::Tool { name, tool } => {
                let bound = grant.tool(name);
                bound.is_some_and(|granted| granted.server == server && *granted.tool == **tool)
                    || grant.filter_gives(server, Some(tool))
            }
            Requirement::Link { tool } => {
                let mut tools = grant.tools.iter();
                tools.any(|granted| granted.server == server && *granted.tool == **tool)
                    || grant.filter_gives(server, Some(tool))
            }
            Requirement::Resources => named(&grant.exposes.resources),
            Requirement::Prompts => named(&grant.exposes.prompts),
        }
    }
}
