//! The connected phase of a server: health checks, list changes, and messages
//! that belong to no call.

use std::pin::Pin;
use std::time::Duration;

use futures_util::future::OptionFuture;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::attempt::LiveServer;
use super::catalog::{self, Catalog};
use super::listen;
use super::supervisor::{FORGIVEN_AFTER, Supervisor};
use upstream::{Connection, InboundMessage, LogStream, Notification, UpstreamCall, UpstreamError};
use wire::{Era, Payload, object};

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

/// Serves until the connection ends or the desired state changes.
pub(super) async fn serve(supervisor: &mut Supervisor, mut live: LiveServer) -> ServingEnd {
    let period = supervisor.shared.surroundings.health_interval;
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = listen::follow(&live.line.connection);
    let gone = live.link.gone();
    let forgiven = tokio::time::sleep(FORGIVEN_AFTER);
    let asks = supervisor.asking.noticed();
    tokio::pin!(gone, forgiven, asks);
    let main = live.line.connection.clone();
    let mut check: OptionalTask<Result<Payload, UpstreamError>> = None;
    let mut listing: OptionalTask<(Connection, Result<Catalog, UpstreamError>)> = None;
    // The connection whose lists have changed.
    let mut stale: Option<Connection> = None;
    let mut lists = live.line.desk.lists();
    loop {
        if listing.is_none()
            && let Some(changed) = stale.take()
        {
            listing = Some(Box::pin(relist(changed, supervisor.view.wanted.timeout())));
        }
        tokio::select! {
            biased;
            () = supervisor.superseded() => return ServingEnd::Superseded(live),
            reason = &mut gone => return ServingEnd::Gone(reason, live),
            Some(checked) = OptionFuture::from(check.as_mut()) => {
                check = None;
                if let Some(reason) = unhealthy(checked) {
                    return ServingEnd::Gone(reason, live);
                }
            }
            Some((from, listed)) = OptionFuture::from(listing.as_mut()) => {
                listing = None;
                match listed {
                    Ok(catalog) => supervisor.tell_catalog(catalog, main.peer()),
                    Err(reason) if from.same(&main) => return ServingEnd::Gone(reason, live),
                    // The end of that connection is handled elsewhere.
                    Err(_) => {}
                }
            }
            _ = ticks.tick(), if check.is_none() => {
                check = Some(Box::pin(examine(main.clone(), period)));
            }
            Some(Some(())) = OptionFuture::from(changes.as_mut().map(mpsc::Receiver::recv)) => {
                stale = Some(main.clone());
            }
            Ok(()) = lists.changed() => {
                let beside = lists.borrow_and_update().clone();
                stale = Some(beside.unwrap_or_else(|| main.clone()));
            }
            () = &mut forgiven, if supervisor.view.restarts > 0 => supervisor.forgive(),
            () = &mut asks => {
                supervisor.asks();
                asks.set(supervisor.asking.noticed());
            }
            // Last: a server that sends without pause must not starve the others.
            Some(said) = live.link.inbound.recv() => {
                if heard(supervisor, said) {
                    stale = Some(main.clone());
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
                let note = Notification { method, params };
                let messages = &supervisor.shared.publisher.unasked;
                messages.tell(&supervisor.name, None, note);
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

async fn relist(from: Connection, limit: Duration) -> (Connection, Result<Catalog, UpstreamError>) {
    tokio::time::sleep(SETTLE).await;
    let listed = catalog::list(&from, limit).await;
    (from, listed)
}

async fn examine(connection: Connection, period: Duration) -> Result<Payload, UpstreamError> {
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
fn unhealthy(result: Result<Payload, UpstreamError>) -> Option<UpstreamError> {
    match result {
        Ok(_) | Err(UpstreamError::Rpc(_)) => None,
        Err(UpstreamError::Timeout { limit }) => Some(UpstreamError::Unreachable(format!(
            "no answer to the health check within {} s",
            limit.as_secs_f32()
        ))),
        Err(error) => Some(error),
    }
}
