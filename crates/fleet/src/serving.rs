//! The time between connected and not: health, changes of the lists, and
//! what the server says unasked.

use std::pin::Pin;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::attempt::Live;
use super::catalog::{self, Catalog};
use super::listen;
use super::supervisor::{FORGIVEN_AFTER, Supervisor};
use upstream::{Call, Connection, Inbound, LogStream, Notification, UpstreamError};
use wire::{Era, object};

/// How long a health check may take: as long as the pause between two, within
/// reason. A busy machine is no sick server.
const CHECK_LIMITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Changes that come in a burst are listed once.
const SETTLE: Duration = Duration::from_millis(50);

pub(super) enum Ended {
    /// The wish asks for something else; the connection is still up.
    Superseded(Live),
    /// The connection is of no use any more; what is left of it is to be
    /// ended.
    Gone(UpstreamError, Live),
}

type Pending<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

/// What woke us.
enum Woken {
    Superseded,
    Gone(UpstreamError),
    Said(Option<Inbound>),
    /// On a connection beside the main one, or on that.
    ListsChanged(Option<Connection>),
    CheckDue,
    Checked(Result<Box<RawValue>, UpstreamError>),
    Listed(Listed),
    Forgiven,
    Asks,
}

/// Serves until the connection or the wish ends.
pub(super) async fn serve(supervisor: &mut Supervisor, mut live: Live) -> Ended {
    let period = supervisor.surroundings.health_interval;
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = listen::follow(&live.line.connection);
    let gone = live.link.gone();
    let forgiven = tokio::time::sleep(FORGIVEN_AFTER);
    let asks = supervisor.asking.noticed();
    tokio::pin!(gone, forgiven, asks);
    let mut check: Pending<Result<Box<RawValue>, UpstreamError>> = None;
    let mut listing: Pending<Listed> = None;
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
            () = supervisor.superseded() => Woken::Superseded,
            reason = &mut gone => Woken::Gone(reason),
            checked = ready(&mut check) => Woken::Checked(checked),
            listed = ready(&mut listing) => Woken::Listed(listed),
            _ = ticks.tick(), if check.is_none() => Woken::CheckDue,
            () = next(&mut changes) => Woken::ListsChanged(None),
            Ok(()) = lists.changed() => Woken::ListsChanged(lists.borrow_and_update().clone()),
            () = &mut forgiven, if supervisor.restarts > 0 => Woken::Forgiven,
            () = &mut asks => Woken::Asks,
            // Last: a server that never stops talking must not hide the rest.
            said = live.link.inbound.recv(), if talks => Woken::Said(said),
        };
        match woken {
            Woken::Superseded => return Ended::Superseded(live),
            Woken::Gone(reason) => return Ended::Gone(reason, live),
            Woken::Said(None) => talks = false,
            Woken::Said(Some(said)) => {
                if heard(supervisor, said) {
                    stale = Some(live.line.connection.clone());
                }
            }
            Woken::ListsChanged(whose) => {
                stale = Some(whose.unwrap_or_else(|| live.line.connection.clone()));
            }
            Woken::Forgiven => supervisor.forgive(),
            Woken::Asks => {
                supervisor.asks();
                asks.set(supervisor.asking.noticed());
            }
            Woken::CheckDue => {
                check = Some(Box::pin(examine(live.line.connection.clone(), period)))
            }
            Woken::Checked(result) => {
                check = None;
                if let Some(reason) = unhealthy(result) {
                    return Ended::Gone(reason, live);
                }
            }
            Woken::Listed(listed) => {
                listing = None;
                match listed.catalog {
                    Ok(catalog) => supervisor.tell_catalog(*catalog, live.line.connection.peer()),
                    Err(reason) if listed.from.same(&live.line.connection) => {
                        return Ended::Gone(reason, live);
                    }
                    // The end of that one is seen elsewhere.
                    Err(_) => {}
                }
            }
        }
    }
}

/// Takes what a server says unasked; true if its lists changed.
fn heard(supervisor: &Supervisor, said: Inbound) -> bool {
    match said {
        Inbound::Notification(Notification { method, params }) => match method.as_str() {
            "notifications/message" => {
                if let Some(params) = params {
                    supervisor.note(LogStream::Protocol, &log_line(&params));
                }
                false
            }
            // Over a pipe it comes with everything else.
            listen::BEGINS => true,
            _ => {
                let stale = listen::outdates_lists(&method);
                supervisor.updated(Notification { method, params });
                stale
            }
        },
        Inbound::Request(request) => {
            // Refused when dropped.
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

/// New lists, or why there are none.
struct Listed {
    from: Connection,
    catalog: Result<Box<Catalog>, UpstreamError>,
}

async fn relist(from: Connection, limit: Duration) -> Listed {
    tokio::time::sleep(SETTLE).await;
    let catalog = catalog::list(&from, limit).await.map(Box::new);
    Listed { from, catalog }
}

async fn examine(connection: Connection, period: Duration) -> Result<Box<RawValue>, UpstreamError> {
    let method = match connection.peer().era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    };
    let [least, most] = CHECK_LIMITS;
    let limit = period.clamp(least, most);
    connection.background(Call::new(method, limit)).await
}

/// An answer of any kind, an error too, is a sign of life.
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

async fn ready<T>(pending: &mut Pending<T>) -> T {
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
