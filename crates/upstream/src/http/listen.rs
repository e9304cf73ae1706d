//! The stream for a legacy server's messages that belong to no request.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::HttpShared;
use super::legacy::HttpSession;
use super::stream::StreamPosition;
use crate::events::Events;
use crate::reply::{ExchangeFailure, HttpReply};

/// A stream that lasted this long was good: its end is not a failure.
const GOOD: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The reason why listening in one session has ended.
enum ListenEnd {
    /// The server has no such stream.
    NotOffered,
    SessionLost,
}

/// Listens in the current session; ends only by being dropped.
pub(super) async fn run(shared: &Arc<HttpShared>) {
    let mut sessions = shared.session.subscribe();
    let mut losses = 0;
    loop {
        let session = sessions.borrow_and_update().clone();
        if let Some(session) = session {
            let opened = Instant::now();
            tokio::select! {
                end = listen(shared, &session) => if let ListenEnd::SessionLost = end {
                    losses = if opened.elapsed() < GOOD { losses + 1 } else { 0 };
                    pause(StreamPosition::default().delay(losses)).await;
                    // The outcome shows in `sessions` or in `gone`.
                    let _ = shared.renew(&session).await;
                },
                _ = sessions.changed() => continue,
            }
        }
        if sessions.changed().await.is_err() {
            return;
        }
    }
}

async fn listen(shared: &HttpShared, session: &HttpSession) -> ListenEnd {
    let mut place = StreamPosition::default();
    let mut failures = 0;
    let mut heard = false;
    loop {
        let opened = Instant::now();
        let stream = shared.get(session, place.last_id.as_ref()).await;
        shared.listened.send_replace(true);
        match stream {
            Ok(HttpReply::Stream(events)) => {
                // Without an event id to resume from, the messages sent
                // meanwhile are lost.
                if heard && place.last_id.is_none() {
                    shared.announce_changes(session);
                }
                heard = true;
                drain(shared, events, &mut place).await;
                if opened.elapsed() >= GOOD {
                    failures = 0;
                }
            }
            // If there never was a stream, a 404 only means that.
            Err(failure) if heard && session.lost(&failure) => return ListenEnd::SessionLost,
            Err(failure) if failure.passing() => {}
            _ => return ListenEnd::NotOffered,
        }
        pause(place.delay(failures)).await;
        failures += 1;
    }
}

/// Jitter, so that many connections do not come back at the same moment.
async fn pause(about: Duration) {
    let spread = about.mul_f64(0.75 + 0.5 * fastrand::f64());
    tokio::time::sleep(spread.min(LONGEST_PAUSE)).await;
}

async fn drain(shared: &HttpShared, mut events: Box<Events>, place: &mut StreamPosition) {
    loop {
        match events.next().await {
            Ok(Some(event)) => {
                let fresh = place.pass(&event) && event.is_message();
                // An invalid message ends the stream, which is then opened again.
                if fresh && shared.receiver.receive(&event.data.into()).is_err() {
                    return;
                }
            }
            Ok(None) | Err(ExchangeFailure::Broken(_)) => return,
            Err(failure) => {
                let error = crate::UpstreamError::from(failure);
                return shared.log(&format!("the server's event stream: {error}"));
            }
        }
    }
}
