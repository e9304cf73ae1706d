//! HTTP+SSE, the transport of 2024-11-05: one long response that carries every
//! message to the client, and a URL to which the client posts its own. The end
//! of the long response is the end of the session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use axum::extract::{Query, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, Uri};
use parking_lot::Mutex;
use serde::Deserialize;

use super::McpApi;
use super::accept::Accept;
use super::follow::{Follow, StreamKind};
use super::keyed::beside;
use super::legacy::{self, agreed};
use super::post::{McpRefusal, not_acceptable};
use super::reply::{accepted, event};
use super::running;
use crate::error::ApiError;
use crate::json::read_body;
use gateway::{Caller, MessageStream, OwnedRequest, Scope, Session};
use wire::message::{Fault, is_batch, parse_batch};
use wire::meta::RequestParams;
use wire::{Message, code};

/// The open connections, by the id in their URL.
#[derive(Clone, Default)]
pub(super) struct SsePipes(Arc<Mutex<HashMap<Box<str>, Arc<SsePipe>>>>);

struct SsePipe {
    caller: Caller,
    stream: Arc<MessageStream>,
    session: OnceLock<Arc<Session>>,
    /// `initialize` is in progress.
    opening: AtomicBool,
}

impl SsePipes {
    fn find(&self, caller: &Caller, id: &str) -> Option<Arc<SsePipe>> {
        let pipe = self.0.lock().get(id).cloned()?;
        let owner = &pipe.caller;
        (owner.principal == caller.principal && owner.scope == caller.scope).then_some(pipe)
    }
}

/// Removes the connection when the client has disconnected.
struct OpenPipe {
    pipes: SsePipes,
    id: Box<str>,
}

impl Drop for OpenPipe {
    fn drop(&mut self) {
        let pipe = self.pipes.0.lock().remove(&self.id);
        if let Some(pipe) = pipe {
            pipe.stream.close();
            if let Some(session) = pipe.session.get() {
                session.end();
            }
        }
    }
}

pub(crate) async fn open_sse(
    State(mcp): State<McpApi>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if !Accept::of(&headers).events {
        return not_acceptable().into_response();
    }
    let stream = mcp.gateway.sessions.pipe();
    let Some(reader) = stream.read() else {
        return ApiError::internal("a new stream is read by somebody").into_response();
    };
    let id = match unguessable() {
        Ok(id) => id,
        Err(error) => return ApiError::internal(error).into_response(),
    };
    let first = endpoint(&caller, &uri, &id);
    let until = mcp.gateway.stream_lifetime(&caller);
    let pipe = Arc::new(SsePipe {
        caller,
        stream,
        session: OnceLock::new(),
        opening: AtomicBool::new(false),
    });
    mcp.pipes.0.lock().insert(id.clone(), pipe);
    let opened = OpenPipe {
        pipes: mcp.pipes.clone(),
        id,
    };
    Follow::new(reader, StreamKind::Pipe)
        .until(until.token().clone())
        .first(first)
        .response((opened, until))
}

fn unguessable() -> Result<Box<str>, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes).into())
}

/// The event with the URL that the client posts to.
fn endpoint(caller: &Caller, uri: &Uri, id: &str) -> Bytes {
    let (path, filter) = match &caller.scope {
        Scope::Server { name, filter } => {
            let mut url = url::Url::parse("http://localhost").expect("a URL");
            if let Ok(mut path) = url.path_segments_mut() {
                path.extend(["servers", name, "messages"]);
            }
            (url.path().to_owned(), filter.as_deref())
        }
        Scope::Everything { filter } => ("/messages".to_owned(), filter.as_deref()),
        // Only this client, which knows the key, reads it.
        Scope::Entry(entry) => (beside(uri, "messages"), entry.filter().map(|it| &**it)),
    };
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(filter.map(|filter| ("filter", filter)));
    let query = query.append_pair("sessionId", id).finish();
    let place = format!("{path}?{query}");
    event(Some("endpoint"), None, None, place.as_bytes())
}

