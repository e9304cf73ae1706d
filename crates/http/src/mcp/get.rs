//! The session's own stream, resumption of a stream, and the end of a session.
//! Modern clients have none of these.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::McpApi;
use super::accept::{Accept, single};
use super::follow::{Follow, StreamKind, parse_event_id};
use super::legacy::{SESSION, session};
use super::post::{McpRefusal, Post, not_acceptable};
use crate::error::{ApiError, Code};
use gateway::{Caller, Session, StreamReader};
use wire::code;

pub(crate) async fn stream(
    State(mcp): State<McpApi>,
    caller: Caller,
    headers: HeaderMap,
) -> Response {
    let post = Post {
        mcp: &mcp,
        caller: &caller,
        headers: &headers,
        accept: Accept::of(&headers),
    };
    if !headers.contains_key(SESSION) {
        return no_session();
    }
    if !post.accept.events {
        return not_acceptable().into_response();
    }
    follow(post).unwrap_or_else(IntoResponse::into_response)
}

pub(crate) async fn end_session(
    State(mcp): State<McpApi>,
    caller: Caller,
    headers: HeaderMap,
) -> Response {
    let id = match single(&headers, &SESSION) {
        Ok(None) => return no_session(),
        Ok(Some(id)) => id,
        // Two ids name no known session.
        Err(_) => "",
    };
    match mcp.gateway.sessions.end(&caller, id) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(none) => McpRefusal::from(none).into_response(),
    }
}

/// Also shows an old client that this is not its transport.
fn no_session() -> Response {
    let error = ApiError::new(
        Code::MethodNotAllowed,
        "without Mcp-Session-Id only POST is possible at this path",
    );
    let mut response = error.into_response();
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

fn follow(post: Post<'_>) -> Result<Response, McpRefusal> {
    post.known_version()?;
    let session = session(post)?;
    let last = single(post.headers, "last-event-id");
    let last = last.map_err(|_| unreadable())?.filter(|id| !id.is_empty());
    let missed = last.is_some_and(|id| is_of_earlier_run(&session, id));
    let (reader, kind) = match last {
        None => match session.own().read() {
            Some(reader) => (reader, StreamKind::Own),
            None => return Err(taken()),
        },
        Some(id) => match resume(&session, id)? {
            Some(found) => found,
            // 405 stops clients that would otherwise retry forever.
            None => return Ok(nothing_left()),
        },
    };
    let at = reader.position();
    let mut follow = Follow::new(reader, kind).greet(session.version, at);
    let until = post.mcp.gateway.stream_lifetime(post.caller);
    if kind == StreamKind::Own {
        let gateway = &post.mcp.gateway;
        gateway.attach(post.caller, &session);
        if missed {
            gateway.missed(post.caller, &session);
        }
        follow = follow.until(until.token().clone());
    }
    Ok(follow.response(until))
}

/// The stream of an event, from that event on; `None` if no more events come.
fn resume(session: &Session, id: &str) -> Result<Option<(StreamReader, StreamKind)>, McpRefusal> {
    let (kind, stream, number) = parse_event_id(id).ok_or_else(unreadable)?;
    let found = session.find_stream(stream);
    let reader = match (kind, found) {
        (_, Some(stream)) => stream.resume(number),
        // The event is from an earlier run: each run has only one such stream.
        (StreamKind::Own, None) => session.own().resume_unread(),
        (_, None) => None,
    };
    Ok(reader.map(|reader| (reader, kind)))
}

/// Whether the messages after an event are no longer known.
fn is_of_earlier_run(session: &Session, id: &str) -> bool {
    let event = parse_event_id(id);
    event.is_some_and(|(kind, stream, _)| {
        kind == StreamKind::Own && session.find_stream(stream).is_none()
    })
}

fn unreadable() -> McpRefusal {
    McpRefusal::new(code::INVALID_REQUEST, "Last-Event-ID is not one of ours")
}

fn taken() -> McpRefusal {
    let error = wire::RpcError::new(
        code::INVALID_REQUEST,
        "this session's stream is already open",
    );
    McpRefusal::with(StatusCode::CONFLICT, error)
}

fn nothing_left() -> Response {
    let error = ApiError::new(
        Code::MethodNotAllowed,
        "nothing more comes on the stream of this event",
    );
    error.into_response()
}
