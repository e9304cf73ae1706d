//! One connection to one server, over stdio, Streamable HTTP or the old
//! HTTP+SSE, in either era.
//!
//! This crate spawns, opens sockets, assigns ids and times out. It does not
//! retry, and knows neither other servers nor the client. A [`ConnectionOwner`]
//! is the owner: when it is ended, the whole process tree is gone before `end`
//! returns. A [`Connection`] is the handle that callers clone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use config::{Containment, EraChoice, Launch, LaunchTarget, Privileges, Redactor};
use wire::Era;
use wire::meta::LogLevel;

mod asking;
mod attribution;
mod call;
mod client;
pub mod containment;
mod endpoint;
mod error;
mod events;
mod gate;
mod handshake;
mod http;
mod leftovers;
mod legacy_sse;
mod lines;
mod outbox;
mod peer;
mod pending;
mod permit;
mod pipe;
mod poster;
pub mod process;
mod procfs;
mod queue;
mod reply;
mod request_state;
pub mod shim;
mod stdio;
mod turn;
mod unread;

pub use asking::QuestionHistory;
pub use call::{CallEvent, InboundMessage, Notification, ServerRequest, UpstreamCall};
pub use error::UpstreamError;
pub use gate::ConnectionHold;
pub use peer::{Peer, modern_request};
pub use permit::Permit;
pub use queue::{EventReceiver, EventSender, event_queue};

pub use client::{BodyError, ClientError, Headers, HttpClient, ResponseBody, SendError};
pub use endpoint::Endpoint;
pub use events::{Events, StreamError};
pub use http::{StreamPosition, ToolHeaders};
pub use lines::{LineReader, OutputLine, printable};
pub use reply::{ExchangeFailure, is_event_stream};

use gate::CallGate;
use http::HttpTransport;
use outbox::Outbox;
use peer::RequestEncoder;
use pending::{PendingRequests, RequestResult};
use pipe::Pipe;

/// The queue limit of a server's messages that belong to no request.
const INBOUND_QUEUE: usize = 256;

/// Bounds of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// The size of one stdio line or one SSE event.
    pub message: usize,
    /// The size of one HTTP response body.
    pub response: usize,
    /// How long a stdio server may be silent after the era probe.
    pub probe: Duration,
    /// From spawn to the end of the handshake.
    pub connect: Duration,
    /// After stdin is closed, before SIGTERM.
    pub eof_grace: Duration,
    /// After SIGTERM, before SIGKILL.
    pub term_grace: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            message: 8 << 20,
            response: 16 << 20,
            probe: Duration::from_millis(2500),
            connect: Duration::from_secs(60),
            eof_grace: Duration::from_secs(3),
            term_grace: Duration::from_secs(3),
        }
    }
}

/// The origin of a line in a server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    Stderr,
    Protocol,
    Portway,
}

/// Takes the log lines of one server as they arrive, and makes them safe to
/// show; must not block.
pub type LogSink = Arc<dyn Fn(LogStream, &str) + Send + Sync>;

/// The settings of a connection, besides the expanded definition.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The command or URL as written in the definition: safe to show.
    pub title: String,
    pub era: EraChoice,
    /// The verdict of an earlier probe of the same definition.
    pub remembered: Option<Era>,
    pub containment: Containment,
    pub privileges: Privileges,
    /// Directories that are hidden from every server.
    pub hidden: Vec<PathBuf>,
    /// The base of relative paths in the definition.
    pub project: PathBuf,
    /// The variables that a child inherits besides its declared ones.
    pub base_env: Arc<Vec<(String, String)>>,
    /// Marks our children, so that a later start can find leftovers.
    pub instance: String,
    /// Our own binary, re-executed to hold the process tree.
    pub shim: PathBuf,
    pub limits: ConnectionLimits,
    pub log: LogSink,
    /// The client capabilities that Portway can serve.
    pub capabilities: Arc<RawValue>,
    /// Redacts known secrets in a server's output.
    pub redactor: Arc<Redactor>,
    /// The question history, shared by all connections to the server.
    pub asking: Arc<QuestionHistory>,
}

