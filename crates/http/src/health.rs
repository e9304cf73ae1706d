//! `/healthz` and `/readyz`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::console::Console;
use super::error::ApiError;

/// The state that `/healthz` and `/readyz` report.
#[derive(Clone)]
pub struct Vitals {
    /// The number of enabled servers that have not settled since the start.
    pub unsettled: Arc<dyn Fn() -> usize + Send + Sync>,
    /// The fault of the store, in words that name no path and no address: the
    /// response is public.
    pub store_fault: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Default for Vitals {
    fn default() -> Vitals {
        Vitals {
            unsettled: Arc::new(|| 0),
            store_fault: Arc::new(|| None),
        }
    }
}

#[derive(Clone)]
pub(super) struct HealthApi {
    pub vitals: Vitals,
    pub console: Console,
}

pub(super) async fn alive(State(health): State<HealthApi>) -> Json<Value> {
    let mut answer = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "console": health.console.word(),
    });
    if let Some(reason) = (health.vitals.store_fault)() {
        answer["status"] = "degraded".into();
        answer["reasons"] = json!([reason]);
    }
    Json(answer)
}

pub(super) async fn ready(State(health): State<HealthApi>) -> Result<Json<Value>, ApiError> {
    match (health.vitals.unsettled)() {
        0 => Ok(Json(json!({"status": "ready"}))),
        left => Err(ApiError::unavailable(format!(
            "{left} servers have not settled yet"
        ))),
    }
}
