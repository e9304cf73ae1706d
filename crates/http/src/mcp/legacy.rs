//! Messages that legacy clients post. `initialize` opens a session, which all
//! later messages name; a request that names none is served by itself.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::value::RawValue;

use super::accept::single;
use super::post::{McpRefusal, Post};
use super::reply::{accepted, events, json, message};
use super::running::{PostAnswers, client, sessionless};
use super::stateless;
use gateway::{Caller, ClientRequest, Gateway, NoSession, OwnedRequest, Session, no_capabilities};
use wire::message::{Fault, Malformed, parse_batch};
use wire::meta::{self, RequestParams, member, text};
use wire::{Message, Outcome, RpcError, code, era, object};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The only revision with batches.
const BATCHES: &str = "2025-03-26";
/// The revision of a client that never names one.
const UNSAID: &str = "2025-03-26";
/// Requests whose only lasting effect is on a session.
const OF_A_SESSION: [&str; 3] = [
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];
/// The code that the official servers use.
const SESSION_NOT_FOUND: i64 = -32001;

pub(super) async fn request(
    post: Post<'_>,
    version: Option<&'static str>,
    incoming: ClientRequest<'_>,
) -> Result<Response, McpRefusal> {
    let method = incoming.method;
    if method == "initialize" {
        return Ok(initialize(post, incoming).await);
    }
    if !post.headers.contains_key(SESSION) && !OF_A_SESSION.contains(&method) {
        return Ok(bare(post, version, incoming).await);
    }
    let session = session(post)?;
    let gateway = &post.mcp.gateway;
    // A list is ready at once and cannot be cancelled: it needs no place among
    // the running requests, and no stream to resume.
    if post.accept.json
        && method.ends_with("/list")
        && let Some(reply) = gateway
            .request(post.caller, &client(&session), incoming)
            .at_once()
    {
        return Ok(json(StatusCode::OK, reply.body));
    }
    let mut answers = PostAnswers::new(&session);
    answers.run(gateway, post.caller, incoming)?;
    Ok(answers.response(post.accept, false).await)
}

/// Serves a request without a session (SPEC K4): its client cannot receive
/// requests.
async fn bare(
    post: Post<'_>,
    version: Option<&'static str>,
    incoming: ClientRequest<'_>,
) -> Response {
    let client = sessionless(version.unwrap_or(UNSAID), no_capabilities());
    let replies = post.mcp.gateway.request(post.caller, &client, incoming);
    // MCP errors have the status 200 in this era.
    stateless::answer(post.accept.json_first(), replies, |_| StatusCode::OK).await
}

/// Opens a session: the client gets its id, and Portway keeps no state of it.
async fn initialize(post: Post<'_>, incoming: ClientRequest<'_>) -> Response {
    let (version, capabilities) = agreed(incoming.params);
    let (gateway, caller) = (&post.mcp.gateway, post.caller);
    let client = sessionless(version, capabilities.clone());
    let reply = gateway.request(caller, &client, incoming).last().await;
    let opened = reply.error.is_none();
    let mut response = if post.accept.json {
        json(StatusCode::OK, reply.body)
    } else {
        events(futures_util::stream::iter([message(None, &reply.body)]))
    };
    if opened {
        let session = gateway.sessions.open(caller, version, &capabilities);
        if let Ok(value) = HeaderValue::try_from(session) {
            response.headers_mut().insert(SESSION, value);
        }
    }
    response
}

/// The revision that both support, and the client's capabilities.
pub(super) fn agreed(params: Option<&RawValue>) -> (&'static str, Arc<RawValue>) {
    let [version, capabilities] = params.map_or([None; 2], |params| {
        meta::pick(params, ["protocolVersion", "capabilities"])
    });
    let version = version.and_then(text).unwrap_or_default();
    let none = || RawValue::NULL.to_owned();
    let capabilities = capabilities.map_or_else(none, ToOwned::to_owned);
    (era::negotiate(&version), capabilities.into())
}

