//! The listener: an accept loop over HTTP/1.1 with a limit on everything a
//! client can hold: time, connections, bytes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::attend::attend;
use super::connections::{Caps, ClientConnection, ClientConnections, CloseOrder, Spares};
use super::error::{ApiError, Code};
use super::framing::{FramingError, HeadLimits};
use super::revoked;
use super::site::Site;
use super::stream::ClientStream;
use config::settings::Limits;

const BACKOFF_FIRST: Duration = Duration::from_millis(5);
const BACKOFF_LAST: Duration = Duration::from_millis(500);
/// The interval at which the log reports that there are no descriptors.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// The least number of descriptors for anything but client connections.
const OTHER_DESCRIPTORS: usize = 64;

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\ncontent-length: 76\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    {\"error\":{\"code\":\"UNAVAILABLE\",\"message\":\"too many connections; try again\"}}";

#[derive(Clone, Debug)]
pub struct EdgeLimits {
    /// The time limit of a connection that sends nothing at all.
    pub first_byte: Duration,
    /// The time limit of a head, from its first byte to its last.
    pub header: Duration,
    /// The time limit of a body, from its head to its last byte.
    pub body: Duration,
    /// The least rate of a body, in bytes a second, once its grace is over.
    pub body_rate: u64,
    pub body_grace: Duration,
    /// The time limit of a response that the client does not read.
    pub write_stall: Duration,
    /// The least rate of reading, in bytes a second, beyond one such pause.
    pub write_rate: u64,
    /// The time limit of a connection between two requests.
    pub idle: Duration,
    /// The idle time after which a connection frees its memory for requests.
    /// Allocating it again costs a little, so a client that calls every few
    /// seconds keeps it.
    pub rest: Duration,
    /// The time that requests in flight have at shutdown.
    pub drain: Duration,
    /// The time before it in which connections end only with a response or after
    /// a pause: a request may be on its way on one that was just used.
    pub linger: Duration,
    pub connections: usize,
    /// From one address; loopback is exempt, since a proxy in front of us looks
    /// like one client.
    pub connections_per_ip: usize,
    /// Beside `connections`, for the admin and for `/healthz`.
    pub reserve: usize,
    pub head: HeadLimits,
}

impl Default for EdgeLimits {
    fn default() -> EdgeLimits {
        EdgeLimits {
            first_byte: Duration::from_secs(5),
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            body_rate: 1024,
            body_grace: Duration::from_secs(10),
            write_stall: Duration::from_secs(30),
            write_rate: 16 * 1024,
            idle: Duration::from_secs(120),
            rest: Duration::from_secs(5),
            drain: Duration::from_secs(10),
            linger: Duration::ZERO,
            connections: 10_000,
            connections_per_ip: 1_000,
            reserve: 32,
            head: HeadLimits::default(),
        }
    }
}

impl From<&Limits> for EdgeLimits {
    fn from(limits: &Limits) -> EdgeLimits {
        EdgeLimits {
            first_byte: limits.first_byte,
            header: limits.header,
            body: limits.body,
            write_stall: limits.write,
            idle: limits.idle,
            drain: limits.drain,
            connections: limits.max_connections,
            connections_per_ip: limits.max_connections_per_ip,
            ..EdgeLimits::default()
        }
    }
}

impl EdgeLimits {
    /// No more connections than a process with this many descriptors can have
    /// beside everything else: servers, their own connections, files.
    #[must_use]
    pub fn within(mut self, descriptors: usize) -> EdgeLimits {
        let others = (descriptors / 4).max(OTHER_DESCRIPTORS) + self.reserve;
        let most = descriptors.saturating_sub(others).max(1);
        if self.connections > most {
            info!(
                "{descriptors} files may be open, so that at most {most} connections are taken \
                 (PORTWAY_MAX_CONNECTIONS allows {})",
                self.connections
            );
            self.connections = most;
        }
        self
    }

    fn caps(&self) -> Caps {
        Caps {
            total: self.connections,
            per_source: self.connections_per_ip,
            reserve: self.reserve,
            share: self.connections.div_ceil(2),
        }
    }
}

/// The connection of a request, and its two addresses.
#[derive(Clone)]
pub(crate) struct ClientPeer {
    pub remote: SocketAddr,
    pub local: SocketAddr,
    pub(super) connection: Arc<ClientConnection>,
}

impl ClientPeer {
    pub(super) fn local_ip(&self) -> IpAddr {
        self.local.ip().to_canonical()
    }
}

/// Serves `site` until `shutdown`; then accepts no more connections, lets
/// requests in flight finish within `limits.drain`, and cuts the rest.
pub async fn serve(
    listener: TcpListener,
    site: impl Into<Site>,
    limits: EdgeLimits,
    shutdown: CancellationToken,
) {
    let edge = Edge {
        site: Arc::new(site.into()),
        connections: ClientConnections::new(limits.caps()),
        limits: Arc::new(limits),
        shutdown,
        tasks: TaskTracker::new(),
    };
    let revoked = edge.site.guard().and_then(|guard| {
        let (guard, keys) = (guard.clone(), guard.keys()?);
        let connections = edge.connections.clone();
        let ending = revoked::end_connections(guard, keys, connections);
        Some(tokio::spawn(ending))
    });
    edge.accept_all(&listener).await;
    drop(listener);
    edge.tasks.close();
    if !edge.limits.linger.is_zero() {
        edge.connections.retire_all();
        let _ = tokio::time::timeout(edge.limits.linger, edge.tasks.wait()).await;
    }
    edge.connections.order_all(CloseOrder::Finish);
    if tokio::time::timeout(edge.limits.drain, edge.tasks.wait())
        .await
        .is_err()
    {
        info!(
            connections = edge.tasks.len(),
            "cutting connections that did not finish in time"
        );
        edge.connections.order_all(CloseOrder::Cut);
        edge.tasks.wait().await;
    }
    if let Some(revoked) = revoked {
        revoked.abort();
    }
}

struct Edge {
    site: Arc<Site>,
    limits: Arc<EdgeLimits>,
    connections: Arc<ClientConnections>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Edge {
    async fn accept_all(&self, listener: &TcpListener) {
        let mut backoff = BACKOFF_FIRST;
        let mut spares = Spares::keep();
        let mut said: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, remote)) => {
                    backoff = BACKOFF_FIRST;
                    spares.refill();
                    if self.admit(socket, remote, spares.are_needed()) {
                        // Lets the tasks of the closed connections run.
                        tokio::task::yield_now().await;
                    }
                }
                Err(error) if belongs_to_one_connection(&error) => {}
                Err(error) => {
                    if said.is_none_or(|at| at.elapsed() > SAY_AGAIN) {
                        said = Some(Instant::now());
                        warn!(%error, "cannot take connections, trying again until it works");
                    }
                    if lacks_descriptors(&error) && (self.connections.relieve() || spares.give_up())
                    {
                        backoff = BACKOFF_FIRST;
                    }
                    tokio::select! {
                        () = self.shutdown.cancelled() => return,
                        () = tokio::time::sleep(backoff) => {}
                    }
                    backoff = (backoff * 2).min(BACKOFF_LAST);
                }
            }
        }
    }

    /// Returns whether room is short.
    fn admit(&self, socket: TcpStream, remote: SocketAddr, scarce: bool) -> bool {
        let Some(slot) = self.connections.take(remote.ip(), scarce) else {
            debug!(%remote, "connection refused: too many are open");
            // Best effort: the client may learn why it is refused.
            let _ = socket.try_write(FULL);
            return true;
        };
        let short = slot.short;
        // Without it an SSE response waits for the client's delayed ACK.
        let ready = socket.set_nodelay(true).and_then(|()| socket.local_addr());
        match ready {
            Ok(local) => {
                let peer = ClientPeer {
                    remote,
                    local,
                    connection: slot.connection.clone(),
                };
                let stream = ClientStream::new(socket, self.limits.clone());
                self.tasks
                    .spawn(attend(self.site.clone(), peer, stream, slot));
            }
            Err(error) => debug!(%remote, %error, "connection lost before its first byte"),
        }
        short
    }
}

fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn belongs_to_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

impl From<FramingError> for ApiError {
    fn from(fault: FramingError) -> ApiError {
        let code = match fault {
            FramingError::UriTooLong => Code::UriTooLong,
            FramingError::HeadTooLarge => Code::HeadersTooLarge,
            FramingError::HeadTimeout => Code::RequestTimeout,
            _ => Code::BadRequest,
        };
        ApiError::new(code, fault.to_string())
    }
}
