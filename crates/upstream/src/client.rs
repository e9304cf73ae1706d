//! The only HTTP client of the program: HTTP/1.1 to one origin. It follows no
//! redirects, requests no content codings and sends nothing twice. The caller's
//! own task writes the request and reads the response; there is no task per
//! connection.

use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

mod body;
mod head;
mod idle;
mod response;
mod socket;

pub use body::{BodyError, ResponseBody};
pub use head::Headers;
pub(crate) use idle::HttpConnection;
use idle::IdleConnections;
pub(crate) use response::{KnownHeader, RawResponse};
use socket::Connector;

/// A body up to this size is sent in one piece with its head.
const COPIED: usize = 64 << 10;
const READ: usize = 8 << 10;
/// A connection keeps a buffer for its requests up to this size.
const KEPT: usize = 4 << 10;

/// Headers that only this client writes.
const OURS: [HeaderName; 4] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::TRANSFER_ENCODING,
];

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no HTTPS without trusted certificates: {0}")]
    NoCertificates(String),
    #[error("not an HTTP URL")]
    BadUrl,
}

/// The reason why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no connection; nothing was sent.
    #[error("{}", causes(&**.0))]
    Connect(Box<dyn Error + Send + Sync>),
    /// The connection broke, and the request may have arrived.
    #[error("{}", causes(.0))]
    Exchange(io::Error),
}

impl SendError {
    /// The innermost cause: the message of the operating system.
    pub fn root_cause(&self) -> &(dyn Error + 'static) {
        let mut cause: &(dyn Error + 'static) = match self {
            SendError::Connect(error) => &**error,
            SendError::Exchange(error) => error,
        };
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause
    }
}

/// A client of one origin, and the idle connections to it.
#[derive(Clone)]
pub struct HttpClient {
    connector: Connector,
    idle: Arc<IdleConnections>,
    /// The address to connect to.
    uri: Uri,
    pub(crate) host: HeaderValue,
}

impl HttpClient {
    /// A client of the URL's origin; the path is ignored.
    pub fn new(url: &Url) -> Result<HttpClient, ClientError> {
        let uri = request_uri(url)?;
        let host = url.host_str().unwrap_or_default();
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(HttpClient {
            connector: Connector::new(url.scheme() == "https")
                .map_err(ClientError::NoCertificates)?,
            idle: Arc::default(),
            uri,
            host: HeaderValue::try_from(host).map_err(|_| ClientError::BadUrl)?,
        })
    }

    /// Sends one request to this origin, whatever host its URI names. The
    /// caller reads the response's body. Dropping the future, or the response,
    /// closes the connection.
    pub async fn request(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<ResponseBody>, SendError> {
        let (parts, body) = request.into_parts();
        let mut headers = Headers::new();
        let own = |name: &HeaderName| !OURS.contains(name);
        for (name, value) in parts.headers.iter().filter(|(name, _)| own(name)) {
            headers.add(name, value);
        }
        self.send(&parts.method, &parts.uri, &headers, &body).await
    }

    /// The same, with header lines as they are sent, except for the host.
    pub async fn send(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &Headers,
        body: &[u8],
    ) -> Result<Response<ResponseBody>, SendError> {
        let mut host = Headers::default();
        host.add(&header::HOST, &self.host);
        let connection = self.connect().await.map_err(SendError::Connect)?;
        let response = self.exchange(connection, method, uri, [&host, headers], body, ());
        let response = response.await.map_err(SendError::Exchange)?;
        Ok(response.into_response())
    }

    /// An idle connection, or a new one.
    pub(crate) async fn connect(&self) -> Result<HttpConnection, Box<dyn Error + Send + Sync>> {
        match self.idle.take() {
            Some(connection) => Ok(connection),
            // Boxed: the future is rare, and large.
            None => {
                let socket = Box::pin(self.connector.connect(&self.uri)).await?;
                Ok(HttpConnection::new(socket))
            }
        }
    }

    /// Sends a request and reads the head of its response. `writing` is
    /// dropped once the request is written.
    pub(crate) async fn exchange<W>(
        &self,
        mut connection: HttpConnection,
        method: &Method,
        uri: &Uri,
        headers: [&Headers; 2],
        body: &[u8],
        writing: W,
    ) -> io::Result<RawResponse> {
        let copied = if body.len() <= COPIED { body.len() } else { 0 };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let out = &mut connection.out;
        head::write_request(out, method, path, headers, body, copied);
        let waiting = self.idle.wait();
        // Requests made at the same time go out together: the server wakes once
        // for all of them, and a wake-up costs more than sending one.
        if !waiting.is_alone() {
            tokio::task::yield_now().await;
        }
        let sent = async {
            connection.socket.write_all(&connection.out).await?;
            connection.socket.write_all(&body[copied..]).await?;
            connection.socket.flush().await
        };
        // A server that refuses the rest of a request may have sent the reason.
        let sent = sent.await;
        drop(writing);
        if connection.out.capacity() > KEPT {
            connection.out = Vec::new();
        }
        loop {
            let head = head::read(&mut connection.buffer, method).map_err(io::Error::other)?;
            if let Some(head) = head {
                let keeps = head.keeps && sent.is_ok();
                let idle = keeps.then(|| self.idle.clone());
                return Ok(RawResponse {
                    status: head.status,
                    head: head.raw,
                    body: ResponseBody::new(connection, head.framing, idle),
                });
            }
            connection.buffer.reserve(READ);
            // No more than that: what follows the head may have to be moved.
            let mut head = (&mut connection.buffer).limit(READ);
            match connection.socket.read_buf(&mut head).await {
                Ok(1..) => {}
                Ok(0) => {
                    sent?;
                    let closed = "connection closed before message completed";
                    return Err(io::Error::other(closed));
                }
                Err(error) => return Err(sent.err().unwrap_or(error)),
            }
        }
    }
}

pub(crate) fn request_uri(url: &Url) -> Result<Uri, ClientError> {
    url.as_str().parse().map_err(|_| ClientError::BadUrl)
}

/// The error and its sources, from the outside in.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut texts = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts.join(": ")
}
