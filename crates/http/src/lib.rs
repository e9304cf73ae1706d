//! The HTTP API: a handler extracts, calls one function, maps the outcome.
//!
//! Everything is served through [`router`], which puts the `guard` around every
//! path, including the unknown ones.

mod admin;
mod api;
mod attend;
mod auth;
mod authenticator;
mod catalog;
mod coding;
mod connections;
mod console;
mod counted;
mod drain;
mod edge;
mod error;
mod events;
mod extract;
mod files;
pub mod framing;
mod guard;
mod guesses;
mod health;
mod hosts;
mod json;
mod live;
mod mcp;
mod openapi;
mod outgoing;
mod principal;
mod records;
mod relay;
mod request_body;
mod response_head;
mod revoked;
mod servers;
mod sessions;
mod site;
mod stream;
mod tag;
mod tools;
mod users;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;

pub use admin::AdminApi;
pub use api::Api;
pub use auth::{Access, AdminToken};
pub use console::Console;
pub use edge::{EdgeLimits, serve};
pub use error::{ApiError, Code, FieldProblem};
pub use guard::Guard;
pub use health::Vitals;
pub use hosts::HostPolicy;
pub use json::Json;
pub use live::LiveApi;
pub use mcp::McpApi;
pub use principal::Principal;
pub use records::{KeyIssuer, RecordsApi};
pub use relay::Relay;
pub use servers::ServersApi;
pub use sessions::{ConsoleSessions, SessionLimits};
pub use site::Site;
pub use tag::Tags;
pub use tools::ToolsApi;
pub use users::Users;

/// The router of everything: `api` and the paths of this crate, behind the
/// guard.
pub fn router(guard: Arc<Guard>, vitals: Vitals, console: Console, api: Router) -> Router {
    api::health(health::HealthApi { vitals, console })
        .merge(console::router(guard.clone(), console))
        .merge(api)
        .fallback(move |method, uri, headers| console::elsewhere(console, method, uri, headers))
        .method_not_allowed_fallback(error::no_such_method)
        // The guard bounds bodies, with an error of our shape.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(guard, guard::guard))
}