pub(super) fn session(post: Post<'_>) -> Result<Arc<Session>, McpRefusal> {
    let missing = || {
        let text = "header Mcp-Session-Id is missing; open a session with `initialize`";
        McpRefusal::new(code::INVALID_REQUEST, text)
    };
    let id = single(post.headers, &SESSION)
        .map_err(|_| missing())?
        .ok_or_else(missing)?;
    let sessions = &post.mcp.gateway.sessions;
    Ok(sessions.find(post.caller, id)?)
}

impl From<NoSession> for McpRefusal {
    fn from(none: NoSession) -> McpRefusal {
        match none {
            NoSession::Unknown => McpRefusal::with(
                StatusCode::NOT_FOUND,
                RpcError::new(SESSION_NOT_FOUND, "Session not found"),
            ),
            NoSession::Full => McpRefusal::with(
                StatusCode::SERVICE_UNAVAILABLE,
                RpcError::new(code::INTERNAL, none.to_string()),
            ),
        }
    }
}

/// Handles a notification, or a response to a request of ours.
pub(super) fn told(post: Post<'_>, message: Message<'_>) -> Result<Response, McpRefusal> {
    let session = session(post)?;
    take(&post.mcp.gateway, post.caller, &session, message);
    Ok(accepted())
}

/// Handles an unreadable response of the client to a server's request: the
/// server need not wait for another.
pub(super) fn unreadable_answer(post: Post<'_>, id: &RawValue, why: &Malformed) {
    if let Ok(session) = session(post) {
        let text = format!("the client's answer is {why}");
        session.answer(id, Err(RpcError::new(code::INTERNAL, text)));
    }
}

/// Handles a message that is not a request.
pub(super) fn take(
    gateway: &Gateway,
    caller: &Caller,
    session: &Arc<Session>,
    message: Message<'_>,
) {
    match message {
        Message::Notification { method, params } => {
            if method == "notifications/cancelled"
                && let Some(id) = params.and_then(|params| member(params, "requestId"))
            {
                session.cancel(id);
                return;
            }
            gateway.notification(caller, session, &method);
        }
        Message::Response {
            id: Some(id),
            outcome,
        } => {
            let answer = match outcome {
                Outcome::Result(result) => Ok(object::raw(result.into())),
                Outcome::Error(error) => Err(error),
            };
            // A late response is not an error.
            session.answer(id, answer);
        }
        Message::Response { id: None, .. } | Message::Request { .. } => {}
    }
}

/// Handles an array of messages, which one revision has.
pub(super) async fn batch(post: Post<'_>, body: &[u8]) -> Result<Response, McpRefusal> {
    let elements = parse_batch(body)?;
    post.known_version()?;
    let session = session(post).map_err(|refusal| match refusal.status {
        // Only a session may send batches.
        StatusCode::BAD_REQUEST => Fault::Batch.into(),
        _ => refusal,
    })?;
    let requests = take_batch(&post.mcp.gateway, post.caller, &session, &elements)?;
    if requests.is_empty() {
        return Ok(accepted());
    }
    let mut answers = PostAnswers::new(&session);
    for request in requests {
        answers.run(&post.mcp.gateway, post.caller, request.as_request())?;
    }
    Ok(answers.response(post.accept, true).await)
}

/// Handles the messages of a batch that are not requests, and returns the
/// requests. One bad element refuses all of it.
pub(super) fn take_batch(
    gateway: &Gateway,
    caller: &Caller,
    session: &Arc<Session>,
    elements: &[&RawValue],
) -> Result<Vec<OwnedRequest>, McpRefusal> {
    if session.version != BATCHES {
        return Err(Fault::Batch.into());
    }
    let mut requests = Vec::new();
    let mut told = Vec::new();
    for element in elements {
        match wire::parse(element.get().as_bytes())? {
            Message::Request { id, method, params } => {
                if method == "initialize" || RequestParams::read(params)?.is_modern() {
                    return Err(Fault::Batch.into());
                }
                requests.push(OwnedRequest::of(id.raw(), &method, params));
            }
            message => told.push(message),
        }
    }
    for message in told {
        take(gateway, caller, session, message);
    }
    Ok(requests)
}
