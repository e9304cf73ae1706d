//! Clients up to 2025-11-25: their handshake becomes a session over HTTP. If
//! the gateway no longer knows it, the bridge opens a new one unnoticed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::bridge::{Bridge, VERSION};
use super::error::{BridgeError, BridgeResult};
use super::open_requests::ClientCall;
use super::reply::{self, GatewayReply, GatewayStream};
use upstream::{Headers, StreamPosition};
use wire::Outcome;
use wire::meta::{member, text};
use wire::object::parse_part;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const GOODBYE: Duration = Duration::from_secs(1);
/// How many times in a row a broken stream is resumed.
const RESUMED: u32 = 3;
/// The delay before that, if the gateway states none.
const RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) enum ClientSession {
    None,
    Opening,
    Open(Arc<GatewaySession>),
}

pub(super) struct GatewaySession {
    /// `None` with a gateway that keeps no sessions.
    id: Option<HeaderValue>,
    version: HeaderValue,
    /// The kinds of lists for which the gateway sends change notifications.
    lists: Vec<&'static str>,
    number: u64,
    /// The client's `initialize` request.
    hello: Bytes,
}

impl GatewaySession {
    fn headers(&self) -> Headers {
        let mut headers = Headers::new();
        headers.add(&VERSION, &self.version);
        if let Some(id) = &self.id {
            headers.add(&SESSION, id);
        }
        headers
    }
}

impl Bridge {
    pub(super) async fn initialize(
        self: &Arc<Self>,
        mut call: ClientCall,
        line: Bytes,
        earlier: ClientSession,
    ) {
        let number = self.memory.forget();
        let opened = self.shake_hands(&mut call, &line, number).await;
        match opened {
            Ok((session, answer)) => {
                let open = ClientSession::Open(session.clone());
                self.handshake.send_replace(open);
                self.pass(&mut call, answer).await;
                self.listen_to(session);
            }
            Err(error) => {
                self.handshake.send_replace(ClientSession::None);
                self.give_up(&call, &error).await;
            }
        }
        if let ClientSession::Open(earlier) = earlier {
            self.delete(&earlier).await;
        }
    }

    /// Posts the client's `initialize`; returns the session and the response.
    async fn shake_hands(
        &self,
        call: &mut ClientCall,
        hello: &Bytes,
        number: u64,
    ) -> BridgeResult<(Arc<GatewaySession>, Bytes)> {
        // A handshake cannot be cancelled.
        let never = CancellationToken::new();
        let (reply, id) = self.post(Headers::new(), hello, &never).await?;
        let answer = match reply {
            GatewayReply::One(answer) => answer,
            GatewayReply::Nothing => return Err(self.odd()),
            GatewayReply::Stream(mut stream) => loop {
                match stream.next().await? {
                    Some(message) if wire::outcome(&message).is_some() => break message,
                    Some(message) => self.pass(call, message).await,
                    None => return Err(BridgeError::Broken(self.gateway.url())),
                }
            },
        };
        let result = match wire::outcome(&answer) {
            Some(Outcome::Result(result)) => parse_part(result).ok_or_else(|| self.odd())?,
            Some(Outcome::Error(error)) => {
                let status = http::StatusCode::OK;
                return Err(BridgeError::Refused { status, error });
            }
            None => return Err(self.odd()),
        };
        let version = member(result, "protocolVersion").and_then(text);
        let version = version.and_then(|version| HeaderValue::try_from(&*version).ok());
        let capabilities = member(result, "capabilities");
        let told = |kind: &&str| {
            let kind = capabilities.and_then(|all| member(all, kind));
            kind.and_then(|kind| member(kind, "listChanged"))
                .is_some_and(|told| told.get() == "true")
        };
        let session = GatewaySession {
            id,
            version: version.ok_or_else(|| self.odd())?,
            lists: ["tools", "resources", "prompts"]
                .into_iter()
                .filter(told)
                .collect(),
            number,
            hello: hello.clone(),
        };
        Ok((Arc::new(session), answer))
    }

    fn odd(&self) -> BridgeError {
        BridgeError::Odd(format!(
            "what answers at {} does not open a session",
            self.gateway.url()
        ))
    }

    /// The session; waits while the handshake runs.
    async fn session(&self) -> Option<Arc<GatewaySession>> {
        let mut handshake = self.handshake.subscribe();
        let open = handshake.wait_for(|now| !matches!(now, ClientSession::Opening));
        match open.await.as_deref() {
            Ok(ClientSession::Open(session)) => Some(session.clone()),
            _ => None,
        }
    }

    /// A request, or a batch.
    pub(super) async fn legacy(
        self: &Arc<Self>,
        mut call: ClientCall,
        method: String,
        line: Bytes,
    ) {
        match self.ask(&mut call, &line).await {
            Ok(()) if call.has_succeeded() => self.memory.note(&method, &line),
            Ok(()) => {}
            Err(error) => self.give_up(&call, &error).await,
        }
    }

    async fn ask(self: &Arc<Self>, call: &mut ClientCall, line: &Bytes) -> BridgeResult<()> {
        let unwanted = call.unwanted.clone();
        let (reply, session) = self.post_in_session(line, &unwanted).await?;
        call.begin();
        match reply {
            GatewayReply::One(answer) => self.pass(call, answer).await,
            GatewayReply::Nothing => {}
            GatewayReply::Stream(stream) => self.follow(call, session.as_deref(), stream).await?,
        }
        if call.is_answered() || unwanted.is_cancelled() {
            return Ok(());
        }
        let url = self.gateway.url();
        Err(BridgeError::Odd(format!(
            "the Portway at {url} gave no answer"
        )))
    }

