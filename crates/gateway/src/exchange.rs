//! One request to one server, told the same way whichever era the server is
//! of: what it says meanwhile, what it asks, what it answers.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::control::Control;
use super::right::Right;
use fleet::{CallError, Fleet, Slot};
use upstream::{
    Call, CallEvent, EventReceiver, EventSender, Notification, Peer, ServerRequest, UpstreamError,
    event_queue,
};
use wire::Era;
use wire::meta::LogLevel;

/// What may wait for a slow client before it is dropped.
const EVENTS: usize = 256;

/// A request as it goes to a server, and how.
#[derive(Clone)]
pub(super) struct Errand {
    pub server: Arc<str>,
    pub slot: Slot,
    pub method: Cow<'static, str>,
    pub params: Option<Box<RawValue>>,
    /// The name or URI it is about, where the params may say it otherwise.
    pub name: Option<String>,
    /// The client's, in modern words: what a modern server is told.
    pub capabilities: Arc<RawValue>,
    pub log_level: Option<LogLevel>,
    /// A legacy session: it hears the log without having asked for a level.
    pub hears_log: bool,
    /// Whether the client wants to hear of progress.
    pub progress: bool,
    /// `None`: the server's own.
    pub limit: Option<Duration>,
    /// What it is sent on the strength of, where that may end.
    pub right: Option<Right>,
    /// Portway itself answers, and no server.
    pub control: Option<Arc<Control>>,
}

impl Errand {
    /// The level named in a request to a modern server.
    fn level_for(&self, peer: &Peer) -> Option<LogLevel> {
        let level = self.log_level;
        let level = level.or(self.hears_log.then_some(LogLevel::Debug));
        level.filter(|_| peer.offers("logging"))
    }
}

/// What happens next in an exchange.
pub(super) enum Happening {
    Said(Notification),
    /// Legacy servers only; a modern one asks in its answer.
    Asked(ServerRequest),
    Answered(Answered),
}

/// The end of an exchange.
pub(super) struct Answered {
    /// Who answered; unknown where nobody did.
    pub peer: Option<Arc<Peer>>,
    pub answer: Result<Box<RawValue>, CallError>,
}

type Work = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// Dropping it gives the request up; the server is told.
pub(super) struct Exchange {
    events: EventReceiver,
    work: Work,
    answered: Option<Answered>,
}

impl Exchange {
    pub(crate) fn start(fleet: &Fleet, errand: Arc<Errand>) -> Exchange {
        let (sender, events) = event_queue(EVENTS);
        let work: Work = match &errand.control {
            None => Box::pin(run(fleet.clone(), errand, sender)),
            Some(control) => Box::pin(control.clone().answer(errand)),
        };
        Exchange {
            events,
            work,
            answered: None,
        }
    }

    /// One that never comes to anything: a place to keep a real one.
    pub(crate) fn nothing() -> Exchange {
        let (_, events) = event_queue(1);
        Exchange {
            events,
            work: Box::pin(std::future::pending()),
            answered: None,
        }
    }

    /// Cancel-safe. Not to be called after the answer.
    pub(crate) async fn next(&mut self) -> Happening {
        loop {
            // What was said before the answer comes before the answer.
            if self.answered.is_some() {
                if let Some(event) = self.events.try_recv() {
                    return happening(event);
                }
                if let Some(answered) = self.answered.take() {
                    return Happening::Answered(answered);
                }
            }
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return happening(event),
                answered = &mut self.work => self.answered = Some(answered),
            }
        }
    }
}

fn happening(event: CallEvent) -> Happening {
    match event {
        CallEvent::Notification(notification) => Happening::Said(notification),
        CallEvent::Request(request) => Happening::Asked(request),
    }
}

async fn run(fleet: Fleet, errand: Arc<Errand>, events: EventSender) -> Answered {
    let start = tokio::time::Instant::now();
    let mut renewed: Option<Right> = None;
    loop {
        let right = renewed.as_ref().or(errand.right.as_ref());
        let permit = right.map(Right::permit);
        let lease = fleet.lease(&errand.server, &errand.slot, start, errand.limit);
        let (connection, limit) = match lease.await {
            Ok(lease) => lease,
            Err(error) => {
                return Answered {
                    peer: None,
                    answer: Err(error),
                };
            }
        };
        let peer = connection.peer_arc();
        if let Some(level) = errand.log_level.filter(|_| peer.era == Era::Legacy) {
            connection.raise_log_level(level, permit.as_ref()).await;
        }
        let call = Call {
            method: &errand.method,
            params: errand.params.as_deref(),
            name: errand.name.as_deref(),
            limit: Some(limit.saturating_sub(start.elapsed())),
            progress: errand.progress,
            events: Some(events.clone()),
            capabilities: Some(&errand.capabilities),
            log_level: errand.level_for(&peer).map(LogLevel::as_str),
            permit: permit.as_ref(),
            whose: Some(&errand.slot.principal),
        };
        match connection.request(call).await {
            // Its gate closed under us: nothing was sent.
            Err(UpstreamError::Draining) => tokio::task::yield_now().await,
            // The entry has changed since: nothing was sent.
            Err(UpstreamError::Revoked)
                if let Some(right) = right.and_then(|right| right.renewed(&errand.server)) =>
            {
                renewed = Some(right);
            }
            // The limit was cut by what the wait took; the caller knows the
            // whole one.
            Err(UpstreamError::Timeout { .. }) => {
                return Answered {
                    peer: Some(peer),
                    answer: Err(UpstreamError::Timeout { limit }.into()),
                };
            }
            answer => {
                return Answered {
                    peer: Some(peer),
                    answer: answer.map_err(CallError::from),
                };
            }
        }
    }
}
