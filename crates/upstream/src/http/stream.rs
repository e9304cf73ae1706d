//! Responses that are event streams, and the resumption of a broken one.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};

use super::exchange::HttpExchange;
use super::legacy::HttpSession;
use super::{ExchangeResult, HttpShared};
use crate::events::Events;
use crate::reply::{ExchangeFailure, HttpReply};
use wire::sse::Event;

const LAST_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How often in a row the resumption of a stream may fail.
const ATTEMPTS: u32 = 5;
/// The delay before a resumption, if the server states none.
const DELAY: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(300);

/// The position up to which a stream was read.
#[derive(Clone, Default)]
pub struct StreamPosition {
    pub last_id: Option<HeaderValue>,
    /// The delay before a reconnect, if the server stated one.
    pub retry: Option<Duration>,
}

impl StreamPosition {
    /// Records an event; false if it was seen before.
    pub fn pass(&mut self, event: &Event) -> bool {
        if let Some(ms) = event.retry {
            self.retry = Some(Duration::from_millis(ms).clamp(SHORTEST, LONGEST));
        }
        let Some(id) = &event.id else { return true };
        // An id that is not a valid header value cannot be requested either.
        let id = HeaderValue::try_from(id).ok().filter(|id| !id.is_empty());
        let seen = id.is_some() && id == self.last_id;
        self.last_id = id;
        !seen
    }

    /// The delay before attempt number `attempt`, from 0: as the server
    /// requested, or longer each time.
    pub(super) fn delay(&self, attempt: u32) -> Duration {
        let base = self.retry.unwrap_or(DELAY);
        (base * 2u32.pow(attempt.min(10))).min(LONGEST)
    }
}

impl HttpShared {
    /// Reads a stream up to its response. With a session, a broken stream is
    /// resumed at its position, if the server numbers its events: that requests
    /// the rest of a response, and never runs anything again.
    pub(super) async fn follow(
        &self,
        flight: &HttpExchange<'_>,
        session: Option<&HttpSession>,
        mut events: Box<Events>,
    ) -> ExchangeResult {
        let mut place = StreamPosition::default();
        loop {
            let reason = match events.next().await {
                Ok(Some(event)) => {
                    let fresh = place.pass(&event) && event.is_message();
                    if fresh && let Some(found) = flight.take(&event.data.into()) {
                        events.finish();
                        return found;
                    }
                    continue;
                }
                Ok(None) => format!("{}: the stream ended without an answer", self.endpoint),
                Err(ExchangeFailure::Broken(reason)) => reason,
                Err(failure) => return Err(failure),
            };
            events = match session {
                Some(session) => self.resume(session, &place, reason).await?,
                None => return Err(ExchangeFailure::Broken(reason)),
            };
        }
    }

    async fn resume(
        &self,
        session: &HttpSession,
        place: &StreamPosition,
        reason: String,
    ) -> Result<Box<Events>, ExchangeFailure> {
        let Some(last_id) = &place.last_id else {
            return Err(ExchangeFailure::Broken(reason));
        };
        for attempt in 0..ATTEMPTS {
            tokio::time::sleep(place.delay(attempt)).await;
            match self.get(session, Some(last_id)).await {
                Ok(HttpReply::Stream(events)) => return Ok(events),
                Err(failure) if failure.passing() => {}
                _ => break,
            }
        }
        Err(ExchangeFailure::Broken(format!(
            "{reason}, and could not be picked up again"
        )))
    }

    /// Opens a stream, or the rest of one.
    pub(super) async fn get(
        &self,
        session: &HttpSession,
        last_id: Option<&HeaderValue>,
    ) -> Result<HttpReply, ExchangeFailure> {
        let mut headers = session.headers();
        let events = HeaderValue::from_static("text/event-stream");
        headers.add(&http::header::ACCEPT, &events);
        if let Some(last_id) = last_id {
            headers.add(&LAST_ID, last_id);
        }
        let limit = self.limits.connect;
        let asked = self.ask(Method::GET, &headers, Default::default(), None);
        match tokio::time::timeout(limit, asked).await {
            Ok(replied) => Ok(replied?.reply),
            Err(_) => Err(ExchangeFailure::Broken(format!(
                "{}: no answer to GET",
                self.endpoint
            ))),
        }
    }
}
