//! Calls that end without a result: the result or error that the client gets.

use serde_json::value::RawValue;

use super::call::Call;
use super::questions::pages;
use super::resolve::{no_resource, unknown};
use fleet::CallError;
use upstream::{Peer, UpstreamError};
use wire::era::legacy_at_least;
use wire::object::{pick, text as words};
use wire::result::{error_to_legacy, error_to_modern};
use wire::{Era, RpcError, code};

/// The end of a call without a result.
pub(super) enum CallFailure {
    /// An `isError` result, which the client's model can read.
    Tool {
        text: String,
        late: bool,
    },
    Error(RpcError),
}

impl CallFailure {
    pub(crate) fn of(error: CallError, call: &Call, peer: Option<&Peer>) -> CallFailure {
        let late = matches!(error, CallError::Upstream(UpstreamError::Timeout { .. }));
        let text = match error {
            CallError::Upstream(UpstreamError::Revoked) => {
                return CallFailure::Error(revoked(call));
            }
            CallError::Upstream(UpstreamError::Rpc(error)) => match server_error(error, call, peer)
            {
                Ok(text) => text,
                Err(error) => return CallFailure::Error(error),
            },
            CallError::Upstream(error @ UpstreamError::Timeout { .. }) => {
                format!("{}: {error}; the call was cancelled", call.subject())
            }
            CallError::Upstream(error) => {
                let reason = if call.is_through_entry() {
                    discreet(&error).to_owned()
                } else {
                    error.to_string()
                };
                let text = format!("{}: {reason}", call.subject());
                return CallFailure::Error(RpcError::new(code::INTERNAL, text));
            }
            _ if call.is_through_entry() => {
                format!("{}: its server is not connected", call.subject())
            }
            error => error.to_string(),
        };
        CallFailure::text(call, text, late)
    }

    /// A tool's failure is a result; every other method's is an error.
    pub(crate) fn text(call: &Call, text: String, late: bool) -> CallFailure {
        match call.method() {
            "tools/call" => CallFailure::Tool { text, late },
            _ => CallFailure::Error(RpcError::new(code::INTERNAL, text)),
        }
    }
}

/// A server's own error: passed on, or as a text where its code means nothing
/// to the client.
fn server_error(error: RpcError, call: &Call, peer: Option<&Peer>) -> Result<String, RpcError> {
    let error = match call.method() {
        "resources/read" | "completion/complete" => call.view.error_to_client(call.origin(), error),
        // The text of a tool's or prompt's failure stays as it is.
        _ => error,
    };
    let lacking = error.code == code::MISSING_CAPABILITY;
    let pages = knows_no_pages(call).then(|| pages_text(&error)).flatten();
    let error = relayed(error, call, peer);
    match pages {
        Some(text) => Ok(text),
        // A legacy server would have let its tool fail.
        None if lacking && call.client.era == Era::Legacy => Ok(error.message),
        None => Err(error),
    }
}

/// Whether the client's revision has no pages to open.
fn knows_no_pages(call: &Call) -> bool {
    let client = &call.client;
    client.era == Era::Legacy && !legacy_at_least(client.version, "2025-11-25")
}

/// The pages to be opened first, as a text.
fn pages_text(error: &RpcError) -> Option<String> {
    let mut text = error.message.clone();
    for page in pages(error)? {
        let [message, url] = pick(page, ["message", "url"]).map(|part| part.and_then(words));
        for part in [message, url].into_iter().flatten() {
            text = format!("{text}\n{part}");
        }
    }
    Some(text)
}

/// The entry no longer has it: the error is that of an unknown name.
fn revoked(call: &Call) -> RpcError {
    let error = match call.method() {
        "tools/call" => unknown("tool", &call.client_name),
        "prompts/get" => unknown("prompt", &call.client_name),
        _ => no_resource(&call.client_name),
    };
    match call.client.era {
        Era::Modern => error_to_modern(error, None),
        Era::Legacy => error,
    }
}

/// The holder of an entry's key learns neither the server's name nor its log.
fn discreet(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Lost(_) => {
            "the connection was lost before the answer; the request may have run"
        }
        UpstreamError::TooLarge { .. } => "the answer is too large",
        UpstreamError::Login(_) => "the server behind it requires a login",
        UpstreamError::Protocol(_) => "the server behind it sent an invalid MCP message",
        _ => "the server behind it cannot be reached",
    }
}

/// A server's own error in the client's era. Codes about the connection between
/// Portway and the server become internal errors.
fn relayed(error: RpcError, call: &Call, peer: Option<&Peer>) -> RpcError {
    let client = call.client.era;
    let server = peer.map_or(client, |peer| peer.era);
    // A legacy server means something else by these codes.
    let of_the_hop = match error.code {
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION => true,
        code::MISSING_CAPABILITY | code::URL_ELICITATION => {
            (server, client) == (Era::Legacy, Era::Modern)
        }
        _ => false,
    };
    if of_the_hop {
        let text = match server {
            Era::Modern => format!("between Portway and the server: {}", error.message),
            Era::Legacy => error.message,
        };
        return RpcError::new(code::INTERNAL, text);
    }
    match (server, client) {
        (Era::Legacy, Era::Modern) => {
            let uri = (call.method() == "resources/read").then_some(call.client_name.as_str());
            error_to_modern(error, uri)
        }
        (Era::Modern, Era::Legacy) => error_to_legacy(call.method(), error),
        _ => error,
    }
}

/// A result that reports the failure of the tool, with the reason.
pub(super) fn failed_tool(text: &str, client: Era) -> Box<RawValue> {
    let mut result = serde_json::json!({
        "content": [{"type": "text", "text": text}],
        "isError": true,
    });
    if client == Era::Modern {
        result["resultType"] = "complete".into();
    }
    serde_json::value::to_raw_value(&result).expect("text and literals serialise")
}