#[derive(Deserialize)]
struct SessionQuery {
    #[serde(rename = "sessionId")]
    session: String,
}

pub(crate) async fn sse_message(
    State(mcp): State<McpApi>,
    caller: Caller,
    request: HttpRequest,
) -> Response {
    let place = Query::<SessionQuery>::try_from_uri(request.uri());
    let pipe = place
        .ok()
        .and_then(|Query(place)| mcp.pipes.find(&caller, &place.session));
    let Some(pipe) = pipe else {
        return ApiError::not_found("there is no such connection").into_response();
    };
    let body = match read_body(request.into_body()).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    match pipe.take(&mcp, &caller, &body) {
        Ok(()) => accepted(),
        Err(refusal) => refusal.into_response(),
    }
}

impl SsePipe {
    /// `caller` is the client of this message: the entry's tools may have
    /// changed since the stream was opened.
    fn take(
        self: &Arc<SsePipe>,
        mcp: &McpApi,
        caller: &Caller,
        body: &[u8],
    ) -> Result<(), McpRefusal> {
        if is_batch(body) {
            let session = self.session.get().ok_or(Fault::Batch)?;
            let elements = parse_batch(body)?;
            let requests = legacy::take_batch(&mcp.gateway, caller, session, &elements)?;
            let mut requests = requests.into_iter();
            return requests.try_for_each(|request| self.run(mcp, caller, session, request));
        }
        match wire::parse(body)? {
            Message::Request { id, method, params } => {
                if RequestParams::read(params)?.is_modern() {
                    let error = "this transport is not one of the modern revisions";
                    return Err(McpRefusal::new(code::INVALID_REQUEST, error).of(id.raw()));
                }
                let request = OwnedRequest::of(id.raw(), &method, params);
                match self.session.get() {
                    Some(session) => self.run(mcp, caller, session, request),
                    None => self.first(mcp, caller, request),
                }
            }
            message => {
                if let Some(session) = self.session.get() {
                    legacy::take(&mcp.gateway, caller, session, message);
                }
                Ok(())
            }
        }
    }

    fn run(
        &self,
        mcp: &McpApi,
        caller: &Caller,
        session: &Arc<Session>,
        request: OwnedRequest,
    ) -> Result<(), McpRefusal> {
        let (incoming, stream) = (request.as_request(), &self.stream);
        let work = running::work(&mcp.gateway, caller, session, incoming, stream, ())?;
        tokio::spawn(work);
        Ok(())
    }

    /// Handles a request before there is a session: it should open one.
    fn first(
        self: &Arc<SsePipe>,
        mcp: &McpApi,
        caller: &Caller,
        request: OwnedRequest,
    ) -> Result<(), McpRefusal> {
        let opens = request.method == "initialize";
        if !opens || self.opening.swap(true, Ordering::Relaxed) {
            let error = "the first request is `initialize`, and its answer comes before others";
            return Err(McpRefusal::new(code::INVALID_REQUEST, error).of(&request.id));
        }
        let (version, capabilities) = agreed(request.params.as_deref());
        let client = running::sessionless(version, capabilities.clone());
        let gateway = mcp.gateway.clone();
        let replies = gateway.request(caller, &client, request.as_request());
        let pipe = self.clone();
        tokio::spawn(async move {
            let reply = replies.last().await;
            if reply.error.is_none() {
                let sessions = &gateway.sessions;
                let session = sessions.attached(&pipe.caller, version, &capabilities, &pipe.stream);
                // If two requests open one at the same time, the first counts.
                let session = pipe.session.get_or_init(|| session);
                if pipe.stream.is_closed() {
                    session.end();
                }
            }
            pipe.opening.store(false, Ordering::Relaxed);
            pipe.stream.push(reply.body, true).await;
        });
        Ok(())
    }
}