/// The transports of a connection.
pub(crate) enum Transport {
    Pipe(Pipe),
    Http(HttpTransport),
}

impl Transport {
    async fn request(&self, spelling: &RequestEncoder, call: UpstreamCall<'_>) -> RequestResult {
        match self {
            Transport::Pipe(pipe) => pipe.request(spelling, call).await,
            Transport::Http(http) => http.request(spelling, call).await,
        }
    }

    fn pending(&self) -> &PendingRequests {
        match self {
            Transport::Pipe(pipe) => pipe.pending(),
            Transport::Http(http) => http.pending(),
        }
    }

    async fn notify(&self, message: Vec<u8>) -> Result<(), UpstreamError> {
        match self {
            Transport::Pipe(pipe) => pipe.send(message.into()).await,
            Transport::Http(http) => http.notify(message.into()).await,
        }
    }
}

/// A handle to a connected server; cheap to clone.
#[derive(Clone)]
pub struct Connection {
    transport: Arc<Transport>,
    peer: Arc<Peer>,
    gate: Arc<CallGate>,
    /// The most verbose log level requested so far, as its number.
    level: Arc<AtomicU8>,
}

/// Above every level: no level was requested yet.
const NO_LEVEL: u8 = u8::MAX;
const LEVEL_LIMIT: Duration = Duration::from_secs(5);
/// How long a closing connection waits for clients to answer questions.
const LAST_QUESTIONS: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);

impl Connection {
    fn new(transport: Arc<Transport>, peer: Peer) -> Connection {
        Connection {
            transport,
            peer: Arc::new(peer),
            gate: Arc::default(),
            level: Arc::new(AtomicU8::new(NO_LEVEL)),
        }
    }

    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether two handles belong to one connection.
    pub fn same(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.transport, &other.transport)
    }

    pub fn peer_arc(&self) -> Arc<Peer> {
        self.peer.clone()
    }

    /// Requests a legacy server to log from `level` on, if it logs less so far.
    /// The level is never lowered again: another client may need it.
    pub async fn raise_log_level(&self, level: LogLevel, permit: Option<&Arc<dyn Permit>>) {
        let wanted = level as u8;
        if wanted >= self.level.load(Ordering::Relaxed) || !self.peer.offers("logging") {
            return;
        }
        let params = format!(r#"{{"level":"{}"}}"#, level.as_str());
        let Ok(params) = RawValue::from_string(params) else {
            return;
        };
        let call = UpstreamCall::new("logging/setLevel", LEVEL_LIMIT).params(Some(&params));
        if self
            .background(UpstreamCall { permit, ..call })
            .await
            .is_ok()
        {
            self.level.fetch_min(wanted, Ordering::Relaxed);
        }
    }

    /// Sends a request and waits for its response. Dropping the future cancels
    /// the request upstream.
    pub async fn request(&self, call: UpstreamCall<'_>) -> RequestResult {
        let _pass = self.gate.enter()?;
        self.transport.request(&self.peer.spelling, call).await
    }

    /// A request of the connection's own owner (lists, health, listening): it
    /// does not count as a call in flight and ignores the gate.
    pub async fn background(&self, call: UpstreamCall<'_>) -> RequestResult {
        self.transport.request(&self.peer.spelling, call).await
    }

    pub async fn notify(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), UpstreamError> {
        self.transport
            .notify(wire::notification(method, params))
            .await
    }

    /// The reason why a listed tool must not be offered: over HTTP, its schema
    /// may require invalid headers. Known once the list has been read.
    pub fn tool_fault(&self, name: &str) -> Option<String> {
        match &*self.transport {
            Transport::Pipe(_) => None,
            Transport::Http(http) => http.tool_fault(name),
        }
    }

    /// Refuses new calls from now on; they fail with
    /// [`UpstreamError::Draining`], unsent.
    pub fn close_gate(&self) {
        self.gate.close();
    }

    pub fn is_closed(&self) -> bool {
        self.gate.is_closed()
    }

    /// Resolves when the connection refuses new calls.
    pub async fn closed(&self) {
        self.gate.closed().await;
    }

    /// While the hold exists, the connection is not idle.
    pub fn hold(&self) -> ConnectionHold {
        self.gate.hold()
    }

    pub fn is_held(&self) -> bool {
        self.gate.is_held()
    }

    /// Resolves when the only calls in flight are those whose clients do not
    /// answer a question.
    pub async fn finished(&self) {
        tokio::select! {
            () = self.gate.empty() => {}
            () = self.only_unanswered() => {}
        }
    }

    async fn only_unanswered(&self) {
        let mut patience = LAST_QUESTIONS;
        while !patience.is_zero() {
            tokio::time::sleep(LOOK).await;
            patience = match self.only_questions() {
                true => patience.saturating_sub(LOOK),
                false => LAST_QUESTIONS,
            };
        }
    }

    pub fn in_flight(&self) -> usize {
        self.gate.in_flight()
    }

    /// Whether every call in flight waits for its client's answer to a
    /// question.
    pub fn only_questions(&self) -> bool {
        // A call that has not been sent yet is in flight and not pending.
        self.transport.pending().questioned() >= self.in_flight()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({} {:?})", self.peer.version, self.peer.era)
    }
}

