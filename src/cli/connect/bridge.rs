//! One client and one gateway: each line of the client becomes a POST in a task
//! of its own, so that a slow request delays no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderName, Method};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::{BridgeError, BridgeResult};
use super::gateway_link::GatewayLink;
use super::legacy::ClientSession;
use super::memory::SessionMemory;
use super::open_requests::{CancelRoute, ClientCall, OpenRequests};
use super::out::ClientOutput;
use super::reply::{self, GatewayReply};
use super::stdin::ClientLine;
use crate::cli::remote::{BOTH, JSON};
use crate::cli::terminal::note;
use upstream::{Headers, ToolHeaders};
use wire::meta::{RequestParams, member};
use wire::{Era, Message, Outcome, RpcError, code, message};

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Within this time the gateway knows a request that was sent; usually sooner.
const KNOWN: Duration = Duration::from_millis(200);
/// Some clients wait five seconds for a list.
const LISTS_WAIT: Duration = Duration::from_secs(4);
const CALLS_WAIT: Duration = Duration::from_secs(10);

pub(super) struct Bridge {
    pub gateway: GatewayLink,
    pub out: ClientOutput,
    pub running: Arc<OpenRequests>,
    pub handshake: watch::Sender<ClientSession>,
    /// Held across the handshake of a session that replaces a lost one.
    pub renewing: tokio::sync::Mutex<()>,
    pub memory: SessionMemory,
    pub tools: ToolHeaders,
    denied: AtomicBool,
}

impl Bridge {
    pub(super) fn new(gateway: GatewayLink, out: ClientOutput) -> Bridge {
        Bridge {
            gateway,
            out,
            running: Arc::default(),
            handshake: watch::Sender::new(ClientSession::None),
            renewing: tokio::sync::Mutex::default(),
            memory: SessionMemory::default(),
            tools: ToolHeaders::default(),
            denied: AtomicBool::new(false),
        }
    }

