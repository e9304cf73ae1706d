//! Errors of connections and calls.

use std::time::Duration;

use wire::RpcError;

/// An error of one server. `Display` is for a person: it names the action and
/// the result, never a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The command could not be started at all.
    #[error("{reason}")]
    Spawn { reason: String, permanent: bool },
    /// The process ended, by itself or because Portway ended it.
    #[error("{0}")]
    Exited(String),
    /// The address does not respond, or the connection broke.
    #[error("{0}")]
    Unreachable(String),
    /// The server requires a login (401) or refuses ours (403).
    #[error("{0}")]
    Login(String),
    /// The server's response violates MCP.
    #[error("{0}")]
    Protocol(String),
    /// No response within the limit. The request was cancelled.
    #[error("no answer within {}", seconds(.limit))]
    Timeout { limit: Duration },
    /// The server's own JSON-RPC error.
    #[error("{0}")]
    Rpc(RpcError),
    /// A message above the size limit.
    #[error("a message larger than {}", size(*.limit))]
    TooLarge { limit: usize },
    /// The connection no longer takes calls; nothing was sent.
    #[error("the connection is being replaced")]
    Draining,
    /// The permission for the request has ended; nothing was sent.
    #[error("the permission to call has ended")]
    Revoked,
    /// The connection ended while the request may already have run.
    #[error("the connection was lost before the answer; the request may have run ({0})")]
    Lost(String),
}

impl UpstreamError {
    /// Whether a retry without a change of the definition is pointless.
    pub fn permanent(&self) -> bool {
        matches!(
            self,
            UpstreamError::Spawn {
                permanent: true,
                ..
            } | UpstreamError::Login(_)
        )
    }
}

/// "8 MiB", "1000 bytes".
fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

/// "30 s", "2.5 s", "200 ms".
pub(crate) fn seconds(limit: &Duration) -> String {
    let ms = limit.as_millis();
    if ms < 1000 {
        format!("{ms} ms")
    } else if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{:.1} s", limit.as_secs_f64())
    }
}
