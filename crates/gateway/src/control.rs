//! Portway's own management as MCP tools (SPEC D9): a server among the
//! servers, without a process. It does what the REST API does, by the same
//! functions. Views show it to the admin, and to an entry where the admin
//! bound one of its tools; nobody else gets it into a view.

mod act;
mod arguments;
mod search;
mod tools;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use super::Gateway;
use super::servers::ServerManager;
use fleet::catalog::Catalog;
use fleet::{CallError, CallOutcome, CallRequest, Offer, Permission, Snapshot};
use store::{ADMIN, Grant};
use upstream::{Peer, UpstreamError};

/// What it is called in the catalog.
pub const NAME: &str = "portway";

const CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;
const INSTRUCTIONS: &str = "These tools manage Portway itself: the MCP servers it runs and connects to. \
    A server that is added gives its tools to every client of the shared endpoint.";

/// Longer than anything that a tool waits for.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Control {
    servers: ServerManager,
    name: Arc<str>,
    offer: Arc<Offer>,
    /// Whether the log has said that another server has its name.
    told: AtomicBool,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

type ControlResult = Result<Box<RawValue>, UpstreamError>;

impl Control {
    pub fn new(servers: ServerManager) -> Control {
        let capabilities = RawValue::from_string(CAPABILITIES.to_owned()).expect("a literal");
        let offer = Offer {
            catalog: Arc::new(tools::catalog()),
            peer: Arc::new(Peer::ourselves(capabilities, INSTRUCTIONS)),
            stale: false,
        };
        Control {
            servers,
            name: NAME.into(),
            offer: Arc::new(offer),
            told: AtomicBool::new(false),
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.offer.catalog
    }

    /// What it offers beside what runs: nothing where a server that somebody
    /// defined has its name.
    pub(super) fn offer(&self, snapshot: &Snapshot) -> Option<&Arc<Offer>> {
        // The wish list first: what is not in the snapshot yet will be.
        let desired = self.servers.registry.desired();
        let taken = desired.contains_key(NAME) || snapshot.servers.contains_key(NAME);
        if taken && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a server is called {NAME:?}: Portway's own tools of that name are not shown"
            );
        }
        (!taken).then_some(&self.offer)
    }

    /// Whether an entry may have it at all: those of users may not, whatever
    /// records there are.
    pub(super) fn may_be_given(grant: &Grant) -> bool {
        *grant.owner == *ADMIN
    }

    /// Makes a call. What has begun is finished, also when nobody waits for
    /// it any more: half an edit would be worse.
    pub(super) async fn answer(self: Arc<Self>, request: Arc<CallRequest>) -> CallOutcome {
        let peer = Some(self.offer.peer.clone());
        let answer = match self.begin(&request) {
            Some(mut call) => match tokio::time::timeout(LIMIT, &mut call).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => Err(UpstreamError::Lost(error.to_string())),
                Err(_) => {
                    call.abort();
                    Err(UpstreamError::Timeout { limit: LIMIT })
                }
            },
            None => Err(UpstreamError::Revoked),
        };
        CallOutcome {
            peer,
            result: answer.map_err(CallError::from),
        }
    }

    /// Sets a call going; `None` where an entry no longer has the tool.
    fn begin(self: &Arc<Self>, request: &Arc<CallRequest>) -> Option<JoinHandle<ControlResult>> {
        let go = || {
            let (control, request) = (self.clone(), request.clone());
            tokio::spawn(async move { control.call(&request).await })
        };
        let Some(given) = &request.permission else {
            return Some(go());
        };
        let mut permission: Arc<dyn Permission> = given.clone();
        loop {
            if permission.enter() {
                let call = go();
                permission.leave();
                return Some(call);
            }
            permission = permission.renewed()?;
        }
    }
}

impl Gateway {
    /// What a server that is there lists, also where it is Portway itself.
    pub fn catalog_of(&self, server: &str) -> Option<Arc<Catalog>> {
        let snapshot = self.fleet.snapshot();
        let offer = offer(&snapshot, self.views.control(), server)?;
        Some(offer.catalog.clone())
    }

    /// Whether a name that no server has is Portway's own.
    pub fn is_own(&self, server: &str) -> bool {
        server == NAME && self.views.control().is_some()
    }
}

/// What a server of this name offers: one that is defined, or else Portway.
pub(super) fn offer<'a>(
    snapshot: &'a Snapshot,
    control: Option<&'a Arc<Control>>,
    server: &str,
) -> Option<&'a Arc<Offer>> {
    match snapshot.servers.get(server) {
        Some(view) => view.offer.as_ref(),
        None if server == NAME => control?.offer(snapshot),
        None => None,
    }
}
