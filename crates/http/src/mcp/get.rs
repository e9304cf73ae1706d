//! The session's own stream, resumption of a stream, and the end of a session.
//! Modern clients have none of these.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

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
    let text = "without Mcp-Session-Id only POST is possible at this path";
    let error = ApiError::new(Code::MethodNotAllowed, text);
    ([(header::ALLOW, "POST")], error).into_response()
}

fn follow(post: Post<'_>) -> Result<Response, McpRefusal> {
    post.known_version()?;
    let session = session(post)?;
    let last = single(post.headers, "last-event-id");
    let last = last.map_err(|_| unreadable())?.filter(|id| !id.is_empty());
    let (reader, kind, missed) = match last {
        None => {
            let reader = session.own().read().ok_or_else(taken)?;
            (reader, StreamKind::Own, false)
        }
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

type ResumedStream = (StreamReader, StreamKind, bool);

/// The stream of an event, from that event on, and whether the messages after
/// it are no longer known; `None` if no more events come.
fn resume(session: &Session, id: &str) -> Result<Option<ResumedStream>, McpRefusal> {
    let (kind, stream, number) = parse_event_id(id).ok_or_else(unreadable)?;
    let found = session.find_stream(stream);
    let missed = kind == StreamKind::Own && found.is_none();
    let reader = match found {
        Some(stream) => stream.resume(number),
        // The event is from an earlier run: each run has only one such stream.
        None if missed => session.own().resume_unread(),
        None => None,
    };
    Ok(reader.map(|reader| (reader, kind, missed)))
}

fn unreadable() -> McpRefusal {
    McpRefusal::new(code::INVALID_REQUEST, "Last-Event-ID is not one of ours")
}

fn taken() -> McpRefusal {
    let text = "this session's stream is already open";
    let error = wire::RpcError::new(code::INVALID_REQUEST, text);
    McpRefusal::with(StatusCode::CONFLICT, error)
}

fn nothing_left() -> Response {
    let text = "nothing more comes on the stream of this event";
    ApiError::new(Code::MethodNotAllowed, text).into_response()
}
