//! One address of a remote server: a small HTTP client, the configured
//! headers, and a way to name the address without its secrets.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, Uri};
use indexmap::IndexMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

use super::lines::quote;
use super::permit::{Passing, Permit};
use super::reply::Failure;
use super::{LogSink, UpstreamError};
use config::Redactor;

mod body;
mod head;
mod headers;
mod shelf;
mod socket;

pub(crate) use body::BodyError;
pub use body::Received;
pub use head::Headers;
use shelf::{Line, Shelf};
use socket::Connector;

/// A body up to this size is sent in one piece with its head.
const COPIED: usize = 64 << 10;
const READ: usize = 8 << 10;

/// Where a server's messages go.
#[derive(Clone)]
pub struct Endpoint {
    connector: Connector,
    shelf: Arc<Shelf>,
    url: Url,
    uri: Uri,
    /// What every request carries.
    fixed: Headers,
    has_login: bool,
    shown: String,
    redactor: Arc<Redactor>,
}

impl Endpoint {
    pub fn new(
        url: &Url,
        headers: &IndexMap<String, String>,
        log: &LogSink,
        redactor: Arc<Redactor>,
    ) -> Result<Endpoint, UpstreamError> {
        let own = headers::fixed(url, headers, log);
        Endpoint::with(url, &own, redactor)
    }

    /// One whose every request carries these headers.
    pub fn with(
        url: &Url,
        own: &HeaderMap,
        redactor: Arc<Redactor>,
    ) -> Result<Endpoint, UpstreamError> {
        let (address, uri) = address(url)?;
        let connector = Connector::new(url.scheme() == "https").map_err(|reason| {
            UpstreamError::Unreachable(format!("no HTTPS without trusted certificates: {reason}"))
        })?;
        let mut fixed = Headers::new();
        fixed.add(&header::HOST, &host(&address)?);
        fixed.add_all(own);
        Ok(Endpoint {
            connector,
            shelf: Arc::default(),
            shown: redactor.redact(&shown(&address)).into_owned(),
            url: address,
            uri,
            has_login: own.contains_key(header::AUTHORIZATION),
            fixed,
            redactor,
        })
    }

    /// Another address of the same server, named by the server itself.
    pub fn at(&self, reference: &str) -> Result<Endpoint, Failure> {
        let odd = |what: &str| Failure::Odd(format!("{self} {what}"));
        let target = self
            .url
            .join(reference)
            .map_err(|_| odd("names an address for messages that is none"))?;
        // Our headers, credentials among them, go where the definition says.
        if target.origin() != self.url.origin() {
            let host = target.host_str().unwrap_or("nowhere");
            return Err(odd(&format!(
                "wants its messages sent to another origin ({host})"
            )));
        }
        let (url, uri) = address(&target).map_err(Failure::Other)?;
        Ok(Endpoint {
            url,
            uri,
            ..self.clone()
        })
    }

    /// Sends one request; the answer's body is still to be read. Dropping
    /// the future, or the answer, closes the connection.
    pub async fn send(
        &self,
        method: Method,
        headers: &Headers,
        body: Bytes,
    ) -> Result<Response<Received>, Failure> {
        self.send_permitted(method, headers, body, None).await
    }

    /// The same, if the permit still holds once there is a connection.
    pub(crate) async fn send_permitted(
        &self,
        method: Method,
        headers: &Headers,
        body: Bytes,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<Response<Received>, Failure> {
        let line = match self.shelf.take() {
            Some(line) => line,
            None => {
                // Boxed: it is rare, and large.
                let socket = Box::pin(self.connector.connect(&self.uri)).await;
                let socket = socket.map_err(|error| {
                    let causes = self.quote(&causes(&*error));
                    Failure::Unsent(format!("{self} could not be reached: {causes}"))
                })?;
                Line::new(socket)
            }
        };
        let passing = Passing::enter(permit)?;
        let answer = self.exchange(line, &method, headers, &body, passing).await;
        answer.map_err(|error| {
            let causes = self.quote(&causes(&error));
            Failure::Broken(format!("{self}: {causes}"))
        })
    }

    async fn exchange(
        &self,
        mut line: Line,
        method: &Method,
        headers: &Headers,
        body: &[u8],
        passing: Passing,
    ) -> io::Result<Response<Received>> {
        let copied = if body.len() <= COPIED { body.len() } else { 0 };
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let request = head::request(method, path, [&self.fixed, headers], body, copied);
        // Requests that come together go out together: the server is woken
        // once for all of them, which costs more than to send one.
        tokio::task::yield_now().await;
        let sent = async {
            line.socket.write_all(&request).await?;
            line.socket.write_all(&body[copied..]).await?;
            line.socket.flush().await
        };
        // A server that refuses the rest of a request may have said why.
        let sent = sent.await;
        drop(passing);
        loop {
            let head = head::read(&mut line.buffer).map_err(io::Error::other)?;
            if let Some(head) = head {
                let keeps = head.keeps && sent.is_ok();
                let shelf = keeps.then(|| self.shelf.clone());
                let mut response = Response::new(Received::new(line, head.framing, shelf));
                *response.status_mut() = head.status;
                *response.headers_mut() = head.headers;
                return Ok(response);
            }
            line.buffer.reserve(READ);
            match line.socket.read_buf(&mut line.buffer).await {
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

    /// The host of a redirect's target, if it says one.
    pub(crate) fn redirect_host(&self, response: &Response<Received>) -> Option<String> {
        let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
        let target = self.url.join(location).ok()?;
        let host = self.quote(target.host_str()?);
        Some(match target.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    }

    pub(crate) fn has_login(&self) -> bool {
        self.has_login
    }

    /// A server's words as an error may carry them.
    pub fn quote(&self, text: &str) -> String {
        quote(text, &self.redactor)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The address without its login and fragment, which are not sent.
fn address(url: &Url) -> Result<(Url, Uri), UpstreamError> {
    let mut url = url.clone();
    url.set_fragment(None);
    // They fail only for addresses without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    match url.as_str().parse() {
        Ok(uri) => Ok((url, uri)),
        Err(_) => Err(UpstreamError::Protocol(format!(
            "{} cannot be asked over HTTP",
            shown(&url)
        ))),
    }
}

/// What `Host` says: a port only where it is not the scheme's own.
fn host(url: &Url) -> Result<HeaderValue, UpstreamError> {
    let host = url.host_str().unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    HeaderValue::try_from(host)
        .map_err(|_| UpstreamError::Protocol(format!("{} has no host", shown(url))))
}

fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}

/// What went wrong, from the outside in.
fn causes(error: &dyn Error) -> String {
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
