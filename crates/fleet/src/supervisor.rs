//! The only owner of one server: makes its connection follow the desired state.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::QuestionState;
use super::attempt::{ConnectAttempt, ConnectRecipe, EraMemory, LiveServer};
use super::catalog::Catalog;
use super::handover::Handover;
use super::history::History;
use super::log::LogRing;
use super::offer::{self, Offer};
use super::serving::{ServingEnd, serve};
use super::state::{ServerState, ServerView};
use super::{FleetConfig, Publisher, backoff};
use crate::registry::DesiredServer;
use config::{ServerSpec, TransportKind};
use upstream::{LogStream, Notification, Peer, ProcessFacts, UpstreamError};

/// After this uptime the failures of a server no longer count.
pub(super) const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

pub(super) struct Supervisor {
    pub(super) name: Arc<str>,
    pub(super) wish: watch::Receiver<Option<Arc<DesiredServer>>>,
    publisher: Publisher,
    pub(super) surroundings: Arc<FleetConfig>,
    starts: Arc<Semaphore>,
    /// Portway shuts down: the supervisor waits for nothing any more.
    pub(super) going_down: CancellationToken,
    /// Retired connections of the whole fleet that finish their calls.
    pub(super) retired: TaskTracker,
    log: Arc<LogRing>,
    history: Arc<History>,
    memory: EraMemory,
    pub(super) asking: QuestionState,
    pub(super) restarts: u32,
    /// The desired state in force.
    pub(super) wanted: Arc<DesiredServer>,
    pub(super) told: PublishedState,
}

/// The last published state, so that a new desired state can repeat it.
pub(super) struct PublishedState {
    pub(super) state: ServerState,
    since: SystemTime,
    settled: bool,
    settled_once: bool,
    catalog: Arc<Catalog>,
    offer: Option<Arc<Offer>>,
    process: Option<ProcessFacts>,
}

impl Supervisor {
    pub(crate) fn new(
        name: Arc<str>,
        mut wish: watch::Receiver<Option<Arc<DesiredServer>>>,
        publisher: Publisher,
        surroundings: Arc<FleetConfig>,
        starts: Arc<Semaphore>,
        going_down: CancellationToken,
        retired: TaskTracker,
    ) -> Supervisor {
        let wanted = wish.borrow_and_update().clone();
        Supervisor {
            wanted: wanted.expect("a supervisor starts with a wish"),
            name,
            wish,
            publisher,
            surroundings,
            starts,
            going_down,
            retired,
            log: Arc::default(),
            history: Arc::default(),
            memory: EraMemory::default(),
            asking: QuestionState::default(),
            restarts: 0,
            told: PublishedState {
                state: ServerState::Stopped,
                since: SystemTime::now(),
                settled: false,
                settled_once: false,
                catalog: Arc::default(),
                offer: None,
                process: None,
            },
        }
    }

    pub(crate) async fn run(mut self) {
        let mut handover = Handover::default();
        while self.take_wish() {
            match self.wanted.spec.clone() {
                Err(problems) => {
                    let error = config::problem::in_lines(&problems).into();
                    self.tell(ServerState::Failed { error }, true);
                    self.retire(handover.old.take());
                    self.wait_for_change().await;
                }
                Ok(_) if !self.wanted.run => {
                    self.tell(ServerState::Stopped, true);
                    self.retire(handover.old.take());
                    self.wait_for_change().await;
                }
                Ok(spec) => handover = self.live(&spec, handover).await,
            }
        }
        self.retire(handover.old);
        self.publisher.remove(&self.name);
    }

    /// Puts the newest desired state in force; false if there is none.
    fn take_wish(&mut self) -> bool {
        let next = self.wish.borrow_and_update().clone();
        match next {
            Some(wanted) => {
                self.wanted = wanted;
                true
            }
            None => false,
        }
    }

