//! The guard, which every request passes, whatever its path. Its checks, in
//! order: Host and Origin, the body's type and length, the principal and its
//! rights, room for the connection and in memory. A handler that panics costs
//! one response, not the process.

use std::borrow::Cow;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Limited;
use tracing::{debug, error};

use super::api::{AccessRule, access_rule};
use super::auth::{self, Access};
use super::authenticator::Authenticator;
use super::connections::ClientConnection;
use super::console::is_page;
use super::counted::Shares;
use super::edge::ClientPeer;
use super::error::{ApiError, Code, ErrorCause, nothing_there};
use super::guesses::{Guesses, too_many};
use super::hosts::HostPolicy;
use super::json;
use super::mcp;
use super::principal::Principal;
use super::records::BY_KEY;
use super::users::Users;
use store::Store;
use store::memory::{Budget, Charge, default_budget};

/// The console itself makes blobs of a tool's pictures and sounds.
const PAGE_POLICY: &str = "default-src 'self'; object-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'; img-src 'self' blob:; media-src 'self' blob:";

pub struct Guard {
    authenticator: Authenticator,
    hosts: HostPolicy,
    max_body: usize,
    shares: Shares,
}

impl Guard {
    pub fn new(access: Access, hosts: HostPolicy, max_body: usize) -> Guard {
        Guard {
            authenticator: Authenticator {
                access,
                keys: None,
                users: None,
                guesses: Guesses::default(),
            },
            hosts,
            max_body,
            shares: Shares::new(Budget::new(default_budget())),
        }
    }

    pub fn with_budget(mut self, budget: Arc<Budget>) -> Guard {
        self.shares = Shares::new(budget);
        self
    }

    /// Also accepts the keys of the entries in `store`.
    pub fn with_keys(mut self, store: Arc<Store>) -> Guard {
        self.authenticator.keys = Some(store);
        self
    }

    /// Also accepts the tokens of users.
    pub fn with_users(mut self, users: Option<Users>) -> Guard {
        self.authenticator.users = users;
        self
    }

    pub(super) fn keys(&self) -> Option<Arc<Store>> {
        self.authenticator.keys.clone()
    }

    pub fn access(&self) -> &Access {
        &self.authenticator.access
    }

    /// Whether a request may be handled, and for which principal.
    pub(super) async fn pass(&self, info: &RequestInfo<'_>) -> Result<Admission, ApiError> {
        if info
            .accepted
            .is_none_or(|accepted| accepted.get().is_none())
        {
            self.hosts.check(info.uri, info.headers, info.local)?;
            if info.length != BodyLength::None {
                check_content(info.headers, info.matched.is_some_and(mcp::takes_bare))?;
                if let Some(accepted) = info.accepted {
                    accepted.get_or_init(|| ());
                }
            }
        }
        self.check_length(info.length)?;
        // A path that the router does not know may be a page of the console.
        let public = match info.matched {
            Some(_) => auth::is_public(info.method, info.matched),
            None => is_page(info.method, info.uri.path(), info.headers),
        };
        let principal = if public {
            None
        } else {
            Some(self.principal(info).await?)
        };
        if let Some(connection) = info.connection {
            let session = self.console_session(principal.as_ref(), info.headers);
            connection.admit(principal.as_ref(), session.as_deref())?;
        }
        let room = self.make_room(principal.as_ref(), info.length)?;
        Ok(Admission {
            principal,
            // The response to a key in the path is for its holder alone.
            public: public && info.matched != Some(BY_KEY),
            _room: room,
        })
    }

    async fn principal(&self, info: &RequestInfo<'_>) -> Result<Principal, ApiError> {
        // There the path is the credential, and no other is checked. A wrong
        // key looks like any path that does not exist (SPEC E7).
        if mcp::is_keyed(info.uri) {
            let grant = match mcp::key_of(info.uri) {
                Some(key) => self.authenticator.entry(&key).await?,
                None => None,
            };
            return match grant {
                Some(grant) => Ok(Principal::Entry(grant)),
                None => Err(self.authenticator.wrong(info.remote, nothing_there)),
            };
        }
        let with_key = |path| mcp::is_endpoint(path) || access_rule(path) == AccessRule::EntryKeys;
        let endpoint = info.matched.is_some_and(with_key);
        let principal = self.authenticator.authenticate(info, endpoint).await?;
        principal.may_ask(info.matched)?;
        Ok(principal)
    }

