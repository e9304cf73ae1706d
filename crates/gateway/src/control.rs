//! Portway's own management as MCP tools (SPEC D9): a server among the servers,
//! without a process, that uses the same functions as the REST API. Views show
//! it to the admin, and to an entry where the admin bound one of its tools.

mod act;
mod arguments;
mod search;
mod tools;

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

/// Its name as a server.
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
    /// Set once the log has the warning that another server has its name.
    warned: AtomicBool,
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
            warned: AtomicBool::new(false),
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.offer.catalog
    }

    /// Its offer; `None` where a defined server has its name.
    pub(super) fn offer(&self, snapshot: &Snapshot) -> Option<&Arc<Offer>> {
        // Also the servers that are not in the snapshot yet.
        let desired = self.servers.registry.desired();
        let taken = desired.contains_key(NAME) || snapshot.servers.contains_key(NAME);
        if taken && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a server is called {NAME:?}: Portway's own tools, which have that server name, are hidden"
            );
        }
        (!taken).then_some(&self.offer)
    }

    /// Whether an entry may have it: entries of users may not, whatever their
    /// records say.
    pub(super) fn may_be_given(grant: &Grant) -> bool {
        *grant.owner == *ADMIN
    }

    /// Answers a call. A call that has started is finished, even if its client
    /// disconnects: half an edit would be worse.
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
            result: answer.map(wire::Payload::from).map_err(CallError::from),
        }
    }

    /// Starts a call; `None` where an entry no longer has the tool.
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
    /// The catalog of a connected server, or of Portway itself.
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

/// The offer of the server with this name: a defined one, or else Portway.
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
