//! One request on its way through the gateway, held by whoever waits for it.

use std::pin::Pin;
use std::sync::Arc;

use crate::gateway::{Caller, Client, Flow, Gateway, Item, Source};

use super::request::Request;

/// Dropping it gives the request up.
pub(super) enum Exchange {
    Asking(Pin<Box<dyn Future<Output = Flow> + Send>>),
    Streaming(Box<dyn Source>),
}

impl Exchange {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        caller: Caller,
        client: Client,
        request: Request,
    ) -> Exchange {
        Exchange::Asking(Box::pin(async move {
            gateway.dispatch(&caller, &client, request.incoming()).await
        }))
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
            }
        }
    }
}
