//! Follows the list changes of a modern server, which sends them only on a
//! listen.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use upstream::{CallEvent, Connection, UpstreamCall, event_queue};
use wire::Era;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The acknowledgement of a listen. Changes before it are unknown, and the
/// server does not report them later.
pub(super) const BEGINS: &str = "notifications/subscriptions/acknowledged";

/// Whether this notification means that the known lists may be outdated.
pub(super) fn outdates_lists(method: &str) -> bool {
    matches!(
        method,
        BEGINS
            | "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed"
    )
}

/// Opens a listen on a modern server and keeps it open; every message on the
/// returned channel means "list again". `None` if the server offers no list
/// changes. Ends when the receiver is dropped.
pub(super) fn follow(connection: &Connection) -> Option<mpsc::Receiver<()>> {
    let filter = filter(connection)?;
    let connection = connection.clone();
    // One pending "list again" is as good as many.
    let (changed, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::select! {
                heard = listen(&connection, &filter, &changed) => {
                    if heard {
                        pause = FIRST_PAUSE;
                    }
                }
                () = changed.closed() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(pause.mul_f64(0.8 + 0.4 * fastrand::f64())) => {}
                () = changed.closed() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
    Some(receiver)
}

fn filter(connection: &Connection) -> Option<Box<RawValue>> {
    let peer = connection.peer();
    if peer.era != Era::Modern {
        return None;
    }
    let mut wanted = serde_json::Map::new();
    for (capability, member) in [
        ("tools", "toolsListChanged"),
        ("resources", "resourcesListChanged"),
        ("prompts", "promptsListChanged"),
    ] {
        if peer.offers_flag(capability, "listChanged") {
            wanted.insert(member.into(), true.into());
        }
    }
    if wanted.is_empty() {
        return None;
    }
    serde_json::value::to_raw_value(&serde_json::json!({ "notifications": wanted })).ok()
}

/// Runs one listen until it ends. True if any event arrived.
async fn listen(connection: &Connection, filter: &RawValue, changed: &mpsc::Sender<()>) -> bool {
    let (events, mut queue) = event_queue(16);
    let call = UpstreamCall {
        limit: None,
        events: Some(events),
        ..UpstreamCall::new("subscriptions/listen", Duration::ZERO).params(Some(filter))
    };
    let request = connection.background(call);
    tokio::pin!(request);
    let mut heard = false;
    loop {
        tokio::select! {
            _ = &mut request => return heard,
            Some(event) = queue.recv() => {
                let CallEvent::Notification(note) = event else { continue };
                heard = true;
                if outdates_lists(&note.method) {
                    let _ = changed.try_send(());
                }
            }
        }
    }
}
