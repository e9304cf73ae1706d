//! An HTTP response as messages.

use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use super::error::BridgeError;
use super::gateway_link::{GatewayLink, SILENCE};
use crate::cli::failure::Failure;
use upstream::{Events, ResponseBody};
use wire::sse::Event;
use wire::{Message, Outcome, RpcError, code};

/// The limit for one message; lists can be large.
const LARGEST: usize = 64 << 20;
const REFUSAL: usize = 1 << 20;
const RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

pub(super) enum GatewayReply {
    One(Bytes),
    Stream(Box<GatewayStream>),
    Nothing,
}

/// The messages of an event stream, and the position of the last event read.
pub(super) struct GatewayStream {
    events: Events,
    url: String,
    pub last_id: Option<HeaderValue>,
    pub retry: Duration,
}

/// Classifies a response by its head; reads the reason from a refusal.
pub(super) async fn read(
    response: Response<ResponseBody>,
    gateway: &GatewayLink,
) -> Result<GatewayReply, BridgeError> {
    let url = &gateway.url();
    let status = response.status();
    if !status.is_success() {
        return Err(refusal(response, gateway, url).await);
    }
    let (head, body) = response.into_parts();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(GatewayReply::Nothing);
    }
    let kind = head.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return Ok(GatewayReply::Stream(Box::new(GatewayStream {
            events: Events::new(body, LARGEST, url.to_owned()),
            url: url.to_owned(),
            last_id: None,
            retry: RETRY,
        })));
    }
    let whole = match timeout(SILENCE, body.collect(LARGEST)).await {
        Ok(Ok(whole)) => whole,
        Ok(Err(_)) => return Err(BridgeError::Broken(url.to_owned())),
        Err(_) => return Err(BridgeError::Silent(url.to_owned())),
    };
    match whole.is_empty() {
        true => Ok(GatewayReply::Nothing),
        false => Ok(GatewayReply::One(whole)),
    }
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
    let error = match wire::parse_upstream(&body) {
        Ok(Message::Response {
            outcome: Outcome::Error(error),
            ..
        }) => error,
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
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BridgeError> {
        loop {
            match self.events.ready() {
                Ok(Some(event)) => {
                    if let Some(message) = self.note(event) {
                        return Ok(Some(message));
                    }
                    continue;
                }
                Ok(None) => {}
                Err(long) => return Err(BridgeError::Odd(format!("{}: {long}", self.url))),
            }
            match timeout(SILENCE, self.events.more()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Ok(None),
                Ok(Err(_)) => return Err(BridgeError::Broken(self.url.clone())),
                Err(_) => return Err(BridgeError::Silent(self.url.clone())),
            }
        }
    }

    fn note(&mut self, event: Event) -> Option<Bytes> {
        if let Some(ms) = event.retry {
            self.retry = Duration::from_millis(ms).min(LONGEST_RETRY);
        }
        if let Some(id) = &event.id {
            let id = HeaderValue::try_from(id).ok().filter(|id| !id.is_empty());
            if id.is_some() && id == self.last_id {
                return None;
            }
            self.last_id = id;
        }
        event.is_message().then(|| event.data.into())
    }

    /// Continues after the last event of `earlier`.
    pub(super) fn after(
        mut self: Box<GatewayStream>,
        earlier: &GatewayStream,
    ) -> Box<GatewayStream> {
        self.last_id.clone_from(&earlier.last_id);
        self
    }
}
