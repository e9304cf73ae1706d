//! What a client is told when a call did not come to a result.

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

/// The outcome of a failed request: a tool's failure is a result its model
/// can read, everything else an error.
pub(super) enum CallFailure {
    /// The text of an `isError` result.
    Result(String),
    /// The same, of a call that took too long.
    Late(String),
    Error(RpcError),
}

pub(super) fn trouble(error: CallError, call: &Call, peer: Option<&Peer>) -> CallFailure {
    let subject = call.subject();
    let late = matches!(error, CallError::Upstream(UpstreamError::Timeout { .. }));
    let text = match error {
        CallError::Upstream(UpstreamError::Revoked) => return CallFailure::Error(gone(call)),
        CallError::Upstream(UpstreamError::Rpc(error)) => {
            let error = match call.method() {
                "resources/read" | "completion/complete" => {
                    call.view.error_to_client(call.origin(), error)
                }
                // What a tool or a prompt says of a failure is its own.
                _ => error,
            };
            let lacking = error.code == code::MISSING_CAPABILITY;
            let unknown = knows_no_pages(call).then(|| unopened(&error)).flatten();
            let error = relayed(error, call, peer);
            match unknown {
                Some(text) => text,
                // A legacy server would have let its tool fail.
                None if lacking && call.client.era == Era::Legacy => error.message,
                None => return CallFailure::Error(error),
            }
        }
        CallError::Upstream(error @ UpstreamError::Timeout { .. }) => {
            format!("{subject}: {error}; the call was cancelled")
        }
        CallError::Upstream(error) => {
            let text = match call.is_entrys() {
                true => format!("{subject}: {}", discreet(&error)),
                false => format!("{subject}: {error}"),
            };
            return CallFailure::Error(RpcError::new(code::INTERNAL, text));
        }
        _ if call.is_entrys() => format!("{subject}: its server is not connected"),
        error => error.to_string(),
    };
    match call.method() {
        "tools/call" if late => CallFailure::Late(text),
        "tools/call" => CallFailure::Result(text),
        _ => CallFailure::Error(RpcError::new(code::INTERNAL, text)),
    }
}

/// Whether the client is of a revision that has no pages to open.
fn knows_no_pages(call: &Call) -> bool {
    let client = &call.client;
    client.era == Era::Legacy && !legacy_at_least(client.version, "2025-11-25")
}

/// The pages to be opened first, for who reads them.
fn unopened(error: &RpcError) -> Option<String> {
    let mut text = error.message.clone();
    for page in pages(error)? {
        let [message, url] = pick(page, ["message", "url"]).map(|part| part.and_then(words));
        for part in [message, url].into_iter().flatten() {
            text = format!("{text}\n{part}");
        }
    }
    Some(text)
}

/// As if it had never been there: the entry no longer has it.
fn gone(call: &Call) -> RpcError {
    let error = match call.method() {
        "tools/call" => unknown("tool", &call.what),
        "prompts/get" => unknown("prompt", &call.what),
        _ => no_resource(&call.what),
    };
    match call.client.era {
        Era::Modern => error_to_modern(error, None),
        Era::Legacy => error,
    }
}

/// Who has an entry's key need not know what runs behind it, nor what that
/// wrote to its log.
fn discreet(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Lost(_) => {
            "the connection was lost before the answer; the request may have run"
        }
        UpstreamError::TooLarge { .. } => "the answer is too large",
        UpstreamError::Login(_) => "the server behind it wants a login",
        UpstreamError::Protocol(_) => "the server behind it answered in a way MCP does not allow",
        _ => "the server behind it cannot be reached",
    }
}

/// A server's own error, in the client's words. What it says about our hop is
/// not the client's business.
fn relayed(error: RpcError, call: &Call, peer: Option<&Peer>) -> RpcError {
    let client = call.client.era;
    let server = peer.map_or(client, |peer| peer.era);
    // Of a legacy server these mean something else, whatever it is.
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
            let uri = (call.method() == "resources/read").then_some(call.what.as_str());
            error_to_modern(error, uri)
        }
        (Era::Modern, Era::Legacy) => error_to_legacy(call.method(), error),
        _ => error,
    }
}

/// A result that says the tool failed, and why.
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
