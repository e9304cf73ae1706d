//! One request on its way through the gateway, held by whoever waits for it.

use std::pin::Pin;
use std::sync::Arc;

use crate::gateway::{Caller, Client, Flow, Gateway, Incoming, Item, Reply, Source};

use super::request::Request;

/// Dropping it gives the request up.
pub(super) enum Exchange {
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
        match gateway.at_once(caller, &client, incoming) {
            Some(Flow::Reply(reply)) => Exchange::Answered(Some(reply)),
            Some(Flow::Stream(source)) => Exchange::Streaming(source),
            None => {
                let (gateway, caller) = (gateway.clone(), caller.clone());
                let request = Request::of(incoming);
                Exchange::Asking(Box::pin(async move {
                    gateway.dispatch(&caller, &client, request.incoming()).await
                }))
            }
        }
    }

    /// Not to be called again after [`Item::Last`]. Cancel-safe.
    pub(super) async fn next(&mut self) -> Item {
        loop {
            match self {
                Exchange::Asking(flow) => match flow.await {
                    Flow::Reply(reply) => return Item::Last(reply),
                    Flow::Stream(source) => *self = Exchange::Streaming(source),
                },
                Exchange::Streaming(source) => return source.next().await,
                Exchange::Answered(reply) => match reply.take() {
                    Some(reply) => return Item::Last(reply),
                    None => return std::future::pending().await,
                },
            }
        }
    }
}
