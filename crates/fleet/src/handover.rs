//! Replaces one connection by the next: which calls may finish, which calls
//! wait, and for how long.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::time::Instant;

use super::attempt::LiveServer;
use super::state::ServerState;
use super::supervisor::Supervisor;
use crate::registry::DesiredServer;
use config::TransportKind;

/// A call ends by its own limit, which each progress notification restarts;
/// this limit is for calls that never end.
const LONGEST_DRAIN: Duration = Duration::from_secs(300);
/// For the calls of a server that is stopped; the same as at a shutdown.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// The state that a connection leaves to its successor.
#[derive(Default)]
pub(super) struct Handover {
    /// Calls wait for the successor instead of failing.
    pub replacing: bool,
    /// A remote connection that serves until its successor is connected.
    pub old: Option<LiveServer>,
}

impl Supervisor {
    /// Decides what happens to the connection after the desired state changed.
    pub(super) async fn hand_over(&mut self, live: LiveServer) -> Handover {
        let next = self.wish.borrow().clone();
        let by_hand = next
            .as_ref()
            .is_some_and(|next| by_hand(&self.view.wanted, next));
        let Some(next) = next.as_ref().filter(|next| next.run).cloned() else {
            live.line.connection.close_gate();
            // The old desired state stays in force until its calls have finished.
            let reason = next.map_or_else(|| "removed".to_owned(), |next| next.why_stopped());
            self.tell_because(ServerState::Stopped, false, Some(reason));
            self.finish(live, (!by_hand).then_some(LAST_CALLS)).await;
            return Handover::default();
        };
        if !by_hand && remote(&next) && remote(&self.view.wanted) {
            return Handover {
                replacing: true,
                old: Some(live),
            };
        }
        // Two copies of one process could compete for a lock or a port: new
        // calls wait, and calls in flight finish first unless a person
        // requested the restart.
        live.line.connection.close_gate();
        self.view.wanted = next;
        // Failures under the old definition are not the reason for this connection.
        self.view.restarts = 0;
        let state = ServerState::Connecting {
            serving: None,
            replacing: true,
        };
        self.tell(state, false);
        self.finish(live, (!by_hand).then_some(LONGEST_DRAIN)).await;
        Handover {
            replacing: true,
            old: None,
        }
    }

    /// Ends a connection. With `patience`, its calls may finish first, until
    /// `hurried` resolves.
    pub(super) async fn finish(&mut self, live: LiveServer, patience: Option<Duration>) {
        if let Some(limit) = patience {
            tokio::select! {
                () = live.drain(limit) => {}
                () = self.hurried() => {}
            }
        }
        live.end().await;
    }

    /// Lets a retired remote connection finish its calls, then ends it. Only
    /// the shutdown of the whole fleet waits for that.
    pub(super) fn retire(&self, old: Option<LiveServer>) {
        let Some(old) = old else { return };
        old.line.connection.close_gate();
        let going_down = self.shared.going_down.clone();
        self.shared.retired.spawn(async move {
            let drained = old.drain(LONGEST_DRAIN);
            going_down.run_until_cancelled(drained).await;
            old.end().await;
        });
    }

    /// Resolves when a person stops or restarts the server, when the server has
    /// been unwanted for `LAST_CALLS`, or when Portway shuts down.
    async fn hurried(&mut self) {
        let mut deadline = None;
        loop {
            let out_of_patience = OptionFuture::from(deadline.map(tokio::time::sleep_until));
            tokio::select! {
                () = self.shared.going_down.cancelled() => return,
                Some(()) = out_of_patience => return,
                changed = self.wish.changed() => if changed.is_err() { return },
            }
            let next = self.wish.borrow_and_update().clone();
            match next {
                Some(next) if by_hand(&self.view.wanted, &next) => return,
                Some(next) if next.run => {}
                _ => {
                    deadline.get_or_insert(Instant::now() + LAST_CALLS);
                }
            }
        }
    }
}

/// Whether a person stopped or restarted the server, rather than changed its
/// definition.
fn by_hand(old: &Arc<DesiredServer>, new: &Arc<DesiredServer>) -> bool {
    let stopped = old.run && !new.run && old.spec == new.spec;
    stopped || old.restarts != new.restarts
}

fn remote(wanted: &DesiredServer) -> bool {
    let spec = wanted.spec.as_ref();
    spec.is_ok_and(|spec| spec.transport() != TransportKind::Stdio)
}
