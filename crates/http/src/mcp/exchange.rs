//! One request on its way through the gateway, held by whoever waits for it.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use gateway::{Caller, Client, Flow, Gateway, Incoming, Item, Reply, Source};
use store::memory::{Account, Charge, UNCOUNTED};

use super::request::Request;

/// Dropping it gives the request up.
pub(super) struct Exchange {
    state: State,
    /// What the caller's requests and answers count against.
    account: Arc<Account>,
    /// The params are held for as long as the request runs.
    _params: Option<Charge>,
}

enum State {
    Asking(Pin<Box<dyn Future<Output = Flow> + Send>>),
    Answered(Option<Reply>),
    Streaming(Box<dyn Source>),
}

impl Exchange {
    pub(super) fn new(
        gateway: &Arc<Gateway>,
        caller: &Caller,
        client: Client,
        incoming: Incoming<'_>,
    ) -> Exchange {
        let account = gateway.account(caller);
        let params = incoming.params.map_or(0, |params| params.get().len());
        Exchange {
            account: account.clone(),
            _params: (params >= UNCOUNTED).then(|| account.charge(params)),
            state: State::new(gateway, caller, client, incoming),
        }
    }

    #[cfg(test)]
    pub(super) fn streaming(source: Box<dyn Source>) -> Exchange {
        let budget = store::memory::Budget::new(1 << 20);
        Exchange {
            state: State::Streaming(source),
            account: budget.admin().clone(),
            _params: None,
        }
    }

    /// Not to be called again after [`Item::Last`]. Cancel-safe.
    pub(super) async fn next(&mut self) -> Item {
        match self.state.next().await {
            Item::Last(reply) => Item::Last(reply.within(&self.account)),
            message => message,
        }
    }

    /// Counts a message that goes straight to the client. It is there already:
    /// what it takes is seen by the requests that follow.
    pub(super) fn count(&self, message: Bytes) -> Bytes {
        if message.len() < UNCOUNTED {
            return message;
        }
        Arc::new(self.account.charge(message.len())).bind(message)
    }
}

impl State {
    fn new(
        gateway: &Arc<Gateway>,
        caller: &Caller,
        client: Client,
        incoming: Incoming<'_>,
    ) -> State {
        match gateway.at_once(caller, &client, incoming) {
            Some(Flow::Reply(reply)) => State::Answered(Some(reply)),
            Some(Flow::Stream(source)) => State::Streaming(source),
            None => {
                let (gateway, caller) = (gateway.clone(), caller.clone());
                let request = Request::of(incoming);
                State::Asking(Box::pin(async move {
                    gateway.dispatch(&caller, &client, request.incoming()).await
                }))
            }
        }
    }

    async fn next(&mut self) -> Item {
        loop {
            match self {
                State::Asking(flow) => match flow.await {
                    Flow::Reply(reply) => return Item::Last(reply),
                    Flow::Stream(source) => *self = State::Streaming(source),
                },
                State::Streaming(source) => return source.next().await,
                State::Answered(reply) => match reply.take() {
                    Some(reply) => return Item::Last(reply),
                    None => return std::future::pending().await,
                },
            }
        }
    }
}
