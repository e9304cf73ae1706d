//! Streamable HTTP up to 2025-11-25: a handshake, and usually a session.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::HeaderValue;

use super::exchange::HttpExchange;
use super::{ExchangeResult, HttpShared, SESSION, VERSION};
use crate::client::Headers;
use crate::handshake;
use crate::peer::Peer;
use crate::reply::{ExchangeFailure, HttpReply};
use crate::{InboundMessage, Notification, Permit, UpstreamError};
use wire::Era;

/// The limit for the DELETE that ends a session.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);

/// One handshake and its results.
pub(super) struct HttpSession {
    /// `None` with a server that keeps no sessions.
    id: Option<HeaderValue>,
    version: HeaderValue,
    /// The headers of every POST in this session.
    post: Headers,
    /// The server's capabilities; a change of them requires a new connection.
    capabilities: String,
    /// The kinds of lists that the server has.
    lists: Vec<&'static str>,
    number: u64,
}

impl HttpSession {
    /// The headers of every GET and DELETE in this session.
    pub(super) fn headers(&self) -> Headers {
        let mut headers = Headers::new();
        name_session(&mut headers, &self.version, self.id.as_ref());
        headers
    }

    /// Whether a failure means that the server no longer knows this session.
    pub(super) fn lost(&self, failure: &ExchangeFailure) -> bool {
        self.id.is_some() && failure.session_lost()
    }

    fn same_server(&self, other: &HttpSession) -> bool {
        self.version == other.version && self.capabilities == other.capabilities
    }
}

fn name_session(headers: &mut Headers, version: &HeaderValue, id: Option<&HeaderValue>) {
    headers.add(&VERSION, version);
    if let Some(id) = id {
        headers.add(&SESSION, id);
    }
}

impl HttpShared {
    pub(super) fn current(&self) -> Result<Arc<HttpSession>, ExchangeFailure> {
        let session = self.session.borrow().clone();
        session.ok_or_else(|| ExchangeFailure::Odd("no handshake yet".into()))
    }

    pub(super) async fn legacy(
        self: &Arc<Self>,
        flight: &HttpExchange<'_>,
        body: Bytes,
    ) -> ExchangeResult {
        let (reply, session) = self.post_in_session(body, flight.permit).await?;
        match reply {
            HttpReply::Stream(events) => {
                Box::pin(self.follow(flight, Some(&session), events)).await
            }
            other => flight.only(other),
        }
    }

    /// Sends a message that has no response.
    pub(super) async fn deliver(self: &Arc<Self>, message: Bytes) -> Result<(), ExchangeFailure> {
        // A modern server accepts no such message.
        if self.session.borrow().is_none() {
            return Ok(());
        }
        self.post_in_session(message, None).await.map(drop)
    }

