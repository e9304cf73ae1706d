//! One connection from its first byte to its end. hyper serves it while it is
//! active. hyper keeps two buffers and its state for each connection, 16 KiB
//! and more, so it is dropped while a connection is idle: between two requests,
//! and for as long as a stream rarely has an event.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::{Buf, Bytes};
use http::{Request, Version};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::connections::{ClientConnection, CloseOrder, ConnectionSignal};
use super::edge::{ClientPeer, EdgeLimits};
use super::error::ApiError;
use super::site::{ResponseFuture, Site};
use super::stream::{ClientStream, ConnectionState, REFUSED_PATH};

/// Above the largest head and well below hyper's 400 KiB per connection.
const BUFFER: usize = 128 * 1024;
type ConnectionFailure = Box<dyn std::error::Error + Send + Sync>;

/// Marks a response whose stream is silent most of the time.
#[derive(Clone, Copy)]
pub(super) struct QuietStream;

pub(super) async fn attend(
    site: Arc<Site>,
    peer: ClientPeer,
    mut stream: ClientStream,
    limits: Arc<EdgeLimits>,
) -> Result<(), ConnectionFailure> {
    let connection = peer.connection.clone();
    let shared = stream.shared().clone();
    let rest = limits.rest.min(limits.idle);
    let mut service = service_fn(|request: Request<Incoming>| {
        let connection = peer.connection.clone();
        connection.begin();
        // Only HTTP/1.1 distinguishes a stream's end from a lost connection.
        let chunked = request.version() == Version::HTTP_11;
        let answer = answer(&site, request, peer.clone(), &shared);
        async move {
            let response = connection.answered(answer.await?);
            let endless = response.body().size_hint().exact().is_none();
            if chunked && endless && response.extensions().get::<QuietStream>().is_some() {
                connection.hand_over(response);
                return pending().await;
            }
            Ok(response)
        }
    });
    loop {
        let left = with_hyper(stream, service, &connection, &shared, rest).await?;
        let HyperOutcome::Resting(resting) = left else {
            return match left {
                HyperOutcome::Streaming(stream, response) => {
                    write(stream, response, &connection).await
                }
                _ => Ok(()),
            };
        };
        (stream, service) = *resting;
        tokio::select! {
            biased;
            more = stream.more() => if !more {
                return Ok(());
            },
            _ = connection.ordered(None) => return Ok(()),
            () = sleep(limits.idle - rest) => return Ok(()),
        }
    }
}

fn answer(
    site: &Site,
    request: Request<Incoming>,
    peer: ClientPeer,
    shared: &ConnectionState,
) -> ResponseFuture {
    let refused = shared
        .refusal()
        .filter(|_| request.uri().path() == REFUSED_PATH);
    if let Some(fault) = refused {
        debug!(remote = %peer.remote, %fault, "request refused");
        let refused = ApiError::from(fault).into_response();
        return Box::pin(std::future::ready(Ok(refused)));
    }
    site.answer(request, peer)
}

/// The work that is left when hyper has ended.
enum HyperOutcome<S> {
    Nothing,
    /// Boxed, since the task always has room for the largest variant.
    Resting(Box<(ClientStream, S)>),
    Streaming(Box<ClientStream>, Box<Response>),
}

async fn with_hyper<S>(
    stream: ClientStream,
    service: S,
    connection: &ClientConnection,
    shared: &ConnectionState,
    rest: Duration,
) -> Result<HyperOutcome<S>, ConnectionFailure>
where
    S: HttpService<Incoming, ResBody = Body, Error = Infallible> + Unpin,
{
    let http = http1::Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    // Boxed: an async block holds a value twice if it takes and then pins it.
    let mut http = Box::pin(http);
    let mut obeyed = None;
    let mut look = Instant::now() + rest;
    loop {
        tokio::select! {
            biased;
            done = http.as_mut() => {
                done?;
                return Ok(HyperOutcome::Nothing);
            }
            told = connection.signal(obeyed) => match told {
                ConnectionSignal::Order(CloseOrder::Finish) => {
                    http.as_mut().graceful_shutdown();
                    obeyed = Some(CloseOrder::Finish);
                }
                ConnectionSignal::Order(CloseOrder::Cut) => return Ok(HyperOutcome::Nothing),
                ConnectionSignal::Write(response) => {
                    let stream = Pin::into_inner(http).into_parts().io.into_inner();
                    return Ok(HyperOutcome::Streaming(Box::new(stream), response));
                }
            },
            () = sleep_until(look) => {
                let idle = connection.idle().unwrap_or_default();
                // A response that counts as sent is complete in memory, and
                // hyper has written all of it when it has flushed the socket.
                if idle >= rest && shared.is_at_rest() {
                    let parts = Pin::into_inner(http).into_parts();
                    let mut stream = parts.io.into_inner();
                    stream.put_back(&parts.read_buf);
                    return Ok(HyperOutcome::Resting(Box::new((stream, parts.service))));
                }
                let left = rest.checked_sub(idle).filter(|left| !left.is_zero());
                look = Instant::now() + left.unwrap_or(rest);
            }
        }
    }
}

/// Writes a response of unknown length. The connection ends with it: what the
/// client may have sent since its request stays unread.
async fn write(
    mut stream: Box<ClientStream>,
    response: Box<Response>,
    connection: &ClientConnection,
) -> Result<(), ConnectionFailure> {
    let written = async {
        let (head, mut body) = response.into_parts();
        stream.write_all(&spelled(head)).await?;
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame.transpose()?,
                () = stream.gone() => return Ok(()),
            };
            match frame.map(Frame::into_data) {
                Some(Ok(data)) => write_chunk(&mut stream, data).await?,
                Some(Err(_)) => {}
                None => break,
            }
        }
        stream.write_all(b"0\r\n\r\n").await?;
        Ok(stream.shutdown().await?)
    };
    tokio::select! {
        biased;
        done = written => done,
        // It finishes anyway; only `Cut` is new.
        _ = connection.ordered(Some(CloseOrder::Finish)) => Ok(()),
    }
}

async fn write_chunk(stream: &mut ClientStream, data: Bytes) -> io::Result<()> {
    // An empty chunk would mean the end.
    if data.is_empty() {
        return Ok(());
    }
    let size = format!("{:x}\r\n", data.len());
    let mut chunk = size.as_bytes().chain(data).chain(&b"\r\n"[..]);
    stream.write_all_buf(&mut chunk).await?;
    stream.flush().await
}

fn spelled(head: http::response::Parts) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    let mut rest = String::from("transfer-encoding: chunked\r\nconnection: close\r\n");
    let now = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT");
    // Cannot fail: this writes to memory.
    let _ = write!(rest, "date: {now}\r\n\r\n");
    text.extend(rest.into_bytes());
    text
}
