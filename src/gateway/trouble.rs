//! What a client is told when a call did not come to a result.

use serde_json::value::RawValue;

use super::errand::Job;
use crate::fleet::CallError;
use crate::upstream::{Peer, UpstreamError};
use crate::wire::result::{error_to_legacy, error_to_modern};
use crate::wire::{Era, RpcError, code};

/// The outcome of a failed request: a tool's failure is a result its model
/// can read, everything else an error.
pub(super) enum Trouble {
    /// The text of an `isError` result.
    Result(String),
    Error(RpcError),
}

pub(super) fn trouble(error: CallError, job: &Job, peer: Option<&Peer>) -> Trouble {
    let (what, server) = (&job.what, &job.errand.server);
    let text = match error {
        CallError::Upstream(UpstreamError::Rpc(error)) => {
            let error = match job.method() {
                "resources/read" | "completion/complete" => job.view.error_to_client(server, error),
                // What a tool or a prompt says of a failure is its own.
                _ => error,
            };
            let lacking = error.code == code::MISSING_CAPABILITY;
            let error = relayed(error, job, peer);
            match lacking && job.client.era == Era::Legacy {
                // A legacy server would have let its tool fail.
                true => error.message,
                false => return Trouble::Error(error),
            }
        }
        CallError::Upstream(error @ UpstreamError::Timeout { .. }) => {
            format!("{what} of server {server}: {error}; the call was cancelled")
        }
        CallError::Upstream(error) => {
            let text = format!("{what} of server {server}: {error}");
            return Trouble::Error(RpcError::new(code::INTERNAL, text));
        }
        error => error.to_string(),
    };
    match job.method() {
        "tools/call" => Trouble::Result(text),
        _ => Trouble::Error(RpcError::new(code::INTERNAL, text)),
    }
}

/// A server's own error, in the client's words. What it says about our hop is
/// not the client's business.
fn relayed(error: RpcError, job: &Job, peer: Option<&Peer>) -> RpcError {
    let client = job.client.era;
    let server = peer.map_or(client, |peer| peer.era);
    if matches!(
        error.code,
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION
    ) {
        let text = format!("between Portway and the server: {}", error.message);
        return RpcError::new(code::INTERNAL, text);
    }
    match (server, client) {
        (Era::Legacy, Era::Modern) => {
            let uri = (job.method() == "resources/read").then_some(job.what.as_str());
            error_to_modern(error, uri)
        }
        (Era::Modern, Era::Legacy) => error_to_legacy(job.method(), error),
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
