//! What goes on: events of every change, calls, processes, and what became
//! of a server (SPEC G4).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::error::ApiError;
use super::events::Feed;
use super::extract::{Path, Query};
use fleet::history::Moment;
use fleet::processes::Process;
use fleet::registry::{Registry, RegistryError};
use fleet::{Fleet, ServerView};
use gateway::Renames;
use gateway::activity::{Activity, ActivityReport};
use store::StoreChange;

const CALLS: usize = 100;
const MOST_CALLS: usize = 500;

#[derive(Clone)]
pub struct Live {
    registry: Arc<Registry>,
    fleet: Fleet,
    activity: Activity,
    feed: Arc<Feed>,
}

impl Live {
    /// Follows everything until `closing`. Must be called inside the runtime.
    pub fn start(
        registry: Arc<Registry>,
        fleet: Fleet,
        activity: Activity,
        store: broadcast::Receiver<StoreChange>,
        renames: broadcast::Receiver<Arc<Renames>>,
        closing: CancellationToken,
    ) -> Live {
        let feed = Feed::start(
            registry.clone(),
            fleet.clone(),
            activity.follow(),
            store,
            renames,
            closing,
        );
        Live {
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

pub fn router(live: Live) -> Router {
    Router::new()
        .route("/api/mcp/events", get(events))
        .route("/api/mcp/activity", get(activity))
        .route("/api/mcp/servers/{server}/process", get(process))
        .route("/api/mcp/servers/{server}/history", get(history))
        .with_state(live)
}

async fn events(State(live): State<Live>, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id");
    live.feed.stream(last.and_then(|id| id.to_str().ok()))
}

#[derive(Deserialize)]
struct ActivityQuery {
    limit: Option<usize>,
}

async fn activity(
    State(live): State<Live>,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityReport>, ApiError> {
    let limit = query.limit.unwrap_or(CALLS).min(MOST_CALLS);
    Ok(Json(live.activity.report(limit)))
}

#[derive(Serialize)]
pub struct Processes {
    processes: Vec<Process>,
}

async fn process(
    State(live): State<Live>,
    Path(server): Path,
) -> Result<Json<Processes>, ApiError> {
    let processes = match live.view(&server)? {
        Some(view) => tokio::task::spawn_blocking(move || view.processes())
            .await
            .map_err(ApiError::internal)?,
        None => Vec::new(),
    };
    Ok(Json(Processes { processes }))
}

async fn history(
    State(live): State<Live>,
    Path(server): Path,
) -> Result<Json<Vec<Moment>>, ApiError> {
    let view = live.view(&server)?;
    Ok(Json(
        view.map(|view| view.history.read()).unwrap_or_default(),
    ))
}
