//! The admin's operations on access: the console's sessions, and a new admin
//! token.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use super::auth::AdminToken;
use super::connections::ClientConnection;
use super::edge::ClientPeer;
use super::error::{ApiError, blocking};
use super::extract::Path;
use super::guard::{Admission, Guard};
use super::principal::Principal;
use super::sessions::ShownSession;
use store::StoreError;

/// The time that streams opened by the old token have to end.
const GRACE: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct AdminApi {
    pub guard: Arc<Guard>,
    pub data_dir: PathBuf,
    /// Set if `PORTWAY_ADMIN_TOKEN` sets the token.
    pub token_is_set: bool,
    /// Held across a rotation, so that only one runs at a time.
    pub rotating: Arc<tokio::sync::Mutex<()>>,
}

impl AdminApi {
    fn token(&self) -> Option<&AdminToken> {
        self.guard.access().token()
    }

    /// Saves the sessions: an ended one must stay ended after a restart.
    async fn save(&self) -> Result<(), ApiError> {
        let guard = self.guard.clone();
        Ok(blocking(move || guard.save_sessions()).await??)
    }
}

pub(super) async fn list_sessions(
    State(admin): State<AdminApi>,
    headers: HeaderMap,
) -> Json<Vec<ShownSession>> {
    let Some(token) = admin.token() else {
        return Json(Vec::new());
    };
    let current = token.session_of(&headers).map(|ticket| ticket.id);
    Json(token.sessions().list(current.as_deref()))
}

pub(super) async fn end_session(
    State(admin): State<AdminApi>,
    Path(id): Path,
) -> Result<StatusCode, ApiError> {
    let ended = admin.token().is_some_and(|token| token.sessions().end(&id));
    if !ended {
        return Err(ApiError::not_found("there is no such session"));
    }
    admin.save().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends all sessions but the one of the request.
pub(super) async fn end_other_sessions(
    State(admin): State<AdminApi>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    if let Some(token) = admin.token() {
        let current = token.session_of(&headers).map(|ticket| ticket.id);
        token
            .sessions()
            .end_where(|id| current.as_deref() != Some(id));
        admin.save().await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Runs in a task of its own: if the client disconnects, the token in the file
/// still takes effect.
pub(super) async fn rotate_token(
    State(admin): State<AdminApi>,
    peer: Option<Extension<ClientPeer>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let connection = peer.map(|Extension(peer)| peer.connection);
    let work = tokio::spawn(async move { admin.rotate(&headers, connection).await });
    work.await.map_err(ApiError::internal)?
}

impl AdminApi {
    async fn rotate(
        &self,
        headers: &HeaderMap,
        connection: Option<Arc<ClientConnection>>,
    ) -> Result<Response, ApiError> {
        let Some(token) = self.token() else {
            return Err(ApiError::conflict(
                "there is no admin token: --no-auth is set",
            ));
        };
        if self.token_is_set {
            return Err(ApiError::conflict(
                "the admin token is set by PORTWAY_ADMIN_TOKEN: change it there and start \
                 Portway again",
            ));
        }
        let _turn = self.rotating.lock().await;
        let directory = self.data_dir.clone();
        let fresh = blocking(move || store::replace_admin_token(&directory)).await??;
        let cookie = token.replace(fresh.clone(), headers);
        self.announce().await;
        self.save().await?;
        tracing::warn!("the admin token has been replaced; the old one is refused");
        end_connections(connection);
        let answer = json!({"token": fresh.expose()});
        let cookie = cookie.map(|cookie| [(header::SET_COOKIE, cookie)]);
        Ok((cookie, Json(answer)).into_response())
    }

    /// Rewrites the file with our address: running `portway connect`s then read
    /// the token again.
    async fn announce(&self) {
        let directory = self.data_dir.clone();
        let told = tokio::task::spawn_blocking(move || match store::known_address(&directory) {
            Some(url) => store::tell_address(&directory, &url),
            None => Ok(()),
        });
        if let Ok(Err(error)) = told.await {
            tracing::warn!("{error}");
        }
    }
}

/// Ends the connections of the old token, but for the one of the request.
fn end_connections(asked: Option<Arc<ClientConnection>>) {
    let Some(asked) = asked else { return };
    let connections = asked.connections().clone();
    connections.finish_admin(asked.id());
    tokio::spawn(async move {
        tokio::time::sleep(GRACE).await;
        connections.cut_finished_admin();
    });
}

impl Guard {
    /// Blocks on the disk.
    pub(super) fn save_sessions(&self) -> Result<(), StoreError> {
        let token = self.access().token();
        token.map_or(Ok(()), |token| token.sessions().save())
    }

    /// The console session of a request that has no other credential.
    pub(super) fn console_session(
        &self,
        principal: Option<&Principal>,
        headers: &HeaderMap,
    ) -> Option<String> {
        let token = self.access().token()?;
        let by_cookie = matches!(principal, Some(Principal::Admin))
            && !headers.contains_key(header::AUTHORIZATION)
            && headers.contains_key(header::COOKIE);
        let session = || token.session_of(headers).map(|ticket| ticket.id);
        by_cookie.then(session)?
    }

    /// Whether a session of the console is valid.
    pub(super) fn has_session(&self, id: &str) -> bool {
        let token = self.access().token();
        token.is_some_and(|token| token.sessions().is_open(id))
    }

    /// The console cookie to send with the response.
    pub(super) fn cookie(&self, passed: &Admission, headers: &HeaderMap) -> Option<HeaderValue> {
        let may = matches!(passed.principal, Some(Principal::Admin));
        let token = self.access().token().filter(|_| may);
        let token = token.filter(|_| headers.contains_key(header::COOKIE));
        token?.renewed_cookie(headers)?.parse().ok()
    }
}
