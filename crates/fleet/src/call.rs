//! One request to one server, whatever its era: the connection is found, or
//! waited for while the server is replaced, and what the server says and asks
//! meanwhile comes before its answer.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{CallError, Fleet, Slot};
use upstream::{
    CallEvent, EventReceiver, EventSender, Notification, Peer, Permit, ServerRequest, UpstreamCall,
    UpstreamError, event_queue,
};
use wire::Era;
use wire::meta::LogLevel;

/// Events kept for a slow client; further ones are dropped.
const EVENTS: usize = 256;

/// A request as it goes to a server, and how.
#[derive(Clone)]
pub struct CallRequest {
    pub server: Arc<str>,
    pub slot: Slot,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
    /// The name or URI it is about, where the params may say it otherwise.
    pub name: Option<String>,
    /// The client's, in modern words: what a modern server is told.
    pub capabilities: Arc<RawValue>,
    pub log_level: Option<LogLevel>,
    /// A legacy session: it gets the log without having asked for a level.
    pub wants_log: bool,
    /// Whether the client wants progress notifications.
    pub progress: bool,
    /// `None`: the server's own.
    pub limit: Option<Duration>,
    /// The permission to send the request, where it can be revoked.
    pub permission: Option<Arc<dyn Permission>>,
}

impl CallRequest {
    /// The level named in a request to a modern server.
    fn level_for(&self, peer: &Peer) -> Option<LogLevel> {
        let level = self.log_level;
        let level = level.or(self.wants_log.then_some(LogLevel::Debug));
        level.filter(|_| peer.offers("logging"))
    }
}

/// A permit that may be replaced by another while its request waits.
pub trait Permission: Permit {
    /// The permission as it is now, if it is still given.
    fn renewed(&self) -> Option<Arc<dyn Permission>>;
}

/// What comes of a call, in order; nothing follows [`CallItem::Done`].
pub enum CallItem {
    Notification(Notification),
    /// Legacy servers only; a modern one asks in its answer.
    Request(ServerRequest),
    Done(CallOutcome),
}

/// The end of a call.
pub struct CallOutcome {
    /// The server that answered; unknown where none was reached.
    pub peer: Option<Arc<Peer>>,
    pub result: Result<Box<RawValue>, CallError>,
}

type BoxedCall = Pin<Box<dyn Future<Output = CallOutcome> + Send>>;

/// A call on its way. Dropping it gives the request up; the server is told.
pub struct CallStream {
    events: EventReceiver,
    work: BoxedCall,
    outcome: Option<CallOutcome>,
}

impl Fleet {
    /// Sends a request to a server. While the server is being replaced the
    /// request waits, within its own limit; nothing is ever sent twice.
    pub fn call(&self, request: Arc<CallRequest>) -> CallStream {
        let (sender, events) = event_queue(EVENTS);
        CallStream {
            events,
            work: Box::pin(send(self.clone(), request, sender)),
            outcome: None,
        }
    }
}

impl CallStream {
    /// A call that no server answers, but `work`.
    pub fn of(work: impl Future<Output = CallOutcome> + Send + 'static) -> CallStream {
        let (_, events) = event_queue(1);
        CallStream {
            events,
            work: Box::pin(work),
            outcome: None,
        }
    }

    /// Cancel-safe. Not to be called after [`CallItem::Done`].
    pub async fn next(&mut self) -> CallItem {
        loop {
            // What was said before the answer comes before the answer.
            if self.outcome.is_some() {
                if let Some(event) = self.events.try_recv() {
                    return event.into();
                }
                if let Some(outcome) = self.outcome.take() {
                    return CallItem::Done(outcome);
                }
            }
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return event.into(),
                outcome = &mut self.work => self.outcome = Some(outcome),
            }
        }
    }
}

impl From<CallEvent> for CallItem {
    fn from(event: CallEvent) -> CallItem {
        match event {
            CallEvent::Notification(notification) => CallItem::Notification(notification),
            CallEvent::Request(request) => CallItem::Request(request),
        }
    }
}

async fn send(fleet: Fleet, request: Arc<CallRequest>, events: EventSender) -> CallOutcome {
    let start = Instant::now();
    let mut permission = request.permission.clone();
    loop {
        let lease = fleet.lease(&request.server, &request.slot, start, request.limit);
        let (connection, limit) = match lease.await {
            Ok(lease) => lease,
            Err(error) => {
                return CallOutcome {
                    peer: None,
                    result: Err(error),
                };
            }
        };
        let permit = permission
            .clone()
            .map(|permission| -> Arc<dyn Permit> { permission });
        let peer = connection.peer_arc();
        if let Some(level) = request.log_level.filter(|_| peer.era == Era::Legacy) {
            connection.raise_log_level(level, permit.as_ref()).await;
        }
        let call = UpstreamCall {
            method: &request.method,
            params: request.params.as_deref(),
            name: request.name.as_deref(),
            limit: Some(limit.saturating_sub(start.elapsed())),
            progress: request.progress,
            events: Some(events.clone()),
            capabilities: Some(&request.capabilities),
            log_level: request.level_for(&peer).map(LogLevel::as_str),
            permit: permit.as_ref(),
            whose: Some(&request.slot.principal),
        };
        let result = match connection.request(call).await {
            // Its gate closed under us: nothing was sent.
            Err(UpstreamError::Draining) => {
                tokio::task::yield_now().await;
                continue;
            }
            // The entry has changed since: nothing was sent.
            Err(UpstreamError::Revoked)
                if let Some(renewed) = permission.as_ref().and_then(|one| one.renewed()) =>
            {
                permission = Some(renewed);
                continue;
            }
            // The limit was cut by what the wait took; the caller knows the
            // whole one.
            Err(UpstreamError::Timeout { .. }) => Err(UpstreamError::Timeout { limit }),
            result => result,
        };
        return CallOutcome {
            peer: Some(peer),
            result: result.map_err(CallError::from),
        };
    }
}
