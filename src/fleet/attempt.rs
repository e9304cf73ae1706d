//! One attempt to bring a server up: expand, connect, shake hands, list.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Surroundings;
use super::catalog::{self, Catalog};
use super::log::LogRing;
use crate::config::{self, EraChoice, Redactor, ServerSpec};
use crate::upstream::{self, Connection, Limits, Link, LogSink, Options, UpstreamError};
use crate::wire::Era;

/// A slow server gives its place in the start queue to the next.
const START_SLOT: Duration = Duration::from_secs(2);
/// A remembered legacy verdict; a server upgraded meanwhile is found out.
const LEGACY_VERDICT: Duration = Duration::from_secs(24 * 3600);

/// A server that is up.
pub(super) struct Live {
    pub link: Link,
    pub connection: Connection,
}

/// What an earlier probe of the same definition found.
#[derive(Default)]
pub(super) struct EraMemory(Option<(Era, Instant)>);

impl EraMemory {
    fn recall(&self) -> Option<Era> {
        let (era, at) = self.0?;
        (era == Era::Modern || at.elapsed() < LEGACY_VERDICT).then_some(era)
    }

    pub fn forget(&mut self) {
        self.0 = None;
    }
}

pub(super) struct Attempt<'a> {
    pub spec: &'a ServerSpec,
    pub surroundings: &'a Surroundings,
    pub log: &'a Arc<LogRing>,
    pub starts: &'a Semaphore,
    pub memory: &'a mut EraMemory,
}

impl Attempt<'_> {
    /// When this returns an error, nothing of the attempt is left.
    pub async fn run(self, stop: &CancellationToken) -> Result<(Live, Catalog), UpstreamError> {
        let slot = tokio::select! {
            slot = self.starts.acquire() => slot.ok(),
            () = stop.cancelled() => return Err(UpstreamError::Draining),
        };
        let work = self.bring_up(stop);
        tokio::pin!(work);
        tokio::select! {
            live = &mut work => return live,
            () = tokio::time::sleep(START_SLOT) => drop(slot),
        }
        work.await
    }

    async fn bring_up(self, stop: &CancellationToken) -> Result<(Live, Catalog), UpstreamError> {
        let lookup = |name: &str| self.surroundings.variables.get(name).cloned();
        let launch =
            config::expand(self.spec, &lookup).map_err(|problems| UpstreamError::Spawn {
                reason: config::problem::in_lines(&problems),
                permanent: true,
            })?;
        let redactor = Arc::new(Redactor::new(launch.secrets()));
        let options = self.options(redactor);
        let (link, connection) = upstream::connect(&launch, &options, stop).await?;
        *self.memory = EraMemory(Some((connection.peer().era, Instant::now())));
        let listed = tokio::select! {
            listed = catalog::list(&connection, self.spec.timeout) => listed,
            () = stop.cancelled() => Err(UpstreamError::Draining),
        };
        match listed {
            Ok(catalog) => Ok((Live { link, connection }, catalog)),
            Err(error) => {
                link.end().await;
                Err(error)
            }
        }
    }

    fn options(&self, redactor: Arc<Redactor>) -> Options {
        let ring = self.log.clone();
        let log: LogSink = Arc::new(move |stream, text| ring.push(stream, text));
        Options {
            title: config::view::title(self.spec),
            era: self.spec.era,
            remembered: match self.spec.era {
                EraChoice::Auto => self.memory.recall(),
                _ => None,
            },
            containment: self.spec.containment,
            project: self.surroundings.project.clone(),
            base_env: self.surroundings.base_env.clone(),
            instance: self.surroundings.instance.clone(),
            shim: self.surroundings.shim.clone(),
            limits: Limits::clone(&self.surroundings.limits),
            log,
            capabilities: self.surroundings.capabilities.clone(),
            redactor,
        }
    }
}
