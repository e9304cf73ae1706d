//! Dispatches all requests. Messages to the MCP endpoints, which are nearly all
//! requests, take a shorter path than through the router: through the same
//! guard, to the same handler.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::response::{IntoResponse, Response};
use http::{Method, Request, Uri};
use tower::Service;

use super::edge::ClientPeer;
use super::framing::RequestHead;
use super::guard::{BodyLength, Guard, LoggedPath, RequestInfo, RequestLog};
use super::json::read_body;
use super::mcp::{McpApi, McpEndpoint, is_keyed};
use super::request_body::RequestBody;

/// The size of a response that is sent without waiting for others.
const BURST: u64 = 64 * 1024;

/// Boxed where it begins: each function that takes a future moves it, and the
/// task of a connection would keep room for the largest kind.
pub(super) type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

pub struct Site {
    router: Router,
    mcp: Option<Arc<ShortWay>>,
}

struct ShortWay {
    guard: Arc<Guard>,
    mcp: McpApi,
}

/// Without the short path.
impl From<Router> for Site {
    fn from(router: Router) -> Site {
        Site { router, mcp: None }
    }
}

impl Site {
    /// `mcp` is the handler of the MCP endpoints in the router, behind `guard`.
    pub fn new(router: Router, guard: Arc<Guard>, mcp: McpApi) -> Site {
        Site {
            router,
            mcp: Some(Arc::new(ShortWay { guard, mcp })),
        }
    }

    pub(super) fn guard(&self) -> Option<&Arc<Guard>> {
        self.mcp.as_ref().map(|way| &way.guard)
    }

    pub(super) fn answer(
        &self,
        head: Arc<RequestHead>,
        body: RequestBody,
        peer: ClientPeer,
    ) -> ResponseFuture {
        let uri = without_slash(&head.uri);
        if let Some(way) = &self.mcp
            && head.method == Method::POST
            && let Some(endpoint) = way.mcp.endpoint(uri.as_ref().unwrap_or(&head.uri))
        {
            return Box::pin(way.clone().post(endpoint, head, uri, body, peer));
        }
        let RequestHead {
            method,
            uri: given,
            version,
            headers,
            ..
        } = Arc::unwrap_or_clone(head);
        let mut request = Request::new(Body::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri.unwrap_or(given);
        *request.version_mut() = version;
        *request.headers_mut() = headers;
        request.extensions_mut().insert(peer);
        Box::pin(self.router.clone().call(request))
    }
}

/// The same URL without its final slash. All later code sees that one: a
/// redirect would lose the body of a POST. A slash before an empty key stays:
/// without it the URL is a different one.
fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri
        .path()
        .strip_suffix('/')
        .filter(|path| !path.is_empty())?;
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.try_into().ok()?);
    let without = Uri::from_parts(parts).ok()?;
    (is_keyed(uri) == is_keyed(&without)).then_some(without)
}

impl ShortWay {
    async fn post(
        self: Arc<ShortWay>,
        endpoint: McpEndpoint,
        head: Arc<RequestHead>,
        uri: Option<Uri>,
        body: RequestBody,
        peer: ClientPeer,
    ) -> Result<Response, Infallible> {
        let length = BodyLength::of(&body);
        let seen = RequestLog::new(&head.method, LoggedPath::Known(endpoint.path()));
        let info = RequestInfo {
            method: &head.method,
            uri: uri.as_ref().unwrap_or(&head.uri),
            headers: &head.headers,
            length,
            local: Some(peer.local_ip()),
            remote: Some(peer.remote.ip()),
            matched: Some(endpoint.path()),
            connection: Some(&peer.connection),
            accepted: Some(&head.accepted),
        };
        let ShortWay { guard, mcp } = &*self;
        let passed = match guard.pass(&info).await {
            Ok(passed) => passed,
            Err(error) => return Ok(seen.refused(error)),
        };
        let work = pin!(async {
            let caller = match mcp.caller(passed.principal.as_ref(), endpoint, None) {
                Ok(caller) => caller,
                Err(error) => return error.into_response(),
            };
            let body = async {
                match length {
                    BodyLength::Unknown => read_body(guard.bound(body)).await,
                    BodyLength::None | BodyLength::Known(_) => read_body(body).await,
                }
            };
            mcp.post(&caller, &head.headers, body).await
        });
        let response = seen.handled(passed.public, work).await;
        // Responses that are ready together are sent together: waking a client
        // for each costs more than sending it. A large one is sent at once.
        let size = response.body().size_hint().upper();
        if size.is_none_or(|size| size < BURST) && !peer.connection.is_alone() {
            tokio::task::yield_now().await;
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g1_one_slash_at_the_end_makes_no_difference() {
        for (given, meant) in [
            ("/mcp/", Some("/mcp")),
            (
                "/api/mcp/servers/?include=tools",
                Some("/api/mcp/servers?include=tools"),
            ),
            ("http://host:1/mcp/?a=b/", Some("http://host:1/mcp?a=b/")),
            ("/a%2F/", Some("/a%2F")),
            ("/mcp//", Some("/mcp/")),
            ("/", None),
            ("/?a=/", None),
            ("/mcp", None),
            ("/mcp?a=/", None),
            ("/api/v1/mcp_v2/server/", None),
        ] {
            let uri = without_slash(&given.parse().unwrap());
            assert_eq!(uri.map(|uri| uri.to_string()).as_deref(), meant, "{given}");
        }
    }
}
