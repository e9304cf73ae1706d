//! The MCP endpoints (SPEC K4), each in both eras: clients reach the gateway
//! here. This room reads headers and chooses statuses; the gateway defines the
//! content of responses.

mod accept;
mod follow;
mod get;
mod keyed;
mod legacy;
mod modern;
mod old_sse;
mod post;
mod reply;
mod running;
mod stateless;

pub(super) use get::{end_session, stream};
pub(super) use old_sse::{open_sse, sse_message};
pub(super) use post::message;
pub(super) use reply::{KEEP_ALIVE, comment, event, events};

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use http::{HeaderMap, Uri};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::auth;
use super::error::{ApiError, nothing_there};
use super::extract::Path;
use super::principal::{Principal, not_here};
use super::relay::Relay;
pub(super) use keyed::{beside, is_keyed, key_of};

use config::filters::FilterError;
use fleet::registry::{Registry, RegistryError};
use gateway::{Caller, Gateway, Scope};
use store::Grant;

#[derive(Clone)]
pub struct McpApi {
    pub gateway: Arc<Gateway>,
    pub registry: Arc<Registry>,
    /// Cancelled when Portway shuts down, so that endless streams end.
    pub closing: CancellationToken,
    pipes: old_sse::SsePipes,
    /// The other Portway that serves the entries, if there is one.
    pub(super) relay: Option<Relay>,
}

impl McpApi {
    pub fn new(
        gateway: Arc<Gateway>,
        registry: Arc<Registry>,
        closing: CancellationToken,
    ) -> McpApi {
        McpApi {
            gateway,
            registry,
            closing,
            pipes: old_sse::SsePipes::default(),
            relay: None,
        }
    }

    /// Relays entries to another Portway; the shared endpoint stays here.
    pub fn with_relay(mut self, relay: Option<Relay>) -> McpApi {
        self.relay = relay;
        self
    }
}

/// The paths of this room, as the router spells them.
const EVERYTHING: &str = "/mcp";
const SERVER: &str = "/servers/{server}/mcp";
pub(super) const ENTRY: &str = "/api/v1/mcp_v2/server/{api_key}";

/// The endpoint that a message is for.
pub(super) enum McpEndpoint {
    Everything,
    /// By its name or id.
    Server(String),
    /// The entry whose key is in the URL.
    Entry,
}

impl McpEndpoint {
    /// The endpoint of a URL that needs no decoding.
    fn plain(uri: &Uri) -> Option<McpEndpoint> {
        let path = uri.path();
        let single = |segment: &str| !segment.is_empty() && !segment.contains('/');
        if uri.query().is_some() || path.contains('%') {
            return None;
        }
        if path == EVERYTHING {
            return Some(McpEndpoint::Everything);
        }
        if let Some(key) = path.strip_prefix(keyed::PREFIX) {
            return single(key).then_some(McpEndpoint::Entry);
        }
        let server = path.strip_prefix("/servers/")?.strip_suffix("/mcp")?;
        single(server).then(|| McpEndpoint::Server(server.to_owned()))
    }

    /// The path as the router spells it.
    pub(super) fn path(&self) -> &'static str {
        match self {
            McpEndpoint::Everything => EVERYTHING,
            McpEndpoint::Server(_) => SERVER,
            McpEndpoint::Entry => ENTRY,
        }
    }
}

