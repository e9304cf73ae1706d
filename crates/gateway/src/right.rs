//! What a call of an entry is made on the strength of.

use std::sync::Arc;

use store::{Grant, Store, Timestamp};
use upstream::Permit;

/// A grant, and what of it a call needs.
#[derive(Clone)]
pub(super) struct Right {
    pub store: Arc<dyn Store>,
    pub grant: Arc<Grant>,
    pub need: Need,
}

/// What must be granted, at the server a call goes to.
#[derive(Clone, Debug)]
pub(super) enum Need {
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

impl Right {
    pub(crate) fn permit(&self) -> Arc<dyn Permit> {
        Arc::new(GrantPermit(self.grant.clone()))
    }

    /// The same right under the entry as it is now, if it is still given to
    /// whoever has the key that it came with.
    pub(crate) fn renewed(&self, server: &str) -> Option<Right> {
        let grant = self.current()?;
        let same_key = grant.digest.matches(&self.grant.digest);
        let open = !grant.expired(Timestamp::now());
        let kept = same_key && open && self.need.is_met(&grant, server);
        kept.then(|| Right {
            store: self.store.clone(),
            grant,
            need: self.need.clone(),
        })
    }

    /// One that is closed was replaced while we looked at it: the next change
    /// can follow at once, and takes nothing away by that.
    fn current(&self) -> Option<Arc<Grant>> {
        let mut grant = self.store.grant_of(self.grant.entry)?;
        while grant.gate.is_closed() {
            let next = self.store.grant_of(self.grant.entry)?;
            if Arc::ptr_eq(&next, &grant) {
                return None;
            }
            grant = next;
        }
        Some(grant)
    }
}

impl Need {
    fn is_met(&self, grant: &Grant, server: &str) -> bool {
        let named = |servers: &[String]| servers.iter().any(|one| one == server);
        match self {
            Need::Tool { name, tool } => {
                let bound = grant.tool(name);
                bound.is_some_and(|granted| granted.server == server && granted.tool == *tool)
                    || grant.filter_gives(server, Some(tool))
            }
            Need::Link { tool } => {
                let mut tools = grant.tools.iter();
                tools.any(|granted| granted.server == server && granted.tool == *tool)
                    || grant.filter_gives(server, Some(tool))
            }
            Need::Resources => named(&grant.exposes.resources),
            Need::Prompts => named(&grant.exposes.prompts),
        }
    }
}

/// A call of an entry is permitted by the grant that its view was made of.
struct GrantPermit(Arc<Grant>);

impl Permit for GrantPermit {
    fn enter(&self) -> bool {
        // The call may have waited long for its turn.
        !self.0.expired(Timestamp::now()) && self.0.gate.enter()
    }

    fn leave(&self) {
        self.0.gate.leave();
    }
}
