//! Messages over HTTP: Streamable HTTP in both eras, and the way to the old
//! HTTP+SSE.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use url::Url;

use super::line::{Cancelled, Log, Question, Reply, Said, answer, cancellation};
use super::pipe::{Pipe, is_message, request};
use portway_http::Outward;
use wire::Era;
use wire::header::encode_value;
use wire::sse::Decoder;

/// One event, or one body.
const LARGEST: usize = 16 << 20;
const INBOX: usize = 256;
/// Of a body that is no message.
const QUOTED: usize = 160;
/// For what needs no answer of its own.
const TELL: Duration = Duration::from_secs(5);

/// Where requests go, and with what.
#[derive(Clone)]
pub(super) struct Address {
    client: Outward<Full<Bytes>>,
    pub url: Url,
    headers: IndexMap<String, String>,
}

impl Address {
    pub(super) fn new(url: &Url, headers: &IndexMap<String, String>) -> Result<Address, String> {
        let client = Outward::new(url.scheme() == "https").map_err(|error| error.to_string())?;
        let mut url = url.clone();
        url.set_fragment(None);
        Ok(Address {
            client,
            url,
            headers: headers.clone(),
        })
    }

    pub(super) async fn send(
        &self,
        method: Method,
        headers: &[(&str, String)],
        body: String,
    ) -> Result<Response<Incoming>, String> {
        let mut bare = self.url.clone();
        // They fail only for addresses without a host.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        let mut request = Request::builder().method(method).uri(bare.as_str());
        let own = |name: &str| {
            headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        for (name, value) in self.headers.iter().filter(|(name, _)| !own(name)) {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request
            .body(Full::from(body))
            .map_err(|error| error.to_string())?;
        self.client.request(request).await.map_err(|error| {
            // The innermost says it in the system's own words.
            let mut reason: &dyn std::error::Error = &error;
            while let Some(source) = reason.source() {
                reason = source;
            }
            reason.to_string()
        })
    }
}

/// The posting half of HTTP+SSE.
pub(super) struct Poster(Address);

impl Poster {
    pub(super) async fn post(&self, body: String) {
        let headers = [("content-type", "application/json".to_owned())];
        // What matters comes on the stream, or does not.
        let _ = timeout(TELL, self.0.send(Method::POST, &headers, body)).await;
    }
}

/// How answers came.
#[derive(Default)]
pub(super) struct Forms {
    pub json: usize,
    pub stream: usize,
    /// Content types that carry no message.
    pub odd: Vec<String>,
}

pub(super) struct Web {
    pub address: Address,
    pub session: Option<String>,
    pub version: Option<String>,
    pub log: Mutex<Log>,
    pub forms: Mutex<Forms>,
}

impl Web {
    pub(super) fn new(address: Address) -> Web {
        Web {
            address,
            session: None,
            version: None,
            log: Mutex::default(),
            forms: Mutex::default(),
        }
    }

    /// The headers of one message.
    pub(super) fn headers(&self, message: &Value, era: Era) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        let params = &message["params"];
        let method = message["method"].as_str().unwrap_or_default();
        match era {
            Era::Modern => {
                headers.push(("mcp-protocol-version", wire::MODERN.to_owned()));
                headers.push(("mcp-method", method.to_owned()));
                let name = match method {
                    "tools/call" | "prompts/get" => params["name"].as_str(),
                    "resources/read" => params["uri"].as_str(),
                    _ => None,
                };
                if let Some(name) = name {
                    headers.push(("mcp-name", encode_value(name).into_owned()));
                }
            }
            Era::Legacy => {
                let version = self.version.iter().cloned();
                headers.extend(version.map(|version| ("mcp-protocol-version", version)));
                let session = self.session.iter().cloned();
                headers.extend(session.map(|session| ("mcp-session-id", session)));
            }
        }
        headers
    }

    pub(super) async fn ask_all(
        &self,
        questions: &[Question],
        era: Era,
        limit: Duration,
    ) -> Vec<Reply> {
        let one = |question| async move {
            let began = Instant::now();
            let said = timeout(limit, self.exchange(question, era)).await;
            Reply {
                said: said.unwrap_or(Said::Silent(limit)),
                took: began.elapsed(),
            }
        };
        join_all(questions.iter().map(one)).await
    }

    async fn exchange(&self, question: &Question, era: Era) -> Said {
        let message = request(question);
        let headers = self.headers(&message, era);
        let sent = self
            .address
            .send(Method::POST, &headers, message.to_string());
        match sent.await {
            Ok(response) => self.response(response, &question.id, era).await.0,
            Err(reason) => Said::Gone(reason),
        }
    }

    /// The answer to `initialize`, and the session it opens.
    pub(super) async fn open(&mut self, question: &Question) -> Said {
        let message = request(question);
        let headers = self.headers(&message, Era::Legacy);
        let sent = self
            .address
            .send(Method::POST, &headers, message.to_string());
        let (said, head) = match sent.await {
            Ok(response) => self.response(response, &question.id, Era::Legacy).await,
            Err(reason) => return Said::Gone(reason),
        };
        let session = head.get("mcp-session-id").and_then(|id| id.to_str().ok());
        self.session = session.map(str::to_owned);
        said
    }

    async fn response(
        &self,
        response: Response<Incoming>,
        id: &Value,
        era: Era,
    ) -> (Said, HeaderMap) {
        let status = response.status();
        let head = response.headers().clone();
        let kind = head.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("none");
        let kind = kind.split(';').next().unwrap_or(kind).trim().to_owned();
        let mut body = response.into_body();
        if kind == "text/event-stream" {
            self.forms.lock().stream += 1;
            return (self.stream(&mut body, id, era).await, head);
        }
        let bytes = whole(&mut body).await;
        let message = serde_json::from_slice::<Value>(&bytes).ok();
        let said = match message.filter(is_message) {
            Some(message) => {
                self.forms.lock().json += 1;
                // An error may leave the id out where it could not be read.
                let unread = message["id"].is_null() && !status.is_success();
                if message["id"] != *id && !unread {
                    self.log.lock().stray(&message["id"]);
                    return (Said::Silent(Duration::ZERO), head);
                }
                Said::of(&message)
            }
            None => {
                if status.is_success() {
                    self.forms.lock().odd.push(kind);
                }
                let text = String::from_utf8_lossy(&bytes);
                let text: String = text.chars().take(QUOTED).collect();
                Said::Refused {
                    status: status.as_u16(),
                    text: text.split_whitespace().collect::<Vec<_>>().join(" "),
                }
            }
        };
        (said, head)
    }

    /// Reads a stream up to the answer.
    async fn stream(&self, body: &mut Incoming, id: &Value, era: Era) -> Said {
        let mut decoder = Decoder::new(LARGEST);
        while let Some(Ok(frame)) = body.frame().await {
            let Some(chunk) = frame.data_ref() else {
                continue;
            };
            let mut input = &chunk[..];
            loop {
                let event = match decoder.next(&mut input) {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(error) => return Said::Gone(error.to_string()),
                };
                if !event.is_message() {
                    continue;
                }
                let Ok(message) = serde_json::from_slice::<Value>(&event.data) else {
                    continue;
                };
                if message.get("method").is_none() {
                    if message["id"] == *id {
                        return Said::of(&message);
                    }
                    self.log.lock().stray(&message["id"]);
                } else if message.get("id").is_none() {
                    self.log.lock().note(&message);
                } else {
                    self.log.lock().ask(&message);
                    self.tell(&answer(&message), era).await;
                }
            }
        }
        Said::Gone("its stream ended before the answer".into())
    }

    /// A message that gets no answer.
    pub(super) async fn tell(&self, message: &Value, era: Era) {
        let headers = self.headers(message, era);
        let sent = self
            .address
            .send(Method::POST, &headers, message.to_string());
        let _ = timeout(TELL, sent).await;
    }

    pub(super) async fn ask_and_cancel(
        &self,
        question: &Question,
        era: Era,
        after: Duration,
        rest: Duration,
    ) -> Cancelled {
        let asked = self.exchange(question, era);
        tokio::pin!(asked);
        if timeout(after, &mut asked).await.is_ok() {
            return Cancelled::TooLate;
        }
        if era == Era::Modern {
            return Cancelled::Closed;
        }
        self.tell(&cancellation(&question.id), era).await;
        let began = Instant::now();
        match timeout(rest, &mut asked).await {
            // The stream may well end without an answer.
            Ok(Said::Gone(_) | Said::Refused { .. }) | Err(_) => Cancelled::Silent,
            Ok(said) => Cancelled::Answered(said, began.elapsed()),
        }
    }
}

/// A body up to its limit; what is too long is cut.
pub(super) async fn whole(body: &mut Incoming) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(chunk) = frame.data_ref() {
            bytes.extend_from_slice(chunk);
        }
        if bytes.len() > LARGEST {
            break;
        }
    }
    bytes
}