    /// Delivers a message that has no response.
    pub(super) async fn deliver(self: &Arc<Self>, line: Bytes) {
        let never = CancellationToken::new();
        // The message has no response, so an error cannot be reported.
        let _ = self.post_in_session(&line, &never).await;
    }

    /// Posts in the current session, or in a new one if the gateway refuses the
    /// message because it does not know the session.
    async fn post_in_session(
        self: &Arc<Self>,
        body: &Bytes,
        unwanted: &CancellationToken,
    ) -> BridgeResult<(GatewayReply, Option<Arc<GatewaySession>>)> {
        let session = self.session().await;
        let headers = session.as_ref().map_or_else(Headers::new, |s| s.headers());
        match (self.post(headers, body, unwanted).await, session) {
            (Err(error), Some(lost)) if error.session_lost() => {
                let session = self.renew(&lost).await?;
                let (reply, _) = self.post(session.headers(), body, unwanted).await?;
                Ok((reply, Some(session)))
            }
            (posted, session) => Ok((posted?.0, session)),
        }
    }

    /// Reads a stream up to the response. A broken stream is resumed after its
    /// last event: that requests the rest, and never runs a request again.
    async fn follow(
        &self,
        call: &mut ClientCall,
        session: Option<&GatewaySession>,
        mut stream: Box<GatewayStream>,
    ) -> BridgeResult<()> {
        let mut broken = 0;
        loop {
            let error = match stream.next().await {
                Ok(Some(message)) => {
                    broken = 0;
                    self.pass(call, message).await;
                    continue;
                }
                Ok(None) => BridgeError::Broken(self.gateway.url()),
                Err(error) => error,
            };
            if call.is_answered() || call.unwanted.is_cancelled() {
                return Ok(());
            }
            broken += 1;
            let (Some(session), BridgeError::Broken(_)) = (session, &error) else {
                return Err(error);
            };
            let place = stream.place.clone();
            if place.last_id.is_none() || broken > RESUMED {
                return Err(error);
            }
            let retry = place.retry.unwrap_or(RETRY).min(LONGEST_RETRY);
            tokio::time::sleep(retry * broken).await;
            // A stream that is gone cannot deliver the response any more.
            stream = match self.events(session, place, false).await {
                Ok(rest) => rest,
                Err(_) => return Err(error),
            };
        }
    }

    /// A stream of the session, from `place` on.
    pub(super) async fn events(
        &self,
        session: &GatewaySession,
        place: StreamPosition,
        patiently: bool,
    ) -> BridgeResult<Box<GatewayStream>> {
        let mut headers = session.headers();
        headers.add(&header::ACCEPT, &EVENTS);
        if let Some(id) = &place.last_id {
            headers.add(&LAST_ID, id);
        }
        let nothing = Bytes::new();
        let response = if patiently {
            let never = CancellationToken::new();
            let sent = self
                .gateway
                .send(Method::GET, &headers, &nothing, &never, Duration::ZERO);
            sent.await?
        } else {
            let sent = self.gateway.send_now(Method::GET, &headers, &nothing);
            sent.await?
        };
        match reply::read(response, &self.gateway).await? {
            GatewayReply::Stream(mut stream) => {
                stream.place = place;
                Ok(stream)
            }
            _ => Err(self.odd()),
        }
    }

    /// Opens a session in place of `lost`, with the client's own `initialize`.
    /// The client only gets notifications that the lists may have changed.
    pub(super) async fn renew(
        self: &Arc<Self>,
        lost: &GatewaySession,
    ) -> BridgeResult<Arc<GatewaySession>> {
        let _turn = self.renewing.lock().await;
        match self.session().await {
            Some(session) if session.number == lost.number => {}
            Some(session) => return Ok(session),
            None => return Err(self.odd()),
        }
        let mut call = self.running.aside();
        let opened = self.shake_hands(&mut call, &lost.hello, lost.number + 1);
        let (session, _) = opened.await?;
        let open = ClientSession::Open(session.clone());
        self.handshake.send_replace(open);
        let ready = wire::notification("notifications/initialized", None);
        let never = CancellationToken::new();
        self.post(session.headers(), &ready.into(), &never).await?;
        self.catch_up(&session).await;
        self.listen_to(session.clone());
        Ok(session)
    }

    /// Repeats the client's settings, which the gateway has lost, and reports
    /// all lists as changed, because notifications may have been missed.
    pub(super) async fn catch_up(&self, session: &GatewaySession) {
        let never = CancellationToken::new();
        for request in self.memory.requests() {
            let _ = self.post(session.headers(), &request, &never).await;
        }
        for kind in &session.lists {
            let method = format!("notifications/{kind}/list_changed");
            let told = wire::notification(&method, None);
            self.out.message(told.into()).await;
        }
    }

    /// Ends the session, if one is open.
    pub(super) async fn part(&self) {
        let handshake = self.handshake.borrow().clone();
        if let ClientSession::Open(session) = handshake {
            self.delete(&session).await;
        }
    }

    async fn delete(&self, session: &GatewaySession) {
        if session.id.is_some() {
            let (headers, nothing) = (session.headers(), Bytes::new());
            let delete = self.gateway.send_now(Method::DELETE, &headers, &nothing);
            let _ = timeout(GOODBYE, delete).await;
        }
    }

    pub(super) fn is_current(&self, session: &GatewaySession) -> bool {
        let handshake = self.handshake.borrow();
        matches!(&*handshake, ClientSession::Open(now) if now.number == session.number)
    }
}
