//! The console's door: the page at `/`, and signing in with the URL printed
//! at start-up.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use http::header;

use super::auth::Access;
use super::error::ApiError;
use super::guard::Guard;

/// Whether this build carries the console, as `/healthz` says it.
pub(super) const BUILD: &str = "missing";

const PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <title>Portway</title>\n<h1>Portway</h1>\n\
    <p>Portway is running. This build has no console; the API is under <code>/api</code>.</p>\n\
    </html>\n";

/// `/?token=…` becomes a cookie, and the token leaves the address bar.
pub(super) async fn home(
    State(guard): State<Arc<Guard>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = query.unwrap_or_default();
    let given = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
    let Some((_, given)) = given else {
        return Ok(Html(PAGE).into_response());
    };
    match guard.access() {
        Access::Open => Ok(Redirect::to("/").into_response()),
        Access::Token(token) if token.matches(&given) => {
            let cookie = [(header::SET_COOKIE, token.session_cookie())];
            Ok((cookie, Redirect::to("/")).into_response())
        }
        Access::Token(_) => Err(ApiError::unauthorized(
            "the token in this link is not the admin token",
        )),
    }
}
