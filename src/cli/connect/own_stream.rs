//! The stream for messages that belong to no request: read while the session
//! lasts, and reopened when it breaks.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::bridge::Bridge;
use super::error::BridgeError;
use super::legacy::GatewaySession;
use upstream::StreamPosition;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Bridge {
    pub(super) fn listen_to(self: &Arc<Self>, session: Arc<GatewaySession>) {
        let bridge = self.clone();
        tokio::spawn(async move { bridge.keep_listening(session).await });
    }

    async fn keep_listening(self: Arc<Self>, session: Arc<GatewaySession>) {
        let mut place = StreamPosition::default();
        let mut broke = false;
        let mut pause = FIRST_PAUSE;
        while self.is_current(&session) {
            match self.events(&session, place.clone(), true).await {
                Ok(mut stream) => {
                    if std::mem::replace(&mut broke, true) {
                        self.catch_up(&session).await;
                    }
                    while let Ok(Some(message)) = stream.next().await {
                        pause = FIRST_PAUSE;
                        self.out.message(message).await;
                    }
                    place = stream.place;
                }
                Err(error) if error.session_lost() => {
                    // The renewed session opens a stream of its own.
                    if self.renew(&session).await.is_ok() {
                        return;
                    }
                }
                // The gateway cannot resume there: start without an event.
                Err(BridgeError::Refused { status, .. })
                    if refused(status) && place.last_id.take().is_some() =>
                {
                    continue;
                }
                // A gateway need not support this stream.
                Err(BridgeError::Refused { status, .. }) if refused(status) => return,
                Err(BridgeError::Denied(_)) => return,
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn refused(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::BAD_REQUEST
    )
}