    /// Handles one line of the client. Waits for nothing.
    pub(super) fn take(self: &Arc<Self>, line: ClientLine) {
        let line = match line {
            ClientLine::Whole(line) => line,
            ClientLine::TooLong => {
                let long = RpcError::new(code::INVALID_REQUEST, "the message is too long");
                return self.say(wire::error(None, &long));
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if message::is_batch(&line) {
            return self.batch(line);
        }
        match wire::parse(&line) {
            Ok(Message::Request { id, method, params }) => {
                let id = id.raw().to_owned();
                match RequestParams::read(params) {
                    Err(bad) => self.say(wire::error(Some(&id), &RpcError::from(&bad))),
                    Ok(envelope) => {
                        let (modern, method) = (envelope.is_modern(), method.into_owned());
                        self.request(id, method, modern, line.clone());
                    }
                }
            }
            Ok(Message::Notification { method, params }) => {
                let cancelled = method == "notifications/cancelled";
                match params.and_then(|params| member(params, "requestId")) {
                    Some(id) if cancelled => self.cancel(id, line.clone()),
                    _ => self.tell(line.clone()),
                }
            }
            Ok(Message::Response { .. }) => self.tell(line.clone()),
            Err(bad) => self.say(wire::error(bad.id(), &RpcError::from(&bad))),
        }
    }

    fn request(self: &Arc<Self>, id: Box<RawValue>, method: String, modern: bool, line: Bytes) {
        let era = if modern { Era::Modern } else { Era::Legacy };
        let Some(call) = self.running.enter(vec![id.clone()], era, line.len()) else {
            return self.say(wire::error(Some(&id), &busy()));
        };
        let bridge = self.clone();
        if modern {
            tokio::spawn(async move { bridge.modern(call, id, method, line).await });
        } else if method == "initialize" {
            // Later requests wait for this handshake.
            let earlier = self.handshake.send_replace(ClientSession::Opening);
            tokio::spawn(async move { bridge.initialize(call, line, earlier).await });
        } else {
            tokio::spawn(async move { bridge.legacy(call, method, line).await });
        }
    }

    /// Several messages in one line: a batch, which one legacy revision has.
    fn batch(self: &Arc<Self>, line: Bytes) {
        let elements = match message::parse_batch(&line) {
            Ok(elements) => elements,
            Err(bad) => return self.say(wire::error(None, &RpcError::from(&bad))),
        };
        let id = |element: &&RawValue| match wire::parse(element.get().as_bytes()) {
            Ok(Message::Request { id, .. }) => Some(id.raw().to_owned()),
            _ => None,
        };
        let ids = elements.iter().filter_map(id).collect();
        let Some(call) = self.running.enter(ids, Era::Legacy, line.len()) else {
            return self.say(wire::error(None, &busy()));
        };
        let bridge = self.clone();
        tokio::spawn(async move { bridge.legacy(call, String::new(), line).await });
    }

    fn cancel(self: &Arc<Self>, id: &RawValue, line: Bytes) {
        match self.running.cancel(id) {
            CancelRoute::Modern => {}
            CancelRoute::Unknown => self.tell(line),
            CancelRoute::Legacy(mut begun) => {
                let bridge = self.clone();
                tokio::spawn(async move {
                    // Otherwise the cancellation could overtake the request.
                    let begun = begun.wait_for(|begun| *begun);
                    let _ = tokio::time::timeout(KNOWN, begun).await;
                    bridge.deliver(line).await;
                });
            }
        }
    }

    /// Delivers a notification, or the response to a request of the gateway. A
    /// modern client sends neither over HTTP.
    fn tell(self: &Arc<Self>, line: Bytes) {
        if !matches!(*self.handshake.borrow(), ClientSession::None) {
            let bridge = self.clone();
            tokio::spawn(async move { bridge.deliver(line).await });
        }
    }

    /// Writes a message of the bridge itself to the client.
    pub(super) fn say(&self, message: Vec<u8>) {
        let out = self.out.clone();
        tokio::spawn(async move { out.message(message.into()).await });
    }

    /// Posts a message; `headers` are in addition to the usual ones.
    pub(super) async fn post(
        &self,
        mut headers: Headers,
        body: &Bytes,
        unwanted: &CancellationToken,
    ) -> BridgeResult<(GatewayReply, Option<HeaderValue>)> {
        headers.add(&header::ACCEPT, &BOTH);
        headers.add(&header::CONTENT_TYPE, &JSON);
        let servers = patience(body);
        let sent = self
            .gateway
            .send(Method::POST, &headers, body, unwanted, servers);
        let response = sent.await?;
        let session = response.headers().get(super::legacy::SESSION).cloned();
        let reply = reply::read(response, &self.gateway).await;
        match &reply {
            Err(BridgeError::Denied(text)) => self.complain(text),
            _ => self.denied.store(false, Ordering::Relaxed),
        }
        Ok((reply?, session))
    }

    /// Passes one message on; records the responses in it.
    pub(super) async fn pass(&self, call: &mut ClientCall, message: Bytes) {
        if message::is_batch(&message) {
            let elements = message::parse_batch(&message).unwrap_or_default();
            for element in elements {
                answer(call, element.get().as_bytes());
            }
        } else {
            answer(call, &message);
        }
        // A late response to a cancelled request is dropped.
        if !call.unwanted.is_cancelled() {
            self.out.message(message).await;
        }
    }

    /// Sends the client an error for each request that gets no response.
    pub(super) async fn give_up(&self, call: &ClientCall, error: &BridgeError) {
        let error = error.to_error();
        for id in call.unanswered() {
            self.out.message(wire::error(Some(id), &error).into()).await;
        }
    }

    /// Prints once, until a request is accepted: a client may retry often.
    fn complain(&self, text: &str) {
        if !self.denied.swap(true, Ordering::Relaxed) {
            note(text);
        }
    }

    /// Waits until every request has its response.
    pub(super) async fn answered(&self) {
        self.running.none().await;
    }

    /// Ends the session after the client has disconnected; its open requests
    /// end with this process. Returns whether the credential was refused last.
    pub(super) async fn end(&self) -> bool {
        self.part().await;
        self.denied.load(Ordering::Relaxed)
    }
}

fn busy() -> RpcError {
    RpcError::new(code::INTERNAL, "too many requests are running")
}

fn answer(call: &mut ClientCall, message: &[u8]) {
    if let Ok(Message::Response {
        id: Some(id),
        outcome,
    }) = wire::parse_upstream(message)
    {
        call.answer(id, matches!(outcome, Outcome::Result(_)));
    }
}

/// How long a message can wait for servers that are just starting: a client
/// soon gives up on a server that does not answer its first requests.
fn patience(body: &[u8]) -> Duration {
    match wire::parse(body) {
        Ok(Message::Request { method, .. }) => match &*method {
            "initialize" | "server/discover" | "ping" | "subscriptions/listen" => Duration::ZERO,
            method if method.ends_with("/list") => LISTS_WAIT,
            _ => CALLS_WAIT,
        },
        _ => Duration::ZERO,
    }
}