    /// The reason that the history shows beside a state.
    fn why(&self, state: &ServerState) -> Option<String> {
        match state {
            ServerState::Connecting { .. } if self.restarts > 0 => {
                Some(format!("try {} after a failure", self.restarts + 1))
            }
            ServerState::Connecting { .. } => Some(self.wanted.why()),
            ServerState::Stopped => Some(self.wanted.why_stopped()),
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
                Some(next) if next.keeps(&self.wanted) => {
                    self.wanted = next;
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
        self.restarts = 0;
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
            surroundings: self.surroundings.clone(),
            log: self.log.clone(),
            asking: self.asking.asking.clone(),
        };
        let (name, publisher, starts) = (
            self.name.clone(),
            self.publisher.clone(),
            self.starts.clone(),
        );
        let attempt = ConnectAttempt {
            recipe,
            name: &name,
            publisher: &publisher,
            starts: &starts,
            memory: &mut memory,
        };
        let result = {
            let work = attempt.run(&stop);
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
        self.told.process = live.link.process.clone();
        self.tell(ServerState::Connected { line }, true);
        tracing::info!(
            server = %self.name,
            era = ?live.line.connection.peer().era,
            tools = self.told.catalog.tools.len(),
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
        let text: Arc<str> = self.log.clean(&error.to_string()).into();
        self.log.push(LogStream::Portway, &text);
        let counted = match error {
            // The machine lacks a resource: not the fault of the server.
            UpstreamError::Spawn { .. } => failures.min(backoff::RESTARTS),
            _ => failures,
        };
        let wait = match error.permanent() {
            true => None,
            false => backoff::wait(kind, counted, fastrand::f64()),
        };
        let Some(wait) = wait else {
            let line = text.replace('\n', " | ");
            tracing::error!(server = %self.name, "server {} failed: {line}", self.name);
            self.tell(ServerState::Failed { error: text }, true);
            end(lost).await;
            self.superseded().await;
            return false;
        };
        let line = text.replace('\n', " | ");
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
                self.restarts = failures;
                true
            }
            () = self.superseded() => false,
        }
    }

    pub(super) fn forgive(&mut self) {
        self.restarts = 0;
        self.repeat();
    }

    pub(super) fn timeout(&self) -> Duration {
        self.wanted.timeout()
    }

    /// Notifies the subscribers of a resource or a list of this server.
    pub(super) fn updated(&self, note: Notification) {
        self.publisher.updated(&self.name, None, note);
    }

    pub(super) fn note(&self, stream: LogStream, text: &str) {
        self.log.push(stream, text);
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
        self.told.offer = offer::kept(self.told.offer.as_ref(), &self.told.state, &state);
        if state.connection().is_none() {
            self.told.catalog = Arc::default();
        }
        if !matches!(state, ServerState::Connected { .. }) {
            self.told.process = None;
        }
        self.told.since = SystemTime::now();
        self.history.add(self.told.since, state.status(), reason);
        self.told.state = state;
        self.told.settled = settled;
        self.told.settled_once |= settled;
        self.repeat();
    }

    pub(super) fn tell_catalog(&mut self, catalog: Catalog, peer: &Arc<Peer>) {
        self.offer(catalog, peer);
        self.repeat();
    }

    fn offer(&mut self, catalog: Catalog, peer: &Arc<Peer>) {
        let offer = offer::renewed(self.told.offer.as_ref(), catalog, peer);
        self.told.catalog = offer.catalog.clone();
        self.told.offer = Some(offer);
    }

    pub(super) fn repeat(&self) {
        let view = ServerView {
            wanted: self.wanted.clone(),
            state: self.told.state.clone(),
            since: self.told.since,
            settled: self.told.settled,
            settled_once: self.told.settled_once,
            catalog: self.told.catalog.clone(),
            offer: self.told.offer.clone(),
            process: self.told.process.clone(),
            isolation: self.isolation(),
            restarts: self.restarts,
            log: self.log.clone(),
            history: self.history.clone(),
        };
        self.publisher.put(&self.name, view);
    }
}

/// A hanging server takes time to end, and must not look connected meanwhile:
/// the caller publishes the new state before this.
async fn end(lost: Option<LiveServer>) {
    if let Some(live) = lost {
        live.end().await;
    }
}
