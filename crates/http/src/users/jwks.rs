//! A project's keys, fetched when they are needed and kept for a while. A
//! client that invents key ids cannot make us fetch more often than
//! allowed, and an unreachable project does not invalidate the keys we have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use parking_lot::RwLock;
use tracing::{debug, warn};
use upstream::{ClientError, HttpClient};
use url::Url;

use super::keys::{self, KeyType, PublicKey, PublishedKey};
use super::token::TokenError;

/// From the request to the last byte of the response.
const FETCH: Duration = Duration::from_secs(5);
const LARGEST: usize = 256 * 1024;
/// The pause between two attempts, once there are keys.
const AGAIN: Duration = Duration::from_secs(30);
/// The pause before there are any.
const FIRST: Duration = Duration::from_secs(2);
/// Keys of this age are fetched again: they may have been withdrawn.
const AGE: Duration = Duration::from_secs(600);

pub(super) struct Jwks {
    url: String,
    client: HttpClient,
    /// `None` until they have been fetched once.
    known: RwLock<Option<Arc<KnownKeys>>>,
    /// When the last attempt began. The lock is held across an attempt.
    tried: tokio::sync::Mutex<Option<Instant>>,
}

struct KnownKeys {
    keys: Vec<PublishedKey>,
    since: Instant,
}

impl Jwks {
    pub(super) fn new(base: &Url, url: String) -> Result<Arc<Jwks>, ClientError> {
        Ok(Arc::new(Jwks {
            client: HttpClient::new(base)?,
            url,
            known: RwLock::default(),
            tried: tokio::sync::Mutex::default(),
        }))
    }

    pub(super) async fn find(
        self: &Arc<Jwks>,
        id: &str,
        kind: KeyType,
    ) -> Result<PublicKey, TokenError> {
        let known = self.known();
        if let Some(key) = known.as_ref().and_then(|known| known.find(id, kind)) {
            if known.is_some_and(|known| known.since.elapsed() > AGE) {
                drop(self.refresh());
            }
            return Ok(key);
        }
        // A task of its own: other requests also wait for it, even if this
        // client disconnects.
        if self.refresh().await.is_err() {
            return Err(TokenError::NoKeys);
        }
        let known = self.known().ok_or(TokenError::NoKeys)?;
        known.find(id, kind).ok_or(TokenError::Key)
    }

    fn known(&self) -> Option<Arc<KnownKeys>> {
        self.known.read().clone()
    }

    fn refresh(self: &Arc<Jwks>) -> tokio::task::JoinHandle<()> {
        let jwks = self.clone();
        tokio::spawn(async move { jwks.try_again().await })
    }

    async fn try_again(&self) {
        let mut tried = self.tried.lock().await;
        let pause = self.known().map_or(FIRST, |_| AGAIN);
        if tried.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        *tried = Some(Instant::now());
        let fetched = tokio::time::timeout(FETCH, self.fetch()).await;
        match fetched.unwrap_or_else(|_| Err("no answer in time".into())) {
            Ok(keys) => {
                debug!(keys = keys.len(), "fetched the keys of the project's users");
                let since = Instant::now();
                *self.known.write() = Some(Arc::new(KnownKeys { keys, since }));
            }
            Err(error) => warn!("cannot fetch the keys of SUPABASE_URL: {error}"),
        }
    }

    async fn fetch(&self) -> Result<Vec<PublishedKey>, axum::BoxError> {
        let request = Request::get(&self.url).header(header::ACCEPT, "application/json");
        let response = self.client.request(request.body(Bytes::new())?).await?;
        let status = response.status();
        if status != http::StatusCode::OK {
            return Err(format!("status {status}").into());
        }
        Ok(keys::read(&response.into_body().collect(LARGEST).await?)?)
    }
}

impl KnownKeys {
    fn find(&self, id: &str, kind: KeyType) -> Option<PublicKey> {
        let fits = |one: &&PublishedKey| one.id == id && one.key.kind() == kind;
        self.keys.iter().find(fits).map(|one| one.key.clone())
    }
}