/// Facts about the process behind a stdio connection.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    pub pid: u32,
    pub containment: containment::ContainmentStep,
    /// Whether Portway's own directories are hidden from the process.
    pub hides: bool,
    pub privileges: Privileges,
    pub tree: Option<process::ProcessTree>,
}

impl ProcessFacts {
    /// The actions that the containment does not prevent, a sentence each.
    pub fn gaps(&self) -> Vec<&'static str> {
        let unhidden = "it can read Portway's data directory, and the keys in it";
        let unhidden = (!self.hides).then_some(unhidden);
        let of_step = containment::gaps(self.containment, self.privileges);
        of_step.into_iter().chain(unhidden).collect()
    }
}

/// The only owner of a connection.
pub struct ConnectionOwner {
    pub inbound: mpsc::Receiver<InboundMessage>,
    pub process: Option<ProcessFacts>,
    transport: Arc<Transport>,
    gone: watch::Receiver<Option<UpstreamError>>,
    stop: CancellationToken,
    /// Returns the number of bytes the server left unread, where known.
    keeper: Option<JoinHandle<Option<usize>>>,
}

impl ConnectionOwner {
    /// Resolves with the reason when the connection has ended by itself.
    pub fn gone(&self) -> impl Future<Output = UpstreamError> + use<> {
        let mut gone = self.gone.clone();
        async move {
            let reason = match gone.wait_for(Option::is_some).await {
                Ok(reason) => reason.clone(),
                Err(_) => None,
            };
            reason.unwrap_or_else(|| UpstreamError::Lost("the connection ended".into()))
        }
    }

    /// Ends the connection and everything it started. Bounded by the grace
    /// periods in its limits.
    pub async fn end(self) {
        self.finish().await;
    }

    async fn finish(mut self) -> Option<usize> {
        // Unhandled requests of the server are refused here, later ones when
        // they arrive: many servers end only after a response.
        self.inbound.close();
        while self.inbound.try_recv().is_ok() {}
        self.stop.cancel();
        match self.keeper.take() {
            Some(keeper) => keeper.await.ok().flatten(),
            None => None,
        }
    }
}

impl Drop for ConnectionOwner {
    fn drop(&mut self) {
        // The owner was dropped: the keeper still ends the tree, in the background.
        self.stop.cancel();
    }
}

/// The capabilities of a client without any feature.
pub fn no_capabilities() -> Arc<RawValue> {
    Arc::from(wire::object::empty().to_owned())
}

/// Connects and does the handshake. If this returns an error, the attempt
/// leaves nothing running; `stop` ends the attempt early.
pub async fn connect(
    launch: &Launch,
    options: &ConnectOptions,
    stop: &CancellationToken,
) -> Result<(ConnectionOwner, Connection), UpstreamError> {
    match &launch.target {
        LaunchTarget::Stdio { .. } => stdio::connect(launch, options, stop).await,
        LaunchTarget::Remote { kind, url, headers } => {
            http::probe::connect(*kind, url, headers, options, stop).await
        }
    }
}
