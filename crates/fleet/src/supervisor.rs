//! The only owner of one server: makes its connection follow the desired state.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::QuestionState;
use super::attempt::{ConnectRecipe, EraMemory, LiveServer, bring_up};
use super::catalog::Catalog;
use super::handover::Handover;
use super::offer;
use super::serving::{ServingEnd, serve};
use super::state::{ServerState, ServerView};
use super::{FleetConfig, Publisher, backoff};
use crate::registry::DesiredServer;
use config::{ServerSpec, TransportKind};
use upstream::{LogStream, Peer, UpstreamError};

/// After this uptime the failures of a server no longer count.
pub(super) const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// The parts that the supervisors of all servers share.
#[derive(Clone)]
pub(super) struct SharedParts {
    pub(super) publisher: Publisher,
    pub(super) surroundings: Arc<FleetConfig>,
    pub(super) starts: Arc<Semaphore>,
    /// Portway shuts down: the supervisor waits for nothing any more.
    pub(super) going_down: CancellationToken,
    /// Retired connections of the whole fleet that finish their calls.
    pub(super) retired: TaskTracker,
}

pub(super) struct Supervisor {
    pub(super) name: Arc<str>,
    pub(super) wish: watch::Receiver<Option<Arc<DesiredServer>>>,
    pub(super) shared: SharedParts,
    memory: EraMemory,
    pub(super) asking: QuestionState,
    /// The server as it is published; its `wanted` is the desired state in force.
    pub(super) view: ServerView,
}

impl Supervisor {
    pub(crate) fn new(
        name: Arc<str>,
        mut wish: watch::Receiver<Option<Arc<DesiredServer>>>,
        shared: SharedParts,
    ) -> Supervisor {
        let wanted = wish.borrow_and_update().clone();
        Supervisor {
            name,
            wish,
            shared,
            memory: EraMemory::default(),
            asking: QuestionState::default(),
            view: ServerView {
                wanted: wanted.expect("a supervisor starts with a wish"),
                state: ServerState::Stopped,
                since: SystemTime::now(),
                settled: false,
                settled_once: false,
                catalog: Arc::default(),
                offer: None,
                process: None,
                isolation: None,
                restarts: 0,
                log: Arc::default(),
                history: Arc::default(),
            },
        }
    }

    pub(crate) async fn run(mut self) {
        let mut handover = Handover::default();
        while self.take_wish() {
            let wanted = self.view.wanted.clone();
            let state = match &wanted.spec {
                Ok(spec) if wanted.run => {
                    handover = self.live(spec, handover).await;
                    continue;
                }
                Ok(_) => ServerState::Stopped,
                Err(problems) => ServerState::Failed {
                    error: config::problem::in_lines(problems).into(),
                },
            };
            self.tell(state, true);
            self.retire(handover.old.take());
            self.wait_for_change().await;
        }
        self.retire(handover.old);
        self.shared.publisher.remove(&self.name);
    }

    /// Puts the newest desired state in force; false if there is none.
    fn take_wish(&mut self) -> bool {
        let next = self.wish.borrow_and_update().clone();
        match next {
            Some(wanted) => {
                self.view.wanted = wanted;
                true
            }
            None => false,
        }
    }

    /// The reason that the history shows beside a state.
    fn why(&self, state: &ServerState) -> Option<String> {
        match state {
            ServerState::Connecting { .. } if self.view.restarts > 0 => {
                Some(format!("try {} after a failure", self.view.restarts + 1))
            }
            ServerState::Connecting { .. } => Some(self.view.wanted.why()),
            ServerState::Stopped => Some(self.view.wanted.why_stopped()),
            state => state.error().map(str::to_owned),
        }
    }

    async fn wait_for_change(&mut self) {
        // A closed channel means shutdown; `take_wish` then returns false.
        if self.wish.changed().await.is_err() {
            self.wish.mark_changed();
        }
    }

    /// Resolves when the desired state requires another connection. A change
    /// that needs no new connection is applied in passing.
    pub(super) async fn superseded(&mut self) {
        loop {
            self.wait_for_change().await;
            let next = self.wish.borrow_and_update().clone();
            match next {
                Some(next) if next.keeps(&self.view.wanted) => {
                    self.view.wanted = next;
                    self.recall_asking();
                    self.repeat();
                }
                _ => return,
            }
        }
    }

    /// Keeps the server up for one desired state: connect, serve, back off, repeat.
    async fn live(&mut self, spec: &Arc<ServerSpec>, mut handover: Handover) -> Handover {
        let mut failures = 0;
        self.view.restarts = 0;
        self.memory.forget();
        self.recall_asking();
        loop {
            let replacing = std::mem::take(&mut handover.replacing);
            let serving = handover.old.as_ref().map(|old| old.line.clone());
            self.tell(ServerState::Connecting { serving, replacing }, false);
            let attempt = self.attempt(spec).await;
            let old = handover.old.take();
            let (error, lost) = match attempt {
                None => return Handover { replacing, old },
                Some(Ok((live, catalog))) => {
                    let since = Instant::now();
                    self.came_up(&live, catalog);
                    self.retire(old);
                    match serve(self, live).await {
                        ServingEnd::Superseded(live) => return self.hand_over(live).await,
                        ServingEnd::Gone(error, live) => {
                            if since.elapsed() >= FORGIVEN_AFTER {
                                failures = 0;
                            }
                            (error, Some(live))
                        }
                    }
                }
                Some(Err(error)) => {
                    self.retire(old);
                    (error, None)
                }
            };
            failures += 1;
            if !self.pause(spec.transport(), &error, failures, lost).await {
                return Handover::default();
            }
        }
    }

