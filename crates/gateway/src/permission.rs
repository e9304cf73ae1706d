//! What a call of an entry is made on the strength of.

use std::sync::Arc;

use super::Scope;
use fleet::Permission;
use store::{Grant, Store, Timestamp};
use upstream::Permit;

/// A grant, and what of it a call needs.
#[derive(Clone)]
pub(super) struct GrantPermission {
    store: Arc<dyn Store>,
    grant: Arc<Grant>,
    need: Requirement,
    /// The server that the call goes to.
    server: Arc<str>,
}

/// What must be granted, at the server a call goes to.
#[derive(Clone, Debug)]
pub(super) enum Requirement {
    /// The tool that the entry calls `name`.
    Tool {
        name: String,
        tool: String,
    },
    /// A link that this tool handed out.
    Link {
        tool: String,
    },
    Resources,
    Prompts,
}

impl GrantPermission {
    /// What a caller's request to `server` needs; `None` for the admin, who
    /// needs nothing.
    pub(super) fn of(
        scope: &Scope,
        store: &Arc<dyn Store>,
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
}

impl Permit for GrantPermission {
    fn enter(&self) -> bool {
        // The call may have waited long for its turn.
        !self.grant.expired(Timestamp::now()) && self.grant.calls.enter()
    }

    fn leave(&self) {
        self.grant.calls.leave();
    }
}

impl Permission for GrantPermission {
    /// The same right under the entry as it is now, if the key that the call
    /// came with still gives it.
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

impl GrantPermission {
    /// One that is closed was replaced while we looked at it: the next change
    /// can follow at once, and takes nothing away by that.
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

impl Requirement {
    fn is_met(&self, grant: &Grant, server: &str) -> bool {
        let named = |servers: &[String]| servers.iter().any(|one| one == server);
        match self {
            Requirement::Tool { name, tool } => {
                let bound = grant.tool(name);
                bound.is_some_and(|granted| granted.server == server && granted.tool == *tool)
                    || grant.filter_gives(server, Some(tool))
            }
            Requirement::Link { tool } => {
                let mut tools = grant.tools.iter();
                tools.any(|granted| granted.server == server && granted.tool == *tool)
                    || grant.filter_gives(server, Some(tool))
            }
            Requirement::Resources => named(&grant.exposes.resources),
            Requirement::Prompts => named(&grant.exposes.prompts),
        }
    }
}
