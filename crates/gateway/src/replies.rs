//! What a client gets for one request: messages in order, then the reply.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::legacy::LegacyCall;
use super::listening::ListenStream;
use super::modern::ModernCall;
use super::{Reply, ReplyItem};
use store::memory::{Account, Charge, UNCOUNTED};

/// One request on its way. Dropping it gives the request up: its server is
/// told.
pub struct ReplyStream {
    state: ReplyState,
    /// What the caller's requests and answers count against.
    account: Arc<Account>,
    /// The params are held for as long as the request runs.
    _params: Option<Charge>,
}

pub(super) enum ReplyState {
    /// Answered without waiting.
    Reply(Option<Reply>),
    /// A request whose beginning has to wait for something.
    Opening(Pin<Box<dyn Future<Output = ReplyState> + Send>>),
    Legacy(Box<LegacyCall>),
    Modern(Box<ModernCall>),
    ListenStream(Box<ListenStream>),
}

impl ReplyStream {
    pub(super) fn new(account: &Arc<Account>, params: usize, state: ReplyState) -> ReplyStream {
        ReplyStream {
            account: account.clone(),
            _params: (params >= UNCOUNTED).then(|| account.charge(params)),
            state,
        }
    }

    /// Not to be called again after [`ReplyItem::Last`]. Cancel-safe.
    pub async fn next(&mut self) -> ReplyItem {
        match self.state.next().await {
            ReplyItem::Last(reply) => ReplyItem::Last(reply.within(&self.account)),
            message => message,
        }
    }

    /// The reply alone; messages before it are dropped.
    pub async fn last(mut self) -> Reply {
        loop {
            if let ReplyItem::Last(reply) = self.next().await {
                return reply;
            }
        }
    }

    /// The reply of a request that was answered without waiting.
    pub fn at_once(self) -> Option<Reply> {
        match self.state {
            ReplyState::Reply(reply) => reply,
            _ => None,
        }
    }

    /// Counts a message that goes straight to the client. It is there already:
    /// what it takes is seen by the requests that follow.
    pub fn count(&self, message: Bytes) -> Bytes {
        if message.len() < UNCOUNTED {
            return message;
        }
        Arc::new(self.account.charge(message.len())).bind(message)
    }
}

impl From<Reply> for ReplyState {
    fn from(reply: Reply) -> ReplyState {
        ReplyState::Reply(Some(reply))
    }
}

impl ReplyState {
    async fn next(&mut self) -> ReplyItem {
        loop {
            match self {
                ReplyState::Reply(reply) => match reply.take() {
                    Some(reply) => return ReplyItem::Last(reply),
                    None => return std::future::pending().await,
                },
                ReplyState::Opening(opening) => *self = opening.await,
                ReplyState::Legacy(call) => return call.next().await,
                ReplyState::Modern(call) => return call.next().await,
                ReplyState::ListenStream(listening) => return listening.next().await,
            }
        }
    }
}
