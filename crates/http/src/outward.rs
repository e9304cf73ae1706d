//! Requests of our own to addresses that the operator has set: the project's
//! keys, the MCP service behind the entries, a running Portway.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

const CONNECT: Duration = Duration::from_secs(5);
/// Shorter than what the other side allows, so that we do not write into a
/// connection that it is just closing.
const IDLE: Duration = Duration::from_secs(30);
/// Finds out that the other end of a quiet stream is no more.
const KEEPALIVE: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 64;

/// HTTPS is asked for, and there is nothing to check certificates with.
#[derive(Debug, thiserror::Error)]
#[error("no HTTPS without trusted certificates: {0}")]
pub struct NoCertificates(String);

/// An HTTP/1.1 client that follows no redirects.
#[derive(Clone)]
pub enum Outward<B> {
    Plain(Client<HttpConnector, B>),
    Tls(Client<HttpsConnector<HttpConnector>, B>),
}

impl<B> Outward<B>
where
    B: Body<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
{
    pub fn new(tls: bool) -> Result<Outward<B>, NoCertificates> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_nodelay(true);
        tcp.enforce_http(!tls);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS);
        if !tls {
            return Ok(Outward::Plain(builder.build(tcp)));
        }
        let roots = HttpsConnectorBuilder::new().with_native_roots();
        let roots = roots.map_err(|error| NoCertificates(error.to_string()))?;
        let tls = roots.https_only().enable_http1().wrap_connector(tcp);
        Ok(Outward::Tls(builder.build(tls)))
    }

    pub fn request(&self, request: Request<B>) -> ResponseFuture {
        match self {
            Outward::Plain(client) => client.request(request),
            Outward::Tls(client) => client.request(request),
        }
    }
}