    /// Posts a message in the current session, or in a new one if the server
    /// refuses the message because it has forgotten the session.
    async fn post_in_session(
        self: &Arc<Self>,
        body: Bytes,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<(HttpReply, Arc<HttpSession>), ExchangeFailure> {
        let session = self.current()?;
        let first = self.post(&session.post, body.clone(), permit).await;
        match first {
            Err(failure) if session.lost(&failure) => {
                let session = Box::pin(self.renew(&session)).await?;
                let again = Box::pin(self.post(&session.post, body, permit)).await?;
                Ok((again.reply, session))
            }
            other => Ok((other?.reply, session)),
        }
    }

    /// The first handshake.
    pub(super) async fn open(&self) -> Result<Peer, ExchangeFailure> {
        let (peer, session) = self.shake_hands(1).await?;
        self.session.send_replace(Some(Arc::new(session)));
        Ok(peer)
    }

    async fn shake_hands(&self, number: u64) -> Result<(Peer, HttpSession), ExchangeFailure> {
        let id = self.receiver.pending.next_id();
        let params = handshake::initialize_params(&self.capabilities)?;
        let body = wire::request(id, "initialize", Some(&params));
        let replied = self.post(&Headers::of_post(), body.into(), None).await?;
        let flight = HttpExchange::new(self, Era::Legacy, id, None);
        let found = match replied.reply {
            HttpReply::Stream(events) => self.follow(&flight, None, events).await?,
            other => flight.only(other)?,
        };
        let peer = handshake::legacy_peer(&found, &self.capabilities)?;
        let id = replied.session.map(|mut id| {
            id.set_sensitive(true);
            id
        });
        let version = HeaderValue::from_str(&peer.version)
            .map_err(|_| ExchangeFailure::Odd("a version that is none".into()))?;
        let mut post = Headers::of_post();
        name_session(&mut post, &version, id.as_ref());
        let session = HttpSession {
            id,
            version,
            post,
            capabilities: peer.capabilities.get().to_owned(),
            lists: ["tools", "resources", "prompts"]
                .into_iter()
                .filter(|kind| peer.offers(kind))
                .collect(),
            number,
        };
        let ready = wire::notification("notifications/initialized", None);
        if let Err(failure) = self.post(&session.post, ready.into(), None).await {
            self.part(&session).await;
            return Err(failure);
        }
        Ok((peer, session))
    }

    /// Replaces the session `lost`: the first caller opens the new one, once. A
    /// caller that gives up meanwhile does not abort the handshake.
    pub(super) async fn renew(
        self: &Arc<Self>,
        lost: &HttpSession,
    ) -> Result<Arc<HttpSession>, ExchangeFailure> {
        let shared = self.clone();
        let number = lost.number;
        let renewed = tokio::spawn(async move { shared.renew_now(number).await }).await;
        renewed.unwrap_or_else(|error| Err(ExchangeFailure::Broken(error.to_string())))
    }

    async fn renew_now(&self, lost: u64) -> Result<Arc<HttpSession>, ExchangeFailure> {
        let _turn = self.renewing.lock().await;
        self.alive()?;
        let old = self.current()?;
        if old.number != lost {
            return Ok(old);
        }
        let limit = self.limits.connect;
        let renewed = match tokio::time::timeout(limit, self.shake_hands(lost + 1)).await {
            Ok(renewed) => renewed,
            Err(_) => Err(ExchangeFailure::Other(UpstreamError::Timeout { limit })),
        };
        let (_, session) = renewed.inspect_err(|failure| {
            self.log("the server has forgotten our session and opens no new one");
            self.gone.send_replace(Some(failure.clone().into()));
        })?;
        if let Err(ended) = self.alive() {
            self.part(&session).await;
            return Err(ended.into());
        }
        let session = Arc::new(session);
        self.session.send_replace(Some(session.clone()));
        if !old.same_server(&session) {
            // The known state of the server is outdated: the owner reconnects.
            self.log("the server came back as another: other revision or capabilities");
            let reason = format!("{} has changed; connecting anew", self.endpoint);
            self.gone.send_replace(Some(UpstreamError::Lost(reason)));
            return Err(ExchangeFailure::Other(UpstreamError::Draining));
        }
        self.log("the server had forgotten our session; a new one is open");
        // The server has most likely been restarted.
        self.announce_changes(&session);
        Ok(session)
    }

    /// For a server that may have changed its lists while unable to notify.
    pub(super) fn announce_changes(&self, session: &HttpSession) {
        for kind in &session.lists {
            let notification = Notification {
                method: format!("notifications/{kind}/list_changed"),
                params: None,
            };
            let inbound = &self.receiver.inbound;
            let _ = inbound.try_send(InboundMessage::Notification(notification));
        }
    }

    /// Tells the server that the session is over.
    pub(super) async fn goodbye(&self) {
        if let Ok(session) = self.current() {
            self.part(&session).await;
        }
    }

    async fn part(&self, session: &HttpSession) {
        if session.id.is_some() {
            let headers = session.headers();
            let delete = self.ask(Method::DELETE, &headers, Bytes::new(), None);
            // A 405, from a server that cannot end sessions, is fine too.
            let _ = tokio::time::timeout(GOODBYE_LIMIT, delete).await;
        }
    }
}
