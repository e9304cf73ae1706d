//! Streamable HTTP, in both eras: every message is a POST, every response the
//! body of its own HTTP response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderValue;
use http::{HeaderName, Method};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::client::{Headers, KnownHeader};
use super::endpoint::Endpoint;
use super::peer::{Peer, RequestEncoder};
use super::pending::{PendingRequests, RequestResult};
use super::permit::{OutgoingMessage, Permit};
use super::pipe::{CancelOnDrop, MessageReceiver, Pipe};
use super::reply::{ExchangeFailure, HttpReply};
use super::{
    ConnectOptions, Connection, ConnectionLimits, ConnectionOwner, INBOUND_QUEUE, InboundMessage,
    LogStream, Transport, UpstreamCall, UpstreamError, poster,
};
use wire::{Era, Payload};

mod exchange;
mod legacy;
mod listen;
mod modern;
pub(super) mod probe;
mod stream;
#[cfg(test)]
mod tests;
mod tool_headers;

use exchange::HttpExchange;
use legacy::HttpSession;
use modern::OutgoingRequest;
pub use stream::StreamPosition;
pub use tool_headers::ToolHeaders;

/// The queue limit of replies and cancellations to the server.
const OUTBOX_QUEUE: usize = 256;
/// The limit for one of them.
const POST_LIMIT: Duration = Duration::from_secs(10);

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

#[derive(Clone)]
pub(crate) struct HttpTransport(Arc<HttpShared>);

type ExchangeResult = Result<Payload, ExchangeFailure>;

/// The shared state of one connection.
struct HttpShared {
    endpoint: Endpoint,
    limits: ConnectionLimits,
    capabilities: Arc<RawValue>,
    /// Takes messages that belong to no request, and knows the pending ones.
    receiver: MessageReceiver,
    /// Legacy only: `None` before the handshake, and always with a modern server.
    session: watch::Sender<Option<Arc<HttpSession>>>,
    /// Held during the handshake of a new session; other requests wait for it.
    renewing: tokio::sync::Mutex<()>,
    tools: ToolHeaders,
    /// Whether the server's own stream was requested once, with any outcome.
    listened: watch::Sender<bool>,
    gone: watch::Sender<Option<UpstreamError>>,
}

/// The channel ends for the owner of a connection.
struct TransportEnds {
    queue: mpsc::Receiver<OutgoingMessage>,
    inbound: mpsc::Receiver<InboundMessage>,
    gone: watch::Receiver<Option<UpstreamError>>,
}

impl HttpTransport {
    fn new(endpoint: Endpoint, options: &ConnectOptions) -> (HttpTransport, TransportEnds) {
        let (outbox, queue) = mpsc::channel(OUTBOX_QUEUE);
        let (inbound_sender, inbound) = mpsc::channel(INBOUND_QUEUE);
        let (gone_sender, gone) = watch::channel(None);
        let (_, receiver) = Pipe::new(outbox.into(), inbound_sender, options);
        let shared = HttpShared {
            endpoint,
            limits: options.limits.clone(),
            capabilities: options.capabilities.clone(),
            receiver,
            session: watch::Sender::new(None),
            renewing: tokio::sync::Mutex::default(),
            tools: ToolHeaders::default(),
            listened: watch::Sender::new(false),
            gone: gone_sender,
        };
        (
            HttpTransport(Arc::new(shared)),
            TransportEnds {
                queue,
                inbound,
                gone,
            },
        )
    }

    /// Hands the connection to its owner.
    fn start(self, peer: Peer, ends: TransportEnds) -> (ConnectionOwner, Connection) {
        let stop = CancellationToken::new();
        let keeper = keep(self.0.clone(), ends.queue, stop.clone());
        let transport = Arc::new(Transport::Http(self));
        let link = ConnectionOwner {
            inbound: ends.inbound,
            process: None,
            transport: transport.clone(),
            gone: ends.gone,
            stop,
            keeper: Some(tokio::spawn(keeper)),
        };
        let connection = Connection::new(transport, peer);
        (link, connection)
    }

    pub(crate) async fn request(
        &self,
        spelling: &RequestEncoder,
        call: UpstreamCall<'_>,
    ) -> RequestResult {
        Ok(self.exchange(spelling, call).await?)
    }

