//! The connection to the gateway: finds it again after a restart, waits a while
//! for a gateway that is down, and starts one that runs only for its clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::error::{BridgeError, BridgeResult};
use super::plan::{ConnectPlan, GatewayAddress};
use super::start;
use upstream::{Endpoint, ExchangeFailure, Headers, ResponseBody};

/// How long a message waits for a gateway that is down.
const AWAY: Duration = Duration::from_secs(10);
/// The time that the servers of a newly started gateway get to connect.
const SETTLING: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(2);
/// The limit until a response begins. A gateway sends a heartbeat every few
/// seconds; one behind it may not.
pub(super) const SILENCE: Duration = Duration::from_secs(600);
/// The least time between two starts, for a gateway that cannot start.
const START_AGAIN: Duration = Duration::from_secs(5);

pub(super) struct GatewayLink {
    pub plan: ConnectPlan,
    /// The lock is held only to read or replace the address.
    current: Mutex<Arc<GatewayAddress>>,
    /// Held across the search for a gateway; other requests wait for its
    /// result. Contains the time at which a gateway was last started.
    finding: tokio::sync::Mutex<Option<Instant>>,
}

impl GatewayLink {
    pub(super) fn new(plan: ConnectPlan, target: GatewayAddress) -> GatewayLink {
        GatewayLink {
            plan,
            current: Mutex::new(Arc::new(target)),
            finding: tokio::sync::Mutex::default(),
        }
    }

    fn current(&self) -> Arc<GatewayAddress> {
        self.current.lock().clone()
    }

    pub(super) fn url(&self) -> String {
        self.current().url.clone()
    }

    /// The message for a refused credential.
    pub(super) fn denied(&self) -> String {
        self.plan.denied(&self.current())
    }

    /// Sends one message, unless the client has cancelled it (`unwanted`).
    /// Waits while the gateway is down, and up to `servers` for the servers of
    /// one that has just been started. A message that was sent is never sent
    /// again.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: &Headers,
        body: &Bytes,
        unwanted: &CancellationToken,
        servers: Duration,
    ) -> BridgeResult<Response<ResponseBody>> {
        let deadline = Instant::now() + AWAY;
        let mut away = false;
        let mut denied = false;
        loop {
            if let Some(target) = self.target(away).await {
                let mut ready = target.ready.clone();
                let _ = timeout(servers, ready.wait_for(|ready| *ready)).await;
                if unwanted.is_cancelled() {
                    return Err(BridgeError::Cancelled);
                }
                match once(&target, method.clone(), headers, body).await {
                    Err(BridgeError::Away(_)) => {}
                    // The token may have just been replaced; a refused message
                    // had no effect.
                    Ok(response)
                        if response.status() == StatusCode::UNAUTHORIZED
                            && !denied
                            && !self.plan.fixed =>
                    {
                        denied = true;
                        tokio::time::sleep(PAUSE).await;
                        if self.is_there(&target) {
                            return Ok(response);
                        }
                        continue;
                    }
                    sent => return sent,
                }
            }
            away = true;
            if Instant::now() >= deadline {
                return Err(BridgeError::Away(self.url()));
            }
            self.revive().await;
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = unwanted.cancelled() => return Err(BridgeError::Cancelled),
            }
        }
    }

    /// Sends to the last known gateway, without waiting for another.
    pub(super) async fn send_now(
        &self,
        method: Method,
        headers: &Headers,
        body: &Bytes,
    ) -> BridgeResult<Response<ResponseBody>> {
        let current = self.current();
        if !self.is_there(&current) {
            return Err(BridgeError::Away(current.url.clone()));
        }
        once(&current, method, headers, body).await
    }

    /// The gateway's address; `None` while there is no gateway.
    async fn target(&self, away: bool) -> Option<Arc<GatewayAddress>> {
        let current = self.current();
        if !away && self.is_there(&current) {
            return Some(current);
        }
        let _turn = self.finding.lock().await;
        let current = self.current();
        if !away && self.is_there(&current) {
            return Some(current);
        }
        // Before a gateway publishes its address, the default is not tried.
        let directory = &self.plan.directory;
        let named = store::is_in_use(directory) && store::known_address(directory).is_some();
        if !self.plan.fixed && !named {
            return None;
        }
        let target = self.plan.target().ok()?;
        ask(&target.health).await?;
        let target = Arc::new(target.awaited());
        let mut current = self.current.lock();
        *current = target.clone();
        Some(target)
    }

    /// Whether the user gave the address, or the data directory still names
    /// this gateway. Without a holder, any program may have the address by now,
    /// and requests carry a key.
    fn is_there(&self, target: &GatewayAddress) -> bool {
        let directory = &self.plan.directory;
        self.plan.fixed
            || (target.stamp == store::address_stamp(directory) && store::is_in_use(directory))
    }

    /// Restarts a gateway that only clients start.
    async fn revive(&self) {
        let directory = &self.plan.directory;
        if !self.plan.may_start || store::is_in_use(directory) || !store::serves_clients(directory)
        {
            return;
        }
        let mut started = self.finding.lock().await;
        let recent = started.is_some_and(|at| at.elapsed() < START_AGAIN);
        // Another client may have started one meanwhile.
        if !recent && !store::is_in_use(directory) {
            *started = Some(Instant::now());
            // If it cannot start, the next client gets the reason.
            let _ = start::spawn(&self.plan).await;
        }
    }
}

async fn once(
    target: &GatewayAddress,
    method: Method,
    headers: &Headers,
    body: &Bytes,
) -> BridgeResult<Response<ResponseBody>> {
    let sent = target.endpoint.send(method, headers, body.clone());
    match timeout(SILENCE, sent).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(ExchangeFailure::Unsent(_))) => Err(BridgeError::Away(target.url.clone())),
        Ok(Err(_)) => Err(BridgeError::Broken(target.url.clone())),
        Err(_) => Err(BridgeError::Silent(target.url.clone())),
    }
}

/// Waits until the servers have connected or failed, at most `SETTLING`.
pub(super) async fn settled(health: &Endpoint) {
    let deadline = Instant::now() + SETTLING;
    let Ok(ready) = health.at("readyz") else {
        return;
    };
    while Instant::now() < deadline {
        match ask(&ready).await {
            Some(response) if !response.status().is_server_error() => return,
            Some(_) => tokio::time::sleep(PAUSE / 2).await,
            None => return,
        }
    }
}

/// Requests `/healthz`, or the path of the given endpoint.
pub(super) async fn ask(health: &Endpoint) -> Option<Response<ResponseBody>> {
    let headers = Headers::new();
    let asked = health.send(Method::GET, &headers, Bytes::new());
    timeout(LOOK, asked).await.ok()?.ok()
}