impl McpApi {
    /// The caller of an endpoint. For a server that does not exist the error
    /// has the shape of the REST API.
    pub(super) fn caller(
        &self,
        principal: Option<&Principal>,
        endpoint: McpEndpoint,
        filter: Option<String>,
    ) -> Result<Caller, ApiError> {
        let principal = principal.ok_or_else(auth::refused)?;
        match principal {
            Principal::Admin => {}
            Principal::Entry(grant) => return self.narrowed(grant.clone(), filter),
            Principal::User(_) => return Err(not_here()),
        }
        let scope = match endpoint {
            // The guard admits only entries here.
            McpEndpoint::Entry => return Err(nothing_there()),
            McpEndpoint::Server(server) => {
                let name = match self.registry.find(&server) {
                    Some(wanted) => wanted.name.clone(),
                    None if self.gateway.is_own(&server) => server.into(),
                    None => return Err(RegistryError::NotFound(server).into()),
                };
                // The default filter does not apply to a single server.
                let filter = self.named_filter(filter)?;
                Scope::Server { name, filter }
            }
            McpEndpoint::Everything => {
                self.check_filter(filter.as_deref())?;
                Scope::Everything {
                    filter: filter.map(Into::into),
                }
            }
        };
        Ok(Caller {
            principal: principal.owner(),
            scope,
        })
    }

    /// An entry's caller. A named filter can only narrow the entry's tools.
    pub(super) fn narrowed(
        &self,
        grant: Arc<Grant>,
        filter: Option<String>,
    ) -> Result<Caller, ApiError> {
        Ok(Caller::narrowed(grant, self.named_filter(filter)?))
    }

    fn named_filter(&self, filter: Option<String>) -> Result<Option<Arc<str>>, ApiError> {
        if filter.is_some() {
            self.check_filter(filter.as_deref())?;
        }
        Ok(filter.map(Into::into))
    }

    /// Whether the requested filter, or the default one, can be used.
    fn check_filter(&self, asked: Option<&str>) -> Result<(), ApiError> {
        let known = self.registry.filters().borrow().find(asked).map(drop);
        known.map_err(|error| refused(error, asked))
    }

    /// The endpoint at a URL, if a message can go there directly.
    pub(super) fn endpoint(&self, uri: &Uri) -> Option<McpEndpoint> {
        let elsewhere =
            |endpoint: &McpEndpoint| matches!(endpoint, McpEndpoint::Entry) && self.relay.is_some();
        McpEndpoint::plain(uri).filter(|endpoint| !elsewhere(endpoint))
    }
}

/// Whether the client accepts events as keep-alives, for any request.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    accept::Accept::of(headers).json_first().events
}

/// Whether a path, as the router spells it, is an MCP endpoint.
pub(super) fn is_endpoint(matched: &str) -> bool {
    is_shared(matched) || matched.starts_with("/servers/")
}

/// Whether messages may come there without a `Content-Type`. Not on paths that
/// receive the console's cookie.
pub(super) fn takes_bare(matched: &str) -> bool {
    is_endpoint(matched) || matched.starts_with(ENTRY)
}

/// Whether it is the endpoint that shows each principal its own tools.
pub(super) fn is_shared(matched: &str) -> bool {
    matches!(matched, EVERYTHING | "/sse" | "/messages")
}

#[derive(Deserialize)]
struct EndpointQuery {
    filter: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ServerInPath {
    pub server: Option<String>,
}

fn refused(error: FilterError, asked: Option<&str>) -> ApiError {
    match error {
        FilterError::Unknown(_) if asked.is_some() => ApiError::not_found(error.to_string()),
        // The file is wrong, not the request.
        _ => ApiError::conflict(error.to_string()),
    }
}

/// A handler's argument: the client and its endpoint.
impl FromRequestParts<McpApi> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, mcp: &McpApi) -> Result<Caller, ApiError> {
        let principal = Principal::from_request_parts(parts, mcp).await?;
        let Path(ServerInPath { server }) = Path::from_request_parts(parts, mcp).await?;
        let Query(EndpointQuery { filter }) = Query::try_from_uri(&parts.uri)
            .map_err(|_| ApiError::bad_request("the query cannot be read"))?;
        let endpoint = match server {
            Some(server) => McpEndpoint::Server(server),
            None if is_keyed(&parts.uri) => McpEndpoint::Entry,
            None => McpEndpoint::Everything,
        };
        mcp.caller(Some(&principal), endpoint, filter)
    }
}
