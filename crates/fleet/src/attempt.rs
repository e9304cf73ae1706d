//! One attempt to bring a server up: expand, connect, shake hands, list.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::FleetConfig;
use super::catalog::{self, Catalog};
use super::log::LogRing;
use super::slots::SlotTable;
use super::state::ServerConnection;
use super::supervisor::SharedParts;
use config::{EraChoice, Redactor, ServerSpec, TransportKind};
use upstream::{
    ConnectOptions, Connection, ConnectionLimits, ConnectionOwner, LogSink, QuestionHistory,
    UpstreamError,
};
use wire::Era;

/// After this time a slow server frees its place in the start queue.
const START_SLOT: Duration = Duration::from_secs(2);
/// Expiry of a remembered legacy verdict: the server may have been upgraded.
const LEGACY_VERDICT: Duration = Duration::from_secs(24 * 3600);

/// A server with an open connection.
pub(super) struct LiveServer {
    pub link: ConnectionOwner,
    pub line: ServerConnection,
}

impl LiveServer {
    /// Lets calls in flight finish, and refuses new ones.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.line.connection.close_gate();
        let (_, ()) = tokio::join!(
            tokio::time::timeout(limit, self.line.connection.finished()),
            self.line.desk.close(Some(limit))
        );
    }

    /// Ends the connection and all further connections to the server.
    pub(crate) async fn end(self) {
        self.line.desk.close(None).await;
        self.link.end().await;
    }
}

/// Everything needed to connect to one definition.
#[derive(Clone)]
pub(super) struct ConnectRecipe {
    pub spec: Arc<ServerSpec>,
    pub surroundings: Arc<FleetConfig>,
    pub log: Arc<LogRing>,
    /// As in [`ConnectOptions`]; it outlives each connection.
    pub asking: Arc<QuestionHistory>,
}

impl ConnectRecipe {
    pub(crate) async fn connect(
        &self,
        capabilities: Arc<RawValue>,
        remembered: Option<Era>,
        stop: &CancellationToken,
    ) -> Result<(ConnectionOwner, Connection), UpstreamError> {
        let lookup = |name: &str| self.surroundings.variables.get(name).cloned();
        let launch =
            config::expand(&self.spec, &lookup).map_err(|problems| UpstreamError::Spawn {
                reason: config::problem::in_lines(&problems),
                permanent: true,
            })?;
        let redactor = Arc::new(Redactor::new(launch.secrets()));
        self.log.hide(redactor.clone());
        let ring = self.log.clone();
        let log: LogSink = Arc::new(move |stream, text| ring.push(stream, text));
        let surroundings = &self.surroundings;
        let options = ConnectOptions {
            title: config::view::title(&self.spec),
            era: self.spec.era,
            remembered: remembered.filter(|_| self.spec.era == EraChoice::Auto),
            containment: self.spec.containment,
            privileges: self.spec.privileges,
            hidden: surroundings.hidden.clone(),
            project: surroundings.project.clone(),
            base_env: surroundings.base_env.clone(),
            instance: surroundings.instance.clone(),
            shim: surroundings.shim.clone(),
            limits: ConnectionLimits::clone(&surroundings.limits),
            log,
            capabilities,
            redactor,
            asking: self.asking.clone(),
        };
        upstream::connect(&launch, &options, stop).await
    }

    /// The capabilities that the main connection declares. On a pipe: all,
    /// since one process serves every client; a request no client can answer is
    /// refused. A remote server gets a session for each kind of client.
    fn main_capabilities(&self) -> Arc<RawValue> {
        match self.spec.transport() {
            TransportKind::Stdio => self.surroundings.capabilities.clone(),
            TransportKind::Http | TransportKind::Sse => upstream::no_capabilities(),
        }
    }
}

/// The era that an earlier probe of the same definition found.
#[derive(Default)]
pub(super) struct EraMemory(Option<(Era, Instant)>);

impl EraMemory {
    fn recall(&self) -> Option<Era> {
        let (era, at) = self.0?;
        (era == Era::Modern || at.elapsed() < LEGACY_VERDICT).then_some(era)
    }

    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

/// One attempt. If it returns an error, it leaves nothing running.
pub(super) async fn bring_up(
    recipe: ConnectRecipe,
    name: &Arc<str>,
    shared: &SharedParts,
    memory: &mut EraMemory,
    stop: &CancellationToken,
) -> Result<(LiveServer, Catalog), UpstreamError> {
    let slot = tokio::select! {
        slot = shared.starts.acquire() => slot.ok(),
        () = stop.cancelled() => return Err(UpstreamError::Draining),
    };
    let work = async {
        let capabilities = recipe.main_capabilities();
        let remembered = memory.recall();
        // If this connect fails, the verdict may be outdated: forget it first.
        memory.forget();
        let (link, connection) = recipe.connect(capabilities, remembered, stop).await?;
        *memory = EraMemory(Some((connection.peer().era, Instant::now())));
        let listed = tokio::select! {
            listed = catalog::list(&connection, recipe.spec.timeout) => listed,
            () = stop.cancelled() => Err(UpstreamError::Draining),
        };
        match listed {
            Ok(catalog) => {
                let desk = SlotTable::new(recipe, name.clone(), shared.publisher.clone());
                let line = ServerConnection { connection, desk };
                Ok((LiveServer { link, line }, catalog))
            }
            Err(error) => {
                link.end().await;
                Err(error)
            }
        }
    };
    tokio::pin!(work);
    tokio::select! {
        live = &mut work => return live,
        () = tokio::time::sleep(START_SLOT) => drop(slot),
    }
    work.await
}