    fn check_length(&self, length: BodyLength) -> Result<(), ApiError> {
        match length {
            BodyLength::Known(bytes) if bytes > self.max_body as u64 => Err(json::too_large()),
            _ => Ok(()),
        }
    }

    /// Limits a body of unknown length. The framing holds the others to the
    /// length they announced.
    pub(super) fn bound<B>(&self, body: B) -> Limited<B> {
        Limited::new(body, self.max_body)
    }

    fn make_room(
        &self,
        principal: Option<&Principal>,
        length: BodyLength,
    ) -> Result<Option<Charge>, ApiError> {
        let bytes = match length {
            // Health checks are admitted at any time.
            BodyLength::None if principal.is_none() => return Ok(None),
            BodyLength::None => 0,
            BodyLength::Known(bytes) => usize::try_from(bytes).unwrap_or(self.max_body),
            BodyLength::Unknown => self.max_body,
        };
        self.shares.admit(principal, bytes)
    }
}

/// The parts of a request that the guard checks.
pub(super) struct RequestInfo<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    pub length: BodyLength,
    /// The local address of the connection.
    pub local: Option<IpAddr>,
    /// The remote address of the connection.
    pub remote: Option<IpAddr>,
    /// The path as the router spells it, if it has it.
    pub matched: Option<&'a str>,
    pub connection: Option<&'a ClientConnection>,
    /// As in [`super::framing::RequestHead`].
    pub accepted: Option<&'a OnceLock<()>>,
}

/// A request that may be handled.
pub(super) struct Admission {
    /// `None` where no credential is required.
    pub principal: Option<Principal>,
    /// The response is the same for every client, and may be cached.
    pub public: bool,
    /// Freed when the request has been handled.
    _room: Option<Charge>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    None,
    Known(u64),
    Unknown,
}

impl BodyLength {
    pub(super) fn of(body: &impl HttpBody) -> BodyLength {
        match body.size_hint().exact() {
            _ if body.is_end_stream() => BodyLength::None,
            Some(bytes) => BodyLength::Known(bytes),
            None => BodyLength::Unknown,
        }
    }
}

/// The middleware around the whole router.
pub(super) async fn guard(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let peer = request.extensions().get::<ClientPeer>();
    let remote = peer.map(|peer| peer.remote.ip());
    let length = BodyLength::of(request.body());
    let info = RequestInfo {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        length,
        local: peer.map(ClientPeer::local_ip),
        remote,
        matched: matched.as_ref().map(MatchedPath::as_str),
        connection: peer.map(|peer| &*peer.connection),
        accepted: None,
    };
    let passed = guard.pass(&info).await;
    let by_key = info.matched == Some(BY_KEY);
    let path = match matched {
        Some(matched) => LoggedPath::Matched(matched),
        None if mcp::is_keyed(request.uri()) => LoggedPath::Known(mcp::ENTRY),
        None => LoggedPath::Other(redact_path(request.uri().path()).into_owned()),
    };
    let seen = RequestLog::new(request.method(), path);
    let passed = match passed {
        Ok(passed) => passed,
        Err(error) => return seen.refused(error),
    };
    let cookie = guard.cookie(&passed, request.headers());
    if let Some(principal) = &passed.principal {
        request.extensions_mut().insert(principal.clone());
    }
    if length == BodyLength::Unknown {
        request = request.map(|body| Body::new(guard.bound(body)));
    }
    let work = pin!(next.run(request));
    let mut response = seen.handled(passed.public, work).await;
    if !passed.public {
        response = guard.shares.count(passed.principal.as_ref(), response);
    }
    if let Some(cookie) = cookie {
        let headers = response.headers_mut();
        headers.entry(header::SET_COOKIE).or_insert(cookie);
    }
    // If the credential is in the path, the handler has checked it.
    let wrong = match response.status() {
        StatusCode::UNAUTHORIZED => passed.principal.is_none(),
        StatusCode::NOT_FOUND => by_key,
        _ => false,
    };
    if wrong && guard.authenticator.is_one_too_many(remote) {
        return seen.refused(too_many());
    }
    response
}

/// `bare`: a program may omit the type (SPEC K4). A browser must send it, since
/// pages can post any other type without a preflight request.
fn check_content(headers: &HeaderMap, bare: bool) -> Result<(), ApiError> {
    let refuse = |message| Err(ApiError::new(Code::UnsupportedMediaType, message));
    if headers.contains_key(header::CONTENT_ENCODING) {
        return refuse("compressed request bodies are not accepted");
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (Some(kind), None) if is_json(kind) => Ok(()),
        (None, _) if bare && !auth::from_browser(headers) => Ok(()),
        _ => refuse("the body must be JSON, with `Content-Type: application/json`"),
    }
}

