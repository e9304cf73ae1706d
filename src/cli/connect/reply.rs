//! An HTTP response as messages.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use super::error::{BridgeError, BridgeResult};
use super::gateway_link::{GatewayLink, SILENCE};
use crate::cli::failure::Failure;
use crate::cli::remote::LARGEST;
use upstream::{Events, ResponseBody, StreamError, StreamPosition, is_event_stream};
use wire::{Outcome, RpcError, code};

const REFUSAL: usize = 1 << 20;

pub(super) enum GatewayReply {
    One(Bytes),
    Stream(Box<GatewayStream>),
    Nothing,
}

impl GatewayReply {
    /// The next message, whatever the form of the reply.
    pub(super) async fn next(&mut self) -> BridgeResult<Option<Bytes>> {
        if let GatewayReply::Stream(stream) = self {
            return stream.next().await;
        }
        match std::mem::replace(self, GatewayReply::Nothing) {
            GatewayReply::One(message) => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

/// The messages of an event stream, and the position of the last event read.
pub(super) struct GatewayStream {
    events: Events,
    url: String,
    pub place: StreamPosition,
}

/// Classifies a response by its head; reads the reason from a refusal.
pub(super) async fn read(
    response: Response<ResponseBody>,
    gateway: &GatewayLink,
) -> BridgeResult<GatewayReply> {
    let url = &gateway.url();
    let status = response.status();
    if !status.is_success() {
        return Err(refusal(response, gateway, url).await);
    }
    let (head, body) = response.into_parts();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(GatewayReply::Nothing);
    }
    if is_event_stream(&head.headers) {
        return Ok(GatewayReply::Stream(Box::new(GatewayStream {
            events: Events::new(body, LARGEST, url.to_owned()),
            url: url.to_owned(),
            place: StreamPosition::default(),
        })));
    }
    let whole = match timeout(SILENCE, body.collect(LARGEST)).await {
        Ok(Ok(whole)) => whole,
        Ok(Err(_)) => return Err(BridgeError::Broken(url.to_owned())),
        Err(_) => return Err(BridgeError::Silent(url.to_owned())),
    };
    if whole.is_empty() {
        return Ok(GatewayReply::Nothing);
    }
    Ok(GatewayReply::One(whole))
}

async fn refusal(
    response: Response<ResponseBody>,
    gateway: &GatewayLink,
    url: &str,
) -> BridgeError {
    let status = response.status();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return BridgeError::Denied(gateway.denied());
    }
    let body = timeout(SILENCE, response.into_body().collect(REFUSAL)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let error = match wire::outcome(&body) {
        Some(Outcome::Error(error)) => error,
        _ => {
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let text = Failure::refused(status, &body).to_string();
            RpcError::new(code::INTERNAL, format!("the Portway at {url}: {text}"))
        }
    };
    BridgeError::Refused { status, error }
}

impl GatewayStream {
    /// The next message, or `None` at the end of the stream. Cancel safe: a
    /// dropped future loses nothing.
    pub(super) async fn next(&mut self) -> BridgeResult<Option<Bytes>> {
        loop {
            let event = self.events.next_within(SILENCE).await;
            let event = event.map_err(|error| match error {
                StreamError::TooLong(long) => BridgeError::Odd(format!("{}: {long}", self.url)),
                StreamError::Broken(_) => BridgeError::Broken(self.url.clone()),
                StreamError::Silent(_) => BridgeError::Silent(self.url.clone()),
            })?;
            match event {
                Some(event) if self.place.pass(&event) && event.is_message() => {
                    return Ok(Some(event.data.into()));
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }
}
