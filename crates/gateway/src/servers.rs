//! Management of servers, for the REST API and Portway's own tools alike: an edit
//! of the registry and, where the answer is about its effect, a wait until the
//! snapshot shows it. An edit that has started is finished, even if its client
//! disconnects.

use std::sync::Arc;
use std::time::Duration;

use super::record::{ServerDetails, record};
use super::run_to_completion;
use config::body::{ServerChange, parse_body};
use config::{Problem, ServerSpec};
use fleet::catalog::Catalog;
use fleet::log::LogLine;
use fleet::registry::{DesiredServer, EditBasis, Registry, RegistryError, UpdateError};
use fleet::{Fleet, ServerView, Status};

/// How long an answer waits for a start; then it shows the state so far.
const START_WAIT: Duration = Duration::from_secs(30);
/// The supervisor takes up a change at once; this is only a bound.
const TAKE_UP_WAIT: Duration = Duration::from_secs(2);
const LOG_LINES: usize = 200;

/// Cheap to clone.
#[derive(Clone)]
pub struct ServerManager {
    pub registry: Arc<Registry>,
    pub fleet: Fleet,
}

/// A server and its details at the time of the answer.
pub struct ManagedServer {
    pub wanted: Arc<DesiredServer>,
    pub record: ServerDetails,
}

impl ServerManager {
    pub fn list(&self) -> Vec<ServerDetails> {
        let snapshot = self.fleet.snapshot();
        let desired = self.registry.desired();
        let records = desired
            .values()
            .map(|wanted| record(wanted, snapshot.servers.get(&wanted.name)));
        records.collect()
    }

    /// By name or id.
    pub fn find(&self, server: &str) -> Result<Arc<DesiredServer>, RegistryError> {
        self.registry.found(server)
    }

    pub fn show(&self, server: &str) -> Result<ManagedServer, RegistryError> {
        let wanted = self.find(server)?;
        let record = record(&wanted, self.fleet.snapshot().servers.get(&wanted.name));
        Ok(ManagedServer { wanted, record })
    }

    /// Registers the server that a request's body describes.
    pub async fn create(&self, body: &[u8]) -> Result<ManagedServer, UpdateError> {
        let body = parse_body(body).map_err(UpdateError::Problems)?;
        let auto_start = body.auto_start.unwrap_or(true);
        let servers = self.clone();
        run_to_completion(async move {
            let created = servers.registry.create(body.name, body.spec, auto_start);
            Ok(servers.taken_up(created.await?).await)
        })
        .await
    }

    pub async fn update(
        &self,
        server: &str,
        basis: EditBasis,
        read: impl Fn(&ServerSpec) -> Result<ServerChange, Vec<Problem>> + Send + Sync + 'static,
    ) -> Result<ManagedServer, UpdateError> {
        let (servers, server) = (self.clone(), server.to_owned());
        run_to_completion(async move {
            let wanted = servers.registry.update(&server, basis, read).await?;
            Ok(servers.taken_up(wanted).await)
        })
        .await
    }

    /// Stops it first, if it runs.
    pub async fn remove(&self, server: &str) -> Result<Arc<DesiredServer>, RegistryError> {
        let (servers, server) = (self.clone(), server.to_owned());
        run_to_completion(async move {
            let removed = servers.registry.remove(&server).await?;
            if servers.registry.find(&removed.name).is_none() {
                servers.fleet.removed(&removed.name, START_WAIT).await;
            }
            Ok(removed)
        })
        .await
    }

    pub async fn start(&self, server: &str) -> Result<ServerDetails, RegistryError> {
        let wanted = self.find(server)?;
        let snapshot = self.fleet.snapshot();
        let view = snapshot.servers.get(&wanted.name);
        let status = view.map(|view| view.state.status());
        // A server that should run but does not is tried again at once.
        let again = wanted.run && matches!(status, Some(Status::Error | Status::Disconnected));
        let wanted = if again {
            self.registry.restart(&wanted.name)?
        } else {
            self.registry.set_run(&wanted.name, true)?
        };
        Ok(self.acted(&wanted).await)
    }

    pub async fn stop(&self, server: &str) -> Result<ServerDetails, RegistryError> {
        let wanted = self.registry.set_run(server, false)?;
        Ok(self.acted(&wanted).await)
    }

    pub async fn restart(&self, server: &str) -> Result<ServerDetails, RegistryError> {
        let wanted = self.registry.restart(server)?;
        Ok(self.acted(&wanted).await)
    }

    pub fn catalog(&self, wanted: &DesiredServer) -> Arc<Catalog> {
        let snapshot = self.fleet.snapshot();
        let view = snapshot.servers.get(&wanted.name);
        view.map_or_else(Arc::default, |view| view.catalog.clone())
    }

    /// The last `limit` lines of its log, from a line number on.
    pub fn logs(
        &self,
        server: &str,
        from: Option<u64>,
        limit: Option<usize>,
    ) -> Result<Vec<LogLine>, RegistryError> {
        let wanted = self.find(server)?;
        let snapshot = self.fleet.snapshot();
        let lines = snapshot.servers.get(&wanted.name).map(|view| {
            let limit = limit.unwrap_or(LOG_LINES);
            view.log.read(from.unwrap_or(0), limit)
        });
        Ok(lines.unwrap_or_default())
    }

    /// The details once the supervisor has seen the change.
    async fn taken_up(&self, wanted: Arc<DesiredServer>) -> ManagedServer {
        let record = self.details_once(&wanted, |_| true, TAKE_UP_WAIT).await;
        ManagedServer { wanted, record }
    }

    /// The details once the change has settled, with a warning if the store has
    /// not recorded it.
    async fn acted(&self, wanted: &DesiredServer) -> ServerDetails {
        let settled = self.details_once(wanted, |view| view.settled, START_WAIT);
        let (mut record, recorded) = tokio::join!(settled, self.registry.recorded());
        if let Err(reason) = recorded {
            record.warn(format!(
                "this is in force but not recorded yet: {reason}; it is recorded as soon as the \
                 store is back"
            ));
        }
        record
    }

    /// The details once the snapshot shows the change and `fits`, or after `limit`.
    async fn details_once(
        &self,
        wanted: &DesiredServer,
        fits: impl Fn(&ServerView) -> bool,
        limit: Duration,
    ) -> ServerDetails {
        let seen = |view: &ServerView| view.wanted.generation >= wanted.generation && fits(view);
        let view = self.fleet.wait(&wanted.name, seen, limit).await;
        record(wanted, view.as_ref())
    }
}
