//! Requests of modern clients: each is self-contained. The order of the checks
//! is part of the protocol.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, StatusCode};
use serde_json::value::RawValue;

use super::accept::single;
use super::post::{McpRefusal, Post, VERSION, not_acceptable};
use super::stateless;
use gateway::{Client, ClientRequest, Reply, View, forwardable_capabilities};
use wire::meta::{RequestEnvelope, member};
use wire::method::{self, MethodKind, Sender};
use wire::object::unquote;
use wire::{Era, MODERN, RpcError, code, header};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LISTEN: &str = "subscriptions/listen";

pub(super) async fn request(
    post: Post<'_>,
    incoming: ClientRequest<'_>,
    envelope: RequestEnvelope<'_>,
) -> Result<Response, McpRefusal> {
    let method = incoming.method;
    version(post, &envelope)?;
    names(post, incoming)?;
    known(method)?;
    let view = post.mcp.gateway.view(post.caller);
    if method == "tools/call" {
        arguments(post, &view, incoming)?;
    }
    if method == LISTEN && !post.accept.events {
        return Ok(not_acceptable().into_response());
    }
    let client = Client {
        era: Era::Modern,
        version: MODERN,
        capabilities: forwardable_capabilities(envelope.capabilities),
        log_level: envelope.log_level,
        session: None,
    };
    let gateway = &post.mcp.gateway;
    let replies = gateway.request_in(view, post.caller, &client, incoming);
    Ok(stateless::answer(post.accept, replies, status).await)
}

fn version(post: Post<'_>, envelope: &RequestEnvelope<'_>) -> Result<(), McpRefusal> {
    let asked = envelope.version.as_ref();
    match single(post.headers, &VERSION) {
        Ok(Some(named)) if named == asked => {}
        Ok(None) => return Err(mismatch("header MCP-Protocol-Version is missing")),
        _ => {
            return Err(mismatch(
                "header MCP-Protocol-Version does not match the body",
            ));
        }
    }
    if asked == MODERN {
        return Ok(());
    }
    let data = serde_json::json!({"supported": [MODERN], "requested": asked});
    let error = RpcError::new(code::UNSUPPORTED_VERSION, "Unsupported protocol version");
    let error = match serde_json::value::to_raw_value(&data) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    };
    Err(McpRefusal::with(StatusCode::BAD_REQUEST, error))
}

/// Checks that `Mcp-Method` and `Mcp-Name` match the body.
fn names(post: Post<'_>, incoming: ClientRequest<'_>) -> Result<(), McpRefusal> {
    let method = incoming.method;
    match single(post.headers, &METHOD) {
        Ok(Some(named)) if named == method => {}
        Ok(None) => return Err(mismatch("header Mcp-Method is missing")),
        _ => return Err(mismatch("header Mcp-Method does not match the body")),
    }
    let Some(param) = method::name_param(method) else {
        return Ok(());
    };
    let subject = match param {
        "name" => incoming.found.name,
        "uri" => incoming.found.uri,
        other => incoming
            .params
            .and_then(|params| member(params, other))
            .map(RawValue::get),
    };
    match (single(post.headers, &NAME), subject) {
        (Ok(None), None) => Ok(()),
        (Ok(None), Some(_)) => Err(mismatch("header Mcp-Name is missing")),
        (Ok(Some(named)), Some(value)) if header::matches(named, value) == Ok(true) => Ok(()),
        _ => Err(mismatch("header Mcp-Name does not match the body")),
    }
}

/// Unknown methods are 404 with a body: without one it would look as if there
/// were nothing at this path.
fn known(method: &str) -> Result<(), McpRefusal> {
    let known = method::find(method).is_some_and(|known| {
        known.kind == MethodKind::Request
            && known.modern == Some(Sender::Client)
            && known.extension.is_none()
    });
    if known {
        return Ok(());
    }
    // A name has no length limit of its own; the message about it has.
    let short: String = method.chars().take(64).collect();
    let error = RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {short}"));
    Err(McpRefusal::with(StatusCode::NOT_FOUND, error))
}

/// Checks that `Mcp-Param-*` headers match the arguments.
fn arguments(post: Post<'_>, view: &View, incoming: ClientRequest<'_>) -> Result<(), McpRefusal> {
    let Some(name) = incoming.found.name.and_then(unquote) else {
        return Ok(());
    };
    let tool = view.tool(&name);
    let Some(tool) = tool.filter(|tool| !tool.traits.headers.is_empty()) else {
        return Ok(());
    };
    let arguments = incoming
        .params
        .and_then(|params| member(params, "arguments"));
    let mut unclear = None;
    let found = header::check_params(&tool.traits.headers, arguments, |name| {
        single(post.headers, name).unwrap_or_else(|_| {
            unclear = Some(name.to_owned());
            None
        })
    });
    match (unclear, found) {
        (Some(name), _) => Err(mismatch(format!("header {name} cannot be read"))),
        (None, Err(wrong)) => Err(mismatch(wrong.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

fn mismatch(message: impl Into<Cow<'static, str>>) -> McpRefusal {
    McpRefusal::new(code::HEADER_MISMATCH, message.into())
}

/// A server's own `-32601` is an ordinary response; ours means that the method
/// does not exist.
fn status(reply: &Reply) -> StatusCode {
    match reply.error {
        Some(code::METHOD_NOT_FOUND) if !reply.relayed => StatusCode::NOT_FOUND,
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
