//! How people ask: extract, call one function, map the outcome.
//!
//! Nothing is served but through [`router`], which puts the [`guard`] around
//! every path, the unknown ones included.

pub mod admin;
pub mod attend;
mod auth;
pub mod catalog;
mod coding;
mod connections;
mod console;
mod counted;
mod door;
mod drain;
pub mod edge;
pub mod error;
mod events;
mod extract;
pub mod files;
pub mod framing;
pub mod guard;
mod guesses;
pub mod hosts;
pub mod json;
pub mod live;
pub mod mcp;
pub mod openapi;
mod outward;
mod principal;
pub mod records;
mod relay;
mod revoked;
pub mod servers;
mod sessions;
mod site;
mod stream;
mod tag;
pub mod tools;
mod users;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::get;
use serde::Serialize;

pub use admin::Admin;
pub use auth::{Access, AdminToken};
pub use console::Console;
pub use edge::{EdgeLimits, serve};
pub use error::{ApiError, Code, FieldProblem};
pub use guard::Guard;
pub use hosts::HostPolicy;
pub use json::Json;
pub use outward::Outward;
pub use principal::Principal;
pub use relay::{Relay, RelayError};
pub use sessions::{ConsoleSessions, SessionLimits};
pub use site::Site;
pub use tag::Tags;
pub use users::Users;

/// How many enabled servers have not settled once since the start.
pub type Unsettled = Arc<dyn Fn() -> usize + Send + Sync>;

/// What is wrong with the store, in words that anybody may read.
pub type Trouble = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What `/healthz` and `/readyz` look at.
#[derive(Clone)]
pub struct Vitals {
    pub unsettled: Unsettled,
    pub trouble: Trouble,
}

/// All is well.
impl Default for Vitals {
    fn default() -> Vitals {
        Vitals {
            unsettled: Arc::new(|| 0),
            trouble: Arc::new(|| None),
        }
    }
}

/// Everything that is served: `api` and the paths of this room, behind the
/// guard.
pub fn router(guard: Arc<Guard>, vitals: Vitals, console: Console, api: Router) -> Router {
    let own = Router::new()
        .route(
            "/healthz",
            get(healthz).with_state((console, vitals.trouble)),
        )
        .route("/readyz", get(readyz).with_state(vitals.unsettled))
        .merge(console::router(guard.clone(), console));
    own.merge(api)
        .fallback(move |method, uri, headers| console::elsewhere(console, method, uri, headers))
        .method_not_allowed_fallback(error::no_such_method)
        // The guard bounds bodies, with an answer of our shape.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(guard, guard::guard))
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    console: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

async fn healthz(State((console, trouble)): State<(Console, Trouble)>) -> axum::Json<Health> {
    let reasons = Vec::from_iter(trouble());
    let status = if reasons.is_empty() { "ok" } else { "degraded" };
    axum::Json(Health {
        status,
        version: env!("CARGO_PKG_VERSION"),
        console: console.word(),
        reasons,
    })
}

#[derive(Serialize)]
struct Ready {
    status: &'static str,
}

async fn readyz(State(unsettled): State<Unsettled>) -> Result<axum::Json<Ready>, ApiError> {
    match unsettled() {
        0 => Ok(axum::Json(Ready { status: "ready" })),
        left => Err(ApiError::unavailable(format!(
            "{left} servers have not settled yet"
        ))),
    }
}
