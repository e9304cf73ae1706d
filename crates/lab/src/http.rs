//! Messages over HTTP: Streamable HTTP in both eras, and opening the old
//! HTTP+SSE.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, Method, Response, header};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::dialog::{CancelOutcome, MessageLog, Reaction, TimedReaction};
use crate::dialog::{answer, cancellation};
use crate::pipe::{PipeChannel, is_message};
use upstream::{Endpoint, Events, Headers, ResponseBody, UpstreamError};
use wire::Era;
use wire::header::encode_value;

/// The largest event or body.
pub(crate) const LARGEST: usize = 16 << 20;
const INBOX: usize = 256;
/// How much of a body that is not a message a finding quotes.
const QUOTED: usize = 160;
/// The time limit for messages without a response.
const POST_LIMIT: Duration = Duration::from_secs(5);

pub(crate) type HeaderList = Vec<(&'static str, String)>;

/// One HTTP request; an error is the reason why there is no response.
pub(crate) async fn send(
    endpoint: &Endpoint,
    method: Method,
    headers: &[(&'static str, String)],
    body: String,
) -> Result<Response<ResponseBody>, String> {
    let mut list = Headers::new();
    for (name, value) in headers {
        if !list.add_text(&HeaderName::from_static(name), value) {
            return Err(format!("the header {name} cannot carry {value:?}"));
        }
    }
    let sent = endpoint.send(method, &list, Bytes::from(body)).await;
    sent.map_err(|failure| UpstreamError::from(failure).to_string())
}

/// Posts a message whose response, if any, arrives on another channel.
pub(crate) async fn post(endpoint: &Endpoint, headers: &[(&'static str, String)], body: String) {
    let _ = timeout(POST_LIMIT, send(endpoint, Method::POST, headers, body)).await;
}

pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none");
    text.split(';').next().unwrap_or(text).trim().to_owned()
}

/// The number of responses of each content type.
#[derive(Default)]
pub(crate) struct ContentTypes {
    pub json: usize,
    pub stream: usize,
    /// Content types that carry no message.
    pub odd: Vec<String>,
}

pub(crate) struct HttpChannel {
    pub endpoint: Endpoint,
    pub session: Mutex<Option<String>>,
    pub version: Option<String>,
    pub log: Mutex<MessageLog>,
    pub content_types: Mutex<ContentTypes>,
}

impl HttpChannel {
    pub(crate) fn new(endpoint: Endpoint) -> HttpChannel {
        HttpChannel {
            endpoint,
            session: Mutex::default(),
            version: None,
            log: Mutex::default(),
            content_types: Mutex::default(),
        }
    }

    /// The headers of one message.
    pub(crate) fn headers(&self, message: &Value, era: Era) -> HeaderList {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        match era {
            Era::Modern => {
                let method = message["method"].as_str().unwrap_or_default();
                headers.push(("mcp-protocol-version", wire::MODERN.to_owned()));
                headers.push(("mcp-method", method.to_owned()));
                let name = wire::method::name_param(method);
                if let Some(name) = name.and_then(|name| message["params"][name].as_str()) {
                    headers.push(("mcp-name", encode_value(name).into_owned()));
                }
            }
            Era::Legacy => {
                let version = self.version.iter().cloned();
                headers.extend(version.map(|version| ("mcp-protocol-version", version)));
                let session = self.session.lock().clone();
                headers.extend(session.map(|session| ("mcp-session-id", session)));
            }
        }
        headers
    }

    pub(crate) async fn ask_all(
        &self,
        requests: &[Value],
        era: Era,
        limit: Duration,
    ) -> Vec<TimedReaction> {
        let one = |request| async move {
            let began = Instant::now();
            let reaction = timeout(limit, self.exchange(request, era)).await;
            TimedReaction {
                reaction: reaction.unwrap_or(Reaction::Silent(limit)),
                took: began.elapsed(),
            }
        };
        join_all(requests.iter().map(one)).await
    }

    async fn exchange(&self, request: &Value, era: Era) -> Reaction {
        let headers = self.headers(request, era);
        let sent = send(&self.endpoint, Method::POST, &headers, request.to_string());
        match sent.await {
            Ok(response) => {
                if request["method"] == "initialize" {
                    let session = response.headers().get("mcp-session-id");
                    let session = session.and_then(|id| id.to_str().ok());
                    *self.session.lock() = session.map(str::to_owned);
                }
                self.read(response, &request["id"], era).await
            }
            Err(reason) => Reaction::Gone(reason),
        }
    }

    async fn read(&self, response: Response<ResponseBody>, id: &Value, era: Era) -> Reaction {
        let status = response.status();
        let kind = content_type(response.headers());
        let body = response.into_body();
        if kind == "text/event-stream" {
            self.content_types.lock().stream += 1;
            return self.read_stream(body, id, era).await;
        }
        let bytes = body.collect(LARGEST).await.unwrap_or_default();
        let message = serde_json::from_slice::<Value>(&bytes).ok();
        match message.filter(is_message) {
            Some(message) => {
                self.content_types.lock().json += 1;
                // An error may omit the id if the server could not read it.
                let unread = message["id"].is_null() && !status.is_success();
                if message["id"] != *id && !unread {
                    self.log.lock().stray(&message["id"]);
                    return Reaction::Silent(Duration::ZERO);
                }
                Reaction::of(&message)
            }
            None => {
                if status.is_success() {
                    self.content_types.lock().odd.push(kind);
                }
                let text = String::from_utf8_lossy(&bytes);
                let text: String = text.chars().take(QUOTED).collect();
                Reaction::Refused {
                    status: status.as_u16(),
                    text: text.split_whitespace().collect::<Vec<_>>().join(" "),
                }
            }
        }
    }

    /// Reads a stream up to the response.
    async fn read_stream(&self, body: ResponseBody, id: &Value, era: Era) -> Reaction {
        let mut events = Events::new(body, LARGEST, self.endpoint.to_string());
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Reaction::Gone("its stream ended before the answer".into()),
                Err(failure) => return Reaction::Gone(UpstreamError::from(failure).to_string()),
            };
            if !event.is_message() {
                continue;
            }
            let Ok(message) = serde_json::from_slice::<Value>(&event.data) else {
                continue;
            };
            if message.get("method").is_none() {
                if message["id"] == *id {
                    return Reaction::of(&message);
                }
                self.log.lock().stray(&message["id"]);
            } else if message.get("id").is_none() {
                self.log.lock().notification(&message);
            } else {
                self.log.lock().request(&message);
                self.notify(&answer(&message), era).await;
            }
        }
    }

    /// Sends a message that gets no response.
    pub(crate) async fn notify(&self, message: &Value, era: Era) {
        let headers = self.headers(message, era);
        post(&self.endpoint, &headers, message.to_string()).await;
    }

    pub(crate) async fn ask_and_cancel(
        &self,
        request: &Value,
        era: Era,
        after: Duration,
        rest: Duration,
    ) -> CancelOutcome {
        let mut answer = std::pin::pin!(self.exchange(request, era));
        if timeout(after, &mut answer).await.is_ok() {
            return CancelOutcome::TooLate;
        }
        if era == Era::Modern {
            return CancelOutcome::Closed;
        }
        self.notify(&cancellation(&request["id"]), era).await;
        let began = Instant::now();
        match timeout(rest, &mut answer).await {
            // The stream may well end without a response.
            Ok(Reaction::Gone(_) | Reaction::Refused { .. }) | Err(_) => CancelOutcome::Silent,
            Ok(reaction) => CancelOutcome::Answered(reaction, began.elapsed()),
        }
    }
}

/// Opens an HTTP+SSE connection: its first event names the URL to post to.
pub(crate) async fn old_sse(endpoint: &Endpoint) -> Result<PipeChannel, String> {
    let headers = [("accept", "text/event-stream".to_owned())];
    let response = send(endpoint, Method::GET, &headers, String::new()).await?;
    if !response.status().is_success() {
        return Err(format!("HTTP {}", response.status()));
    }
    let (sender, inbox) = mpsc::channel::<Value>(INBOX);
    let (found, reference) = oneshot::channel();
    let events = Events::new(response.into_body(), LARGEST, endpoint.to_string());
    tokio::spawn(read_old_sse(events, sender, found));
    let Ok(reference) = reference.await else {
        return Err("the event stream names no endpoint".into());
    };
    let target = endpoint.at(&reference);
    let target = target.map_err(|failure| UpstreamError::from(failure).to_string())?;
    Ok(PipeChannel::of_stream(target, inbox))
}

async fn read_old_sse(
    mut events: Events,
    inbox: mpsc::Sender<Value>,
    endpoint: oneshot::Sender<String>,
) {
    let mut endpoint = Some(endpoint);
    while let Ok(Some(event)) = events.next().await {
        if event.name.as_deref() == Some("endpoint") {
            let reference = String::from_utf8_lossy(&event.data).into_owned();
            let _ = endpoint.take().map(|found| found.send(reference));
        } else if let Ok(message) = serde_json::from_slice::<Value>(&event.data)
            && is_message(&message)
            && inbox.send(message).await.is_err()
        {
            return;
        }
    }
}
