//! The connected phase of a server: health checks, list changes, and messages
//! that belong to no call.

use std::pin::Pin;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::attempt::LiveServer;
use super::catalog::{self, Catalog};
use super::listen;
use super::supervisor::{FORGIVEN_AFTER, Supervisor};
use upstream::{Connection, InboundMessage, LogStream, Notification, UpstreamCall, UpstreamError};
use wire::{Era, object};

/// The limit of a health check: the interval between two checks, clamped to
/// this range. A busy machine does not make a server unhealthy.
const CHECK_LIMITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Changes within this time are listed once.
const SETTLE: Duration = Duration::from_millis(50);

pub(super) enum ServingEnd {
    /// The desired state requires another connection; this one is still up.
    Superseded(LiveServer),
    /// The connection is unusable; the caller ends the rest of it.
    Gone(UpstreamError, LiveServer),
}

type OptionalTask<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

enum ServingEvent {
    Superseded,
    Gone(UpstreamError),
    Said(Option<InboundMessage>),
    /// The connection beside the main one, or `None` for the main one.
    ListsChanged(Option<Connection>),
    CheckDue,
    Checked(Result<Box<RawValue>, UpstreamError>),
    Listed(NewLists),
    Forgiven,
    Asks,
}

/// Serves until the connection ends or the desired state changes.
pub(super) async fn serve(supervisor: &mut Supervisor, mut live: LiveServer) -> ServingEnd {
    let period = supervisor.surroundings.health_interval;
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = listen::follow(&live.line.connection);
    let gone = live.link.gone();
    let forgiven = tokio::time::sleep(FORGIVEN_AFTER);
    let asks = supervisor.asking.noticed();
    tokio::pin!(gone, forgiven, asks);
    let mut check: OptionalTask<Result<Box<RawValue>, UpstreamError>> = None;
    let mut listing: OptionalTask<NewLists> = None;
    let mut stale: Option<Connection> = None;
    let mut lists = live.line.desk.lists();
    let mut talks = true;
    loop {
        if listing.is_none()
            && let Some(changed) = stale.take()
        {
            listing = Some(Box::pin(relist(changed, supervisor.timeout())));
        }
        let woken = tokio::select! {
            biased;
            () = supervisor.superseded() => ServingEvent::Superseded,
            reason = &mut gone => ServingEvent::Gone(reason),
            checked = ready(&mut check) => ServingEvent::Checked(checked),
            listed = ready(&mut listing) => ServingEvent::Listed(listed),
            _ = ticks.tick(), if check.is_none() => ServingEvent::CheckDue,
            () = next(&mut changes) => ServingEvent::ListsChanged(None),
            Ok(()) = lists.changed() => ServingEvent::ListsChanged(lists.borrow_and_update().clone()),
            () = &mut forgiven, if supervisor.restarts > 0 => ServingEvent::Forgiven,
            () = &mut asks => ServingEvent::Asks,
            // Last: a server that sends without pause must not starve the others.
            said = live.link.inbound.recv(), if talks => ServingEvent::Said(said),
        };
        match woken {
            ServingEvent::Superseded => return ServingEnd::Superseded(live),
            ServingEvent::Gone(reason) => return ServingEnd::Gone(reason, live),
            ServingEvent::Said(None) => talks = false,
            ServingEvent::Said(Some(said)) => {
                if heard(supervisor, said) {
                    stale = Some(live.line.connection.clone());
                }
            }
            ServingEvent::ListsChanged(whose) => {
                stale = Some(whose.unwrap_or_else(|| live.line.connection.clone()));
            }
            ServingEvent::Forgiven => supervisor.forgive(),
            ServingEvent::Asks => {
                supervisor.asks();
                asks.set(supervisor.asking.noticed());
            }
            ServingEvent::CheckDue => {
                check = Some(Box::pin(examine(live.line.connection.clone(), period)))
            }
            ServingEvent::Checked(result) => {
                check = None;
                if let Some(reason) = unhealthy(result) {
                    return ServingEnd::Gone(reason, live);
                }
            }
            ServingEvent::Listed(listed) => {
                listing = None;
                match listed.catalog {
                    Ok(catalog) => supervisor.tell_catalog(*catalog, live.line.connection.peer()),
                    Err(reason) if listed.from.same(&live.line.connection) => {
                        return ServingEnd::Gone(reason, live);
                    }
                    // The end of that connection is handled elsewhere.
                    Err(_) => {}
                }
            }
        }
    }
}

/// Handles a message that belongs to no call; true if the lists changed.
fn heard(supervisor: &Supervisor, said: InboundMessage) -> bool {
    match said {
        InboundMessage::Notification(Notification { method, params }) => match method.as_str() {
            "notifications/message" => {
                if let Some(params) = params {
                    supervisor.note(LogStream::Protocol, &log_line(&params));
                }
                false
            }
            // On a pipe it arrives with all other notifications.
            listen::BEGINS => true,
            _ => {
                let stale = listen::outdates_lists(&method);
                supervisor.updated(Notification { method, params });
                stale
            }
        },
        InboundMessage::Request(request) => {
            // Dropping the request refuses it.
            let text = format!("asked for {}, which nobody can answer now", request.method);
            supervisor.note(LogStream::Protocol, &text);
            false
        }
    }
}

fn log_line(params: &RawValue) -> String {
    let member = |name| object::member(params, name).map_or("", RawValue::get);
    format!("[{}] {}", member("level").trim_matches('"'), member("data"))
}

/// New lists, or the error of the listing.
struct NewLists {
    from: Connection,
    catalog: Result<Box<Catalog>, UpstreamError>,
}

async fn relist(from: Connection, limit: Duration) -> NewLists {
    tokio::time::sleep(SETTLE).await;
    let catalog = catalog::list(&from, limit).await.map(Box::new);
    NewLists { from, catalog }
}

async fn examine(connection: Connection, period: Duration) -> Result<Box<RawValue>, UpstreamError> {
    let method = match connection.peer().era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    };
    let [least, most] = CHECK_LIMITS;
    let limit = period.clamp(least, most);
    connection
        .background(UpstreamCall::new(method, limit))
        .await
}

/// Any response, even an error, shows that the server is alive.
fn unhealthy(result: Result<Box<RawValue>, UpstreamError>) -> Option<UpstreamError> {
    match result {
        Ok(_) | Err(UpstreamError::Rpc(_)) => None,
        Err(UpstreamError::Timeout { limit }) => Some(UpstreamError::Unreachable(format!(
            "no answer to the health check within {} s",
            limit.as_secs_f32()
        ))),
        Err(error) => Some(error),
    }
}

async fn ready<T>(pending: &mut OptionalTask<T>) -> T {
    match pending {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn next(changes: &mut Option<mpsc::Receiver<()>>) {
    match changes {
        Some(receiver) => match receiver.recv().await {
            Some(()) => {}
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
