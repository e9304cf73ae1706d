//! Errors for a message of the client that gets no response, or a refusal.

use http::StatusCode;

use wire::{RpcError, code};

#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum BridgeError {
    /// Not sent: no gateway accepts connections.
    #[error("no Portway answers at {0}")]
    Away(String),
    #[error(
        "the Portway at {0} went away while this request was running; \
         whether it took effect is not known"
    )]
    Broken(String),
    #[error("the Portway at {0} has not said anything for too long")]
    Silent(String),
    #[error("{0}")]
    Denied(String),
    #[error("{error}")]
    Refused { status: StatusCode, error: RpcError },
    #[error("{0}")]
    Odd(String),
    /// The client has cancelled the request.
    #[error("cancelled")]
    Cancelled,
}

pub(super) type BridgeResult<T> = Result<T, BridgeError>;

impl BridgeError {
    pub(super) fn to_error(&self) -> RpcError {
        match self {
            BridgeError::Refused { error, .. } => error.clone(),
            other => RpcError::new(code::INTERNAL, other.to_string()),
        }
    }

    /// Whether the gateway ignored the message: it does not know the session.
    pub(super) fn session_lost(&self) -> bool {
        matches!(
            self,
            BridgeError::Refused { status: StatusCode::NOT_FOUND, error }
                if error.code != code::METHOD_NOT_FOUND
        )
    }

    pub(super) fn has_code(&self, wanted: i64) -> bool {
        matches!(self, BridgeError::Refused { error, .. } if error.code == wanted)
    }
}