/// Opens an HTTP+SSE conversation: its first event names where to post.
pub(super) async fn old_sse(address: &Address) -> Result<Pipe, String> {
    let headers = [("accept", "text/event-stream".to_owned())];
    let response = address.send(Method::GET, &headers, String::new()).await?;
    if !response.status().is_success() {
        return Err(format!("HTTP {}", response.status()));
    }
    let (sender, mut inbox) = mpsc::channel::<Value>(INBOX);
    let (tell, endpoint) = tokio::sync::oneshot::channel();
    tokio::spawn(follow(response.into_body(), sender, tell));
    let Ok(endpoint) = endpoint.await else {
        inbox.close();
        return Err("it is no event stream that names an endpoint".into());
    };
    let target = address
        .url
        .join(&endpoint)
        .map_err(|error| error.to_string())?;
    // Our headers, credentials among them, go where the definition says.
    if target.origin() != address.url.origin() {
        return Err("it wants its messages sent to another origin".into());
    }
    let poster = Poster(Address {
        url: target,
        ..address.clone()
    });
    Ok(Pipe::of_stream(poster, inbox))
}

async fn follow(
    mut body: Incoming,
    inbox: mpsc::Sender<Value>,
    tell: tokio::sync::oneshot::Sender<String>,
) {
    let mut tell = Some(tell);
    let mut decoder = Decoder::new(LARGEST);
    while let Some(Ok(frame)) = body.frame().await {
        let mut events = Vec::new();
        let chunk = frame.into_data().unwrap_or_default();
        if decoder.push(&chunk, |event| events.push(event)).is_err() {
            return;
        }
        for event in events {
            if event.name.as_deref() == Some("endpoint") {
                let endpoint = String::from_utf8_lossy(&event.data).into_owned();
                let _ = tell.take().map(|tell| tell.send(endpoint));
            } else if let Ok(message) = serde_json::from_slice::<Value>(&event.data)
                && is_message(&message)
                && inbox.send(message).await.is_err()
            {
                return;
            }
        }
        if tell.is_some() && inbox.is_closed() {
            return;
        }
    }
}
