//! Requests whose permission may end while they wait: it is checked at the
//! moment they are written, and not before.

use std::sync::Arc;

use bytes::Bytes;

use super::UpstreamError;
use super::pending::PendingRequests;

/// The permission to send a request. The code that revokes it waits until all
/// writers that entered have left; after that nothing is written.
pub trait Permit: Send + Sync {
    /// Whether the permission is valid; if true, the caller must call `leave`.
    fn enter(&self) -> bool;
    fn leave(&self);
}

/// Held while bytes are being written.
#[must_use]
pub(crate) struct WriteGuard(Option<Arc<dyn Permit>>);

impl WriteGuard {
    /// A request without a permit is always allowed.
    pub(crate) fn enter(permit: Option<&Arc<dyn Permit>>) -> Result<WriteGuard, UpstreamError> {
        match permit {
            Some(permit) if !permit.enter() => Err(UpstreamError::Revoked),
            permit => Ok(WriteGuard(permit.cloned())),
        }
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if let Some(permit) = &self.0 {
            permit.leave();
        }
    }
}

/// A message in the queue to a server.
pub(crate) struct OutgoingMessage {
    pub bytes: Bytes,
    permitted: Option<PermittedRequest>,
    /// The answer to a question of the server: sent even at the very end.
    pub answer: bool,
}

struct PermittedRequest {
    permit: Arc<dyn Permit>,
    /// The table with the pending request, which fails if nothing is sent.
    pending: Arc<PendingRequests>,
    id: u64,
}

impl OutgoingMessage {
    pub(crate) fn new(
        bytes: Bytes,
        permit: Option<&Arc<dyn Permit>>,
        pending: &Arc<PendingRequests>,
        id: u64,
    ) -> OutgoingMessage {
        let permitted = permit.map(|permit| PermittedRequest {
            permit: permit.clone(),
            pending: pending.clone(),
            id,
        });
        OutgoingMessage {
            bytes,
            permitted,
            answer: false,
        }
    }

    pub(crate) fn answer(bytes: Vec<u8>) -> OutgoingMessage {
        OutgoingMessage {
            answer: true,
            ..bytes.into()
        }
    }

    pub(crate) fn permit(&self) -> Option<&Arc<dyn Permit>> {
        self.permitted.as_ref().map(|permitted| &permitted.permit)
    }

    /// Call right before the write. `None`: the message must not be written,
    /// and its request has failed.
    pub(crate) fn enter(&self) -> Option<WriteGuard> {
        match (WriteGuard::enter(self.permit()), &self.permitted) {
            (Ok(passing), _) => Some(passing),
            (Err(error), Some(PermittedRequest { pending, id, .. })) => {
                pending.resolve(*id, Err(error));
                None
            }
            (Err(_), None) => None,
        }
    }
}

impl From<Bytes> for OutgoingMessage {
    fn from(bytes: Bytes) -> OutgoingMessage {
        OutgoingMessage {
            bytes,
            permitted: None,
            answer: false,
        }
    }
}

impl From<Vec<u8>> for OutgoingMessage {
    fn from(bytes: Vec<u8>) -> OutgoingMessage {
        Bytes::from(bytes).into()
    }
}