pub(super) fn is_json(kind: &HeaderValue) -> bool {
    let essence = kind.as_bytes().split(|byte| *byte == b';').next();
    essence.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

fn set_headers(headers: &mut HeaderMap, public: bool) {
    let fixed = HeaderValue::from_static;
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(header::REFERRER_POLICY, fixed("no-referrer"));
    let kind = headers.get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        let policy = headers.entry(header::CONTENT_SECURITY_POLICY);
        policy.or_insert(fixed(PAGE_POLICY));
    }
    if !public {
        let cache = headers.entry(header::CACHE_CONTROL);
        cache.or_insert(fixed("no-store"));
    }
}

/// The fields of a request that are logged.
pub(super) struct RequestLog {
    method: Method,
    path: LoggedPath,
    started: Instant,
}

pub(super) enum LoggedPath {
    Matched(MatchedPath),
    Known(&'static str),
    Other(String),
}

impl RequestLog {
    pub(super) fn new(method: &Method, path: LoggedPath) -> RequestLog {
        RequestLog {
            method: method.clone(),
            path,
            started: Instant::now(),
        }
    }

    pub(super) fn refused(&self, error: ApiError) -> Response {
        let mut response = self.dressed(error.into_response(), false);
        // The router would insert it here, `attend` elsewhere: a refusal must not
        // show which of them handled it.
        if let Some(length) = response.body().size_hint().exact() {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        response
    }

    /// Completes the response to an admitted request.
    pub(super) async fn handled(
        &self,
        public: bool,
        work: Pin<&mut impl Future<Output = Response>>,
    ) -> Response {
        let response = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(response) => response,
            // The panic hook has the panic's message, which may hold data.
            Err(_) => ApiError::internal("the handler panicked").into_response(),
        };
        self.dressed(response, public)
    }

    fn dressed(&self, mut response: Response, public: bool) -> Response {
        set_headers(response.headers_mut(), public);
        self.log(&response, self.started.elapsed());
        response
    }

    fn log(&self, response: &Response, took: Duration) {
        let method = &self.method;
        let path = match &self.path {
            LoggedPath::Matched(path) => path.as_str(),
            LoggedPath::Known(path) => path,
            LoggedPath::Other(path) => path,
        };
        let status = response.status().as_u16();
        match response.extensions().get::<ErrorCause>() {
            Some(cause) if response.status().is_server_error() => {
                error!(%method, path, status, cause = cause.as_str(), "{method} {path} failed");
            }
            cause => {
                let cause = cause.map(ErrorCause::as_str);
                debug!(%method, path, status, ?took, cause, "{method} {path} {status}");
            }
        }
    }
}

/// A path for the log: of segments that could be a key, at most the last four
/// characters (entry keys are in paths, SPEC E6).
pub(crate) fn redact_path(path: &str) -> Cow<'_, str> {
    if path.split('/').all(|segment| segment.len() < 16) {
        return Cow::Borrowed(path);
    }
    let short = |segment: &str| {
        let tail = segment.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
        match segment.len() {
            ..16 => segment.to_owned(),
            _ => format!("…{}", &segment[tail..]),
        }
    };
    Cow::Owned(path.split('/').map(short).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_d6_a_key_in_a_path_is_not_logged() {
        let key = "pw_5f0c9a1e7b3d2c4a6e8f";
        assert_eq!(
            redact_path(&format!("/api/v1/mcp_v2/server/{key}")),
            "/api/v1/mcp_v2/server/…6e8f"
        );
        assert_eq!(redact_path(&format!("/{key}/x")), "/…6e8f/x");
        assert_eq!(redact_path("/api/mcp/servers"), "/api/mcp/servers");
        assert_eq!(redact_path("/ääääääääääääääää"), "/…ääää");
    }

    #[test]
    fn t_b2_json_is_recognised_by_its_type_alone() {
        for kind in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json ;x",
        ] {
            assert!(is_json(&HeaderValue::from_str(kind).unwrap()), "{kind}");
        }
        for kind in [
            "text/plain",
            "application/jsonx",
            "text/plain; application/json",
            "",
        ] {
            assert!(!is_json(&HeaderValue::from_str(kind).unwrap()), "{kind}");
        }
    }
}
