//! HTTP+SSE, the transport of 2024-11-05: the server sends on one endless
//! stream, which also names the address for our messages.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::client::Headers;
use super::endpoint::Endpoint;
use super::events::Events;
use super::handshake;
use super::peer::Peer;
use super::permit::OutgoingMessage;
use super::pipe::{MessageReceiver, Pipe};
use super::reply::{ExchangeFailure, HttpReply};
use super::{
    ConnectOptions, Connection, ConnectionLimits, ConnectionOwner, INBOUND_QUEUE, LogSink,
    LogStream, Transport, UpstreamError, poster,
};
use config::EraChoice;
use wire::Message;

const OUTBOX_QUEUE: usize = 256;
/// From the start of the stream to its first event, the address.
const ENDPOINT_LIMIT: Duration = Duration::from_secs(10);
/// How long the server may take to accept a message. Its response comes on the
/// stream, so this delays only the message.
const POST_LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn connect(
    endpoint: &Endpoint,
    options: &ConnectOptions,
) -> Result<(ConnectionOwner, Connection), ExchangeFailure> {
    let (messages, events) = open(endpoint, &options.limits).await?;
    let link = start(messages, events, options);
    // If this future is dropped, the drop of the link ends its tasks.
    match greet(&link.transport, options).await {
        Ok(peer) => {
            let connection = Connection::new(link.transport.clone(), peer);
            Ok((link, connection))
        }
        Err(error) => {
            link.end().await;
            Err(error.into())
        }
    }
}

/// Whether a failure to connect means that there is no such stream, rather than
/// that the stream does not work.
pub(super) fn is_none(failure: &ExchangeFailure) -> bool {
    match failure {
        ExchangeFailure::Odd(_) => true,
        ExchangeFailure::Refused { status, .. } | ExchangeFailure::Rpc { status, .. } => matches!(
            *status,
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_ACCEPTABLE
        ),
        _ => false,
    }
}

/// The modern revision does not define this transport, so the modern era is not
/// probed; a definition with `era: modern` is obeyed.
async fn greet(transport: &Transport, options: &ConnectOptions) -> Result<Peer, UpstreamError> {
    let limit = options.limits.connect;
    if options.era != EraChoice::Modern {
        return handshake::initialize(transport, options, limit).await;
    }
    let answer = handshake::discover(transport, options, limit).await;
    handshake::insist(answer, options)
}

/// Opens the stream and waits for the address that comes first.
async fn open(
    endpoint: &Endpoint,
    limits: &ConnectionLimits,
) -> Result<(Endpoint, Box<Events>), ExchangeFailure> {
    let mut headers = Headers::new();
    let events = HeaderValue::from_static("text/event-stream");
    headers.add(&header::ACCEPT, &events);
    let asked = endpoint.send_permitted(Method::GET, &headers, Bytes::new(), None);
    let response = asked.await?;
    let HttpReply::Stream(mut events) = endpoint.read(response, limits).await? else {
        return Err(ExchangeFailure::Odd(format!(
            "{endpoint} has no event stream"
        )));
    };
    let address = async {
        while let Some(event) = events.next().await? {
            if event.name.as_deref() == Some("endpoint") {
                let reference = String::from_utf8_lossy(&event.data);
                return endpoint.at(reference.trim());
            }
            // If a message comes first, this is not the transport.
            if event.is_message() {
                break;
            }
        }
        Err(ExchangeFailure::Odd(format!(
            "{endpoint}: the event stream names no address for messages"
        )))
    };
    let messages = tokio::time::timeout(ENDPOINT_LIMIT, address)
        .await
        .unwrap_or_else(|_| {
            Err(ExchangeFailure::Odd(format!(
                "{endpoint}: the event stream stays silent instead of naming an address"
            )))
        })?;
    Ok((messages, events))
}

fn start(messages: Endpoint, events: Box<Events>, options: &ConnectOptions) -> ConnectionOwner {
    let (outbox, queue) = mpsc::channel(OUTBOX_QUEUE);
    let (inbound_sender, inbound) = mpsc::channel(INBOUND_QUEUE);
    let (gone_sender, gone) = watch::channel(None);
    let (pipe, receiver) = Pipe::new(outbox.into(), inbound_sender, options);
    let stop = CancellationToken::new();
    let sender = Arc::new(SsePoster {
        endpoint: messages,
        limits: options.limits.clone(),
        log: options.log.clone(),
        pipe: pipe.clone(),
    });
    let keeper = keep(sender, queue, events, receiver, stop.clone(), gone_sender);
    ConnectionOwner {
        inbound,
        process: None,
        transport: Arc::new(Transport::Pipe(pipe)),
        gone,
        stop,
        keeper: Some(tokio::spawn(keeper)),
    }
}

async fn keep(
    sender: Arc<SsePoster>,
    queue: mpsc::Receiver<OutgoingMessage>,
    events: Box<Events>,
    receiver: MessageReceiver,
    stop: CancellationToken,
    gone: watch::Sender<Option<UpstreamError>>,
) -> Option<usize> {
    let post = |message| {
        let sender = sender.clone();
        async move { sender.post(message).await }
    };
    let reason = tokio::select! {
        biased;
        () = stop.cancelled() => UpstreamError::Lost("the server was stopped".into()),
        reason = read(events, &receiver) => reason,
        () = poster::run(queue, post) => UpstreamError::Lost("the connection ended".into()),
    };
    sender.pipe.pending().fail_all(&reason);
    gone.send_replace(Some(reason));
    None
}

/// Reads messages until the stream ends; returns the reason.
async fn read(mut events: Box<Events>, receiver: &MessageReceiver) -> UpstreamError {
    loop {
        match events.next().await {
            Ok(Some(event)) if event.is_message() => {
                if let Err(reason) = receiver.receive(&event.data.into()) {
                    return reason;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return UpstreamError::Lost("the server ended its event stream".into()),
            Err(failure) => return failure.into(),
        }
    }
}

struct SsePoster {
    endpoint: Endpoint,
    limits: ConnectionLimits,
    log: LogSink,
    pipe: Pipe,
}

impl SsePoster {
    /// Posts one message. If the server does not accept it, the request that
    /// waits for its response fails at once.
    async fn post(&self, message: OutgoingMessage) {
        let error = match tokio::time::timeout(POST_LIMIT, self.send(&message)).await {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => UpstreamError::from(failure),
            Err(_) => UpstreamError::Lost(format!("{} is slow to take a message", self.endpoint)),
        };
        match wire::parse_upstream(&message.bytes) {
            Ok(Message::Request { id, .. }) => {
                if let Some(id) = id.as_u64() {
                    self.pipe.pending().resolve(id, Err(error));
                }
            }
            _ => (self.log)(LogStream::Portway, &error.to_string()),
        }
    }

    async fn send(&self, message: &OutgoingMessage) -> Result<(), ExchangeFailure> {
        let headers = Headers::of_post();
        let sent = self.endpoint.send_permitted(
            Method::POST,
            &headers,
            message.bytes.clone(),
            message.permit(),
        );
        let response = sent.await?;
        if response.status.is_success() {
            // "Accepted", whatever the body says.
            return Ok(());
        }
        self.endpoint.read(response, &self.limits).await.map(drop)
    }
}