    /// One attempt, or `None` if the desired state changed meanwhile.
    async fn attempt(
        &mut self,
        spec: &Arc<ServerSpec>,
    ) -> Option<Result<(LiveServer, Catalog), UpstreamError>> {
        let stop = CancellationToken::new();
        let mut memory = std::mem::take(&mut self.memory);
        let recipe = ConnectRecipe {
            spec: spec.clone(),
            surroundings: self.shared.surroundings.clone(),
            log: self.view.log.clone(),
            asking: self.asking.asking.clone(),
        };
        let (name, shared) = (self.name.clone(), self.shared.clone());
        let result = {
            let work = bring_up(recipe, &name, &shared, &mut memory, &stop);
            tokio::pin!(work);
            tokio::select! {
                result = &mut work => Some(result),
                () = self.superseded() => {
                    // Ended properly, so that its successor runs alone.
                    stop.cancel();
                    if let Ok((live, _)) = work.await {
                        live.end().await;
                    }
                    None
                }
            }
        };
        self.memory = memory;
        result
    }

    fn came_up(&mut self, live: &LiveServer, catalog: Catalog) {
        for remark in &catalog.remarks {
            self.note(LogStream::Protocol, remark);
        }
        let line = live.line.clone();
        self.offer(catalog, line.connection.peer());
        self.view.process = live.link.process.clone();
        self.tell(ServerState::Connected { line }, true);
        tracing::info!(
            server = %self.name,
            era = ?live.line.connection.peer().era,
            tools = self.view.catalog.tools.len(),
            "server {} is connected",
            self.name
        );
    }

    /// Publishes a failure, ends the lost connection, and waits as long as the
    /// backoff requires. False if the desired state changed.
    async fn pause(
        &mut self,
        kind: TransportKind,
        error: &UpstreamError,
        failures: u32,
        lost: Option<LiveServer>,
    ) -> bool {
        // The error may quote the server.
        let text: Arc<str> = self.view.log.clean(&error.to_string()).into();
        self.view.log.push(LogStream::Portway, &text);
        let counted = match error {
            // The machine lacks a resource: not the fault of the server.
            UpstreamError::Spawn { .. } => failures.min(backoff::RESTARTS),
            _ => failures,
        };
        let wait = backoff::wait(kind, counted, fastrand::f64());
        let line = text.replace('\n', " | ");
        let Some(wait) = wait.filter(|_| !error.permanent()) else {
            tracing::error!(server = %self.name, "server {} failed: {line}", self.name);
            self.tell(ServerState::Failed { error: text }, true);
            end(lost).await;
            self.superseded().await;
            return false;
        };
        tracing::warn!(
            server = %self.name,
            "server {} {}, next try in {} ms: {line}",
            self.name,
            if lost.is_some() { "is gone" } else { "did not start" },
            wait.as_millis()
        );
        let state = ServerState::Waiting {
            error: text,
            lost: lost.is_some(),
            retry_at: SystemTime::now() + wait,
        };
        self.tell(state, true);
        end(lost).await;
        tokio::select! {
            () = tokio::time::sleep(wait) => {
                self.view.restarts = failures;
                true
            }
            () = self.superseded() => false,
        }
    }

    pub(super) fn forgive(&mut self) {
        self.view.restarts = 0;
        self.repeat();
    }

    pub(super) fn note(&self, stream: LogStream, text: &str) {
        self.view.log.push(stream, text);
    }

    pub(super) fn tell(&mut self, state: ServerState, settled: bool) {
        let reason = self.why(&state);
        self.tell_because(state, settled, reason);
    }

    pub(super) fn tell_because(
        &mut self,
        state: ServerState,
        settled: bool,
        reason: Option<String>,
    ) {
        self.view.offer = offer::kept(self.view.offer.as_ref(), &self.view.state, &state);
        if state.connection().is_none() {
            self.view.catalog = Arc::default();
        }
        if !matches!(state, ServerState::Connected { .. }) {
            self.view.process = None;
        }
        self.view.since = SystemTime::now();
        self.view
            .history
            .add(self.view.since, state.status(), reason);
        self.view.state = state;
        self.view.settled = settled;
        self.view.settled_once |= settled;
        self.repeat();
    }

    pub(super) fn tell_catalog(&mut self, catalog: Catalog, peer: &Arc<Peer>) {
        self.offer(catalog, peer);
        self.repeat();
    }

    fn offer(&mut self, catalog: Catalog, peer: &Arc<Peer>) {
        let offer = offer::renewed(self.view.offer.as_ref(), catalog, peer);
        self.view.catalog = offer.catalog.clone();
        self.view.offer = Some(offer);
    }

    pub(super) fn repeat(&mut self) {
        self.view.isolation = self.isolation();
        self.shared.publisher.put(&self.name, self.view.clone());
    }
}

/// A hanging server takes time to end, and must not look connected meanwhile:
/// the caller publishes the new state before this.
async fn end(lost: Option<LiveServer>) {
    if let Some(live) = lost {
        live.end().await;
    }
}
