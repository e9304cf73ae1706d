//! Live data: events of every change, calls, processes, and the history of a
//! server (SPEC G4).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::error::{ApiError, blocking};
use super::events::Feed;
use super::extract::{Path, Query};
use fleet::history::HistoryEntry;
use fleet::registry::{Registry, RegistryError};
use fleet::{Fleet, ServerView};
use gateway::Renames;
use gateway::activity::{Activity, ActivityReport};
use store::StoreChange;

const CALLS: usize = 100;
const MOST_CALLS: usize = 500;

#[derive(Clone)]
pub struct LiveApi {
    registry: Arc<Registry>,
    fleet: Fleet,
    activity: Activity,
    feed: Arc<Feed>,
}

impl LiveApi {
    /// Follows everything until `closing`. Must be called inside the runtime.
    pub fn start(
        registry: Arc<Registry>,
        fleet: Fleet,
        activity: Activity,
        store: broadcast::Receiver<StoreChange>,
        renames: broadcast::Receiver<Arc<Renames>>,
        closing: CancellationToken,
    ) -> LiveApi {
        let feed = Feed::start(
            registry.clone(),
            fleet.clone(),
            activity.subscribe(),
            store,
            renames,
            closing,
        );
        LiveApi {
            registry,
            fleet,
            activity,
            feed,
        }
    }

    fn view(&self, server: &str) -> Result<Option<Arc<ServerView>>, ApiError> {
        let missing = || RegistryError::NotFound(server.to_owned());
        let wanted = self.registry.find(server).ok_or_else(missing)?;
        Ok(self.fleet.snapshot().servers.get(&wanted.name).cloned())
    }
}

pub(super) async fn events(State(live): State<LiveApi>, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id");
    live.feed.stream(last.and_then(|id| id.to_str().ok()))
}

#[derive(Deserialize)]
pub(super) struct ActivityQuery {
    limit: Option<usize>,
}

pub(super) async fn activity(
    State(live): State<LiveApi>,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityReport>, ApiError> {
    let limit = query.limit.unwrap_or(CALLS).min(MOST_CALLS);
    Ok(Json(live.activity.report(limit)))
}

pub(super) async fn process(
    State(live): State<LiveApi>,
    Path(server): Path,
) -> Result<Json<Value>, ApiError> {
    let processes = match live.view(&server)? {
        Some(view) => blocking(move || view.processes()).await?,
        None => Vec::new(),
    };
    Ok(Json(json!({"processes": processes})))
}

pub(super) async fn history(
    State(live): State<LiveApi>,
    Path(server): Path,
) -> Result<Json<Vec<HistoryEntry>>, ApiError> {
    let history = live.view(&server)?.map(|view| view.history.read());
    Ok(Json(history.unwrap_or_default()))
}
