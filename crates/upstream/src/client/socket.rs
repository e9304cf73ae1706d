//! Connections to one address, plain or with TLS.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::Service;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Detects that the other end of a quiet event stream is gone.
const KEEPALIVE: Duration = Duration::from_secs(30);

type Tls = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;

pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

#[derive(Clone)]
pub(super) enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl Connector {
    /// Fails if there are no trusted certificates.
    pub(super) fn new(tls: bool) -> Result<Connector, String> {
        if !tls {
            return Ok(Connector::Plain(tcp()));
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
        connector.clone().map(Connector::Tls)
    }

    pub(super) async fn connect(&self, uri: &Uri) -> Result<Socket, Box<dyn Error + Send + Sync>> {
        match self.clone() {
            Connector::Plain(mut tcp) => {
                std::future::poll_fn(|cx| tcp.poll_ready(cx)).await?;
                let stream = tcp.call(uri.clone()).await?;
                Ok(Socket::Plain(stream.into_inner()))
            }
            Connector::Tls(mut tls) => {
                std::future::poll_fn(|cx| tls.poll_ready(cx)).await?;
                let stream = tls.call(uri.clone()).await?;
                Ok(Socket::Tls(Box::new(TokioIo::new(stream))))
            }
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

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Socket::Tls(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Socket::Tls(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Socket::Tls(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
