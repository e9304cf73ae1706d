//! One address of a remote server: a small HTTP client, the configured
//! headers, and a way to name the address without its secrets.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Builder};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use indexmap::IndexMap;
use url::Url;

use super::lines::quote;
use super::reply::Failure;
use super::{Options, UpstreamError};
use crate::config::Redactor;

mod headers;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Node and uvicorn close what is idle for 5 s; a request sent just then is
/// lost, and may not be sent again.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
const IDLE_CONNECTIONS: usize = 32;
/// Finds out that the other end of a quiet event stream is no more.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Where a server's messages go.
#[derive(Clone)]
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    uri: Uri,
    headers: HeaderMap,
    shown: String,
    redactor: Arc<Redactor>,
}

#[derive(Clone)]
enum Client {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Endpoint {
    pub fn new(
        url: &Url,
        headers: &IndexMap<String, String>,
        options: &Options,
    ) -> Result<Endpoint, UpstreamError> {
        let (address, uri) = address(url)?;
        Ok(Endpoint {
            client: Client::new(url)?,
            shown: options.redactor.redact(&shown(&address)).into_owned(),
            url: address,
            uri,
            headers: headers::fixed(url, headers, options),
            redactor: options.redactor.clone(),
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

    /// Sends one request; the answer's body is still to be read.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        for (name, value) in &headers {
            request.headers_mut().insert(name, value.clone());
        }
        let response = match &self.client {
            Client::Plain(client) => client.request(request).await,
            Client::Tls(client) => client.request(request).await,
        };
        response.map_err(|error| {
            let causes = self.quote(&causes(&error));
            if error.is_connect() {
                Failure::Unsent(format!("{self} could not be reached: {causes}"))
            } else {
                Failure::Broken(format!("{self}: {causes}"))
            }
        })
    }

    /// The host of a redirect's target, if it says one.
    pub fn redirect_host(&self, response: &Response<Incoming>) -> Option<String> {
        let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
        let target = self.url.join(location).ok()?;
        let host = self.quote(target.host_str()?);
        Some(match target.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    }

    pub fn has_login(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
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

impl Client {
    fn new(url: &Url) -> Result<Client, UpstreamError> {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS);
        Client::with(&builder, url)
    }

    fn with(builder: &Builder, url: &Url) -> Result<Client, UpstreamError> {
        if url.scheme() != "https" {
            return Ok(Client::Plain(builder.build(tcp())));
        }
        // Reading the system's certificates takes a while; they are the same
        // for every server.
        static TLS: OnceLock<Result<HttpsConnector<HttpConnector>, String>> = OnceLock::new();
        let connector = TLS.get_or_init(|| {
            let builder = HttpsConnectorBuilder::new()
                .with_native_roots()
                .map_err(|error| error.to_string())?;
            Ok(builder.https_only().enable_http1().wrap_connector(tcp()))
        });
        match connector {
            Ok(connector) => Ok(Client::Tls(builder.build(connector.clone()))),
            Err(reason) => Err(UpstreamError::Unreachable(format!(
                "no HTTPS without trusted certificates: {reason}"
            ))),
        }
    }
}

fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_LIMIT));
    connector.set_keepalive(Some(KEEPALIVE));
    connector
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

fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}

/// What went wrong, from the outside in; the client's own first layer only
/// says that something did.
fn causes(error: &dyn Error) -> String {
    let mut texts = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = cause.source();
    }
    if texts.is_empty() {
        texts.push(error.to_string());
    }
    texts.join(": ")
}
