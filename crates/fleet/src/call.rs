//! One request to one server of either era: the call finds the connection, or
//! waits while the server is replaced, and delivers the server's notifications
//! and requests before its response.

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
use wire::meta::LogLevel;
use wire::{Era, Payload};

/// Events kept for a slow client; later ones are dropped.
const EVENTS: usize = 256;

/// A request to a server, and the options for sending it.
#[derive(Clone)]
pub struct CallRequest {
    pub server: Arc<str>,
    pub slot: Slot,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
    /// The name or URI of the target, where the params may differ from it.
    pub name: Option<Arc<str>>,
    /// The client's capabilities in modern form, as sent to a modern server.
    pub capabilities: Arc<RawValue>,
    pub log_level: Option<LogLevel>,
    /// Set for a legacy session, which gets the log without requesting a level.
    pub wants_log: bool,
    /// Whether the client wants progress notifications.
    pub progress: bool,
    /// `None`: the server's own limit.
    pub limit: Option<Duration>,
    /// The permission to send the request, where it can be revoked.
    pub permission: Option<Arc<dyn Permission>>,
}

impl CallRequest {
    /// The log level that a request to a modern server carries.
    fn level_for(&self, peer: &Peer) -> Option<LogLevel> {
        let level = self.log_level;
        let level = level.or(self.wants_log.then_some(LogLevel::Debug));
        level.filter(|_| peer.offers("logging"))
    }
}

/// A permit that may be replaced by another while its request waits.
pub trait Permission: Permit {
    /// The current permission, unless it has been revoked.
    fn renewed(&self) -> Option<Arc<dyn Permission>>;
}

/// The items of a call, in order; nothing follows [`CallItem::Done`].
pub enum CallItem {
    Notification(Notification),
    /// Legacy servers only; a modern server puts its requests into its result.
    Request(ServerRequest),
    Done(CallOutcome),
}

pub struct CallOutcome {
    /// The server that responded; `None` if no server was reached.
    pub peer: Option<Arc<Peer>>,
    pub result: Result<Payload, CallError>,
}

type BoxedCall = Pin<Box<dyn Future<Output = CallOutcome> + Send>>;

/// A call in flight. Dropping it cancels the request at the server.
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
    /// A call that `work` answers instead of a server.
    pub fn of(work: impl Future<Output = CallOutcome> + Send + 'static) -> CallStream {
        let (_, events) = event_queue(1);
        CallStream {
            events,
            work: Box::pin(work),
            outcome: None,
        }
    }

    /// Cancel-safe. Must not be called after [`CallItem::Done`].
    pub async fn next(&mut self) -> CallItem {
        loop {
            // Events that arrived before the response are delivered before it.
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
            // The connection's gate closed in between: nothing was sent.
            Err(UpstreamError::Draining) => {
                tokio::task::yield_now().await;
                continue;
            }
            // The permission has changed since: nothing was sent.
            Err(UpstreamError::Revoked)
                if let Some(renewed) = permission.as_ref().and_then(|one| one.renewed()) =>
            {
                permission = Some(renewed);
                continue;
            }
            // This call's limit was shortened by the wait; the error reports
            // the caller's full limit.
            Err(UpstreamError::Timeout { .. }) => Err(UpstreamError::Timeout { limit }),
            result => result,
        };
        return CallOutcome {
            peer: Some(peer),
            result: result.map_err(CallError::from),
        };
    }
}