    async fn exchange(&self, spelling: &RequestEncoder, call: UpstreamCall<'_>) -> ExchangeResult {
        let shared = &self.0;
        shared.alive()?;
        let id = shared.receiver.pending.next_id();
        let body = Bytes::from(spelling.request(&call, id)?);
        let mut ticket = shared.receiver.pending.expect(id, &call)?;
        let flight = HttpExchange::new(shared, spelling.era, id, call.events).permit(call.permit);
        let mut cancel = CancelOnDrop {
            outbox: &shared.receiver.outbox,
            pending: &shared.receiver.pending,
            id,
            // Modern: closing the stream cancels the request.
            armed: spelling.era == Era::Legacy,
        };
        // Boxed, so that the future is moved once and not at every level.
        let work = Box::pin(async {
            match spelling.era {
                Era::Modern => {
                    let outgoing = OutgoingRequest {
                        method: call.method,
                        params: call.params,
                        name: call.name,
                        body,
                        begin: call.limit.is_none().then_some(shared.limits.connect),
                    };
                    shared.modern(spelling, &flight, outgoing).await
                }
                Era::Legacy => shared.legacy(&flight, body).await,
            }
        });
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            // The limit, or a response that came on another stream.
            answer = ticket.wait() => answer.map_err(ExchangeFailure::from),
        };
        cancel.armed &= matches!(
            outcome,
            Err(ExchangeFailure::Other(UpstreamError::Timeout { .. }))
        );
        outcome
    }

    pub(crate) async fn notify(&self, message: Bytes) -> Result<(), UpstreamError> {
        self.0.alive()?;
        let post = self.0.deliver(message);
        match tokio::time::timeout(POST_LIMIT, post).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(UpstreamError::Timeout { limit: POST_LIMIT }),
        }
    }

    pub(crate) fn pending(&self) -> &PendingRequests {
        &self.0.receiver.pending
    }

    /// The reason why a tool cannot be called over HTTP, if there is one.
    pub(crate) fn tool_fault(&self, name: &str) -> Option<String> {
        self.0.tools.fault(name)
    }
}

impl HttpShared {
    /// Fails once the connection is unusable.
    fn alive(&self) -> Result<(), UpstreamError> {
        match &*self.gone.borrow() {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        }
    }

    fn log(&self, text: &str) {
        (self.receiver.log)(LogStream::Portway, text);
    }

    async fn post(
        &self,
        headers: &Headers,
        body: Bytes,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<SessionReply, ExchangeFailure> {
        self.ask(Method::POST, headers, body, permit).await
    }

    async fn ask(
        &self,
        method: Method,
        headers: &Headers,
        body: Bytes,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<SessionReply, ExchangeFailure> {
        let sent = self.endpoint.send_permitted(method, headers, body, permit);
        let response = sent.await?;
        let session = response.header(KnownHeader::Session);
        let session = session.and_then(|id| HeaderValue::from_bytes(id).ok());
        let reply = self.endpoint.read(response, &self.limits).await?;
        Ok(SessionReply { reply, session })
    }
}

struct SessionReply {
    reply: HttpReply,
    /// The session that the server opened with this response, if any.
    session: Option<HeaderValue>,
}

/// Owns the background tasks of a connection until its end.
async fn keep(
    shared: Arc<HttpShared>,
    queue: mpsc::Receiver<OutgoingMessage>,
    stop: CancellationToken,
) -> Option<usize> {
    let post = |message: OutgoingMessage| {
        let shared = shared.clone();
        async move {
            let post = shared.deliver(message.bytes);
            match tokio::time::timeout(POST_LIMIT, post).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => shared.log(&UpstreamError::from(failure).to_string()),
                Err(_) => shared.log("the server was slow to take a message; given up"),
            }
        }
    };
    let work = async { tokio::join!(poster::run(queue, post), listen::run(&shared)) };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        _ = work => stop.cancelled().await,
    }
    let reason = UpstreamError::Lost("the server was stopped".into());
    shared.receiver.pending.fail_all(&reason);
    shared.gone.send_if_modified(|gone| {
        let first = gone.is_none();
        gone.get_or_insert(reason);
        first
    });
    shared.goodbye().await;
    None
}
