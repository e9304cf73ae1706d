//! The edge, over raw sockets: what a client could send that a well-behaved
//! library would not.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should fail loudly"
)]

mod bodies;
mod doors;
mod framing;
mod limits;
mod rest;
mod scarcity;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use config::Secret;
use config::authority::Origin;
use futures_util::stream;
use portway_http::{self, Access, AdminToken, EdgeLimits, Guard, HostPolicy, Json, Principal};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "pw_admin_for_the_tests";
pub(crate) const MAX_BODY: usize = 64 * 1024;
/// What a test waits for something that should happen at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The edge and the guard around a few handlers of our own.
pub(crate) struct TestEdge {
    pub addr: SocketAddr,
    pub hits: Arc<AtomicUsize>,
    pub unsettled: Arc<AtomicUsize>,
    /// Answers begun on `/api/endless` and `/api/never`, and not yet over.
    pub open: Arc<AtomicUsize>,
    pub shutdown: CancellationToken,
    pub server: JoinHandle<()>,
}

impl TestEdge {
    pub(crate) async fn start() -> TestEdge {
        TestEdge::with(EdgeLimits::default()).await
    }

    pub(crate) async fn with(limits: EdgeLimits) -> TestEdge {
        let token = AdminToken::new(Secret::new(TOKEN));
        TestEdge::serve(limits, Access::Token(token)).await
    }

    pub(crate) async fn serve(limits: EdgeLimits, access: Access) -> TestEdge {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let origins = vec![Origin::parse("https://app.example").unwrap()];
        let guard = Guard::new(access, HostPolicy::new(addr, Vec::new(), origins), MAX_BODY);
        let (hits, unsettled, open): (Arc<_>, Arc<AtomicUsize>, Arc<_>) = Default::default();
        let settled = unsettled.clone();
        let vitals = portway_http::Vitals {
            unsettled: Arc::new(move || settled.load(Ordering::SeqCst)),
            ..portway_http::Vitals::default()
        };
        let app = portway_http::router(
            Arc::new(guard),
            vitals,
            portway_http::Console::missing(),
            handlers(&hits, &open),
        );
        let shutdown = CancellationToken::new();
        let server = tokio::spawn(portway_http::serve(listener, app, limits, shutdown.clone()));
        TestEdge {
            addr,
            hits,
            unsettled,
            open,
            shutdown,
            server,
        }
    }

    pub(crate) async fn connect(&self) -> RawClient {
        RawClient::to(self.addr).await
    }

    /// Sends `bytes` on a connection of its own and reads to its end.
    pub(crate) async fn talk(&self, bytes: impl AsRef<[u8]>) -> RawReply {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.rest().await
    }

    /// One request with the token that closes its connection.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> RawReply {
        self.talk(request(
            method,
            path,
            &format!("{}{headers}", bearer()),
            body,
        ))
        .await
    }

    pub(crate) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }
}

fn handlers(hits: &Arc<AtomicUsize>, open: &Arc<AtomicUsize>) -> Router {
    let hit = |hits: &Arc<AtomicUsize>| {
        let hits = hits.clone();
        move || hits.fetch_add(1, Ordering::SeqCst)
    };
    let (echoed, touched, slowed) = (hit(hits), hit(hits), hit(hits));
    let (opened, waiting) = (open.clone(), open.clone());
    Router::new()
        .route(
            "/api/echo",
            post(async move |_: Principal, Json(value): Json<Value>| {
                echoed();
                axum::Json(value)
            }),
        )
        .route(
            "/api/touch",
            get(async || "ok").post(async move |_: Principal| {
                touched();
                "ok"
            }),
        )
        .route("/api/panic", get(panics))
        .route(
            "/api/slow/{millis}",
            get(async move |Path(millis): Path<u64>| {
                slowed();
                tokio::time::sleep(Duration::from_millis(millis)).await;
                "slow"
            }),
        )
        .route("/api/pair", get(pair))
        .route(
            "/api/never",
            get(async move || never(OpenAnswer::new(&waiting)).await),
        )
        .route(
            "/api/endless",
            get(async move || endless(OpenAnswer::new(&opened))),
        )
}

async fn panics() -> &'static str {
    panic!("on purpose")
}

/// An answer in two writes, as an event stream makes them.
async fn pair() -> Response {
    let parts = stream::unfold(0u8, async |part| {
        tokio::task::yield_now().await;
        (part < 2).then_some((
            Ok::<_, std::io::Error>(Bytes::from_static(b"part")),
            part + 1,
        ))
    });
    Body::from_stream(parts).into_response()
}

/// An answer being made; counted while it is.
struct OpenAnswer(Arc<AtomicUsize>);

impl OpenAnswer {
    fn new(count: &Arc<AtomicUsize>) -> OpenAnswer {
        count.fetch_add(1, Ordering::SeqCst);
        OpenAnswer(count.clone())
    }
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn endless(open: OpenAnswer) -> Response {
    let block = Bytes::from(vec![b'x'; 64 * 1024]);
    let blocks = stream::unfold((open, block), async |(open, block)| {
        Some((Ok::<_, std::io::Error>(block.clone()), (open, block)))
    });
    Body::from_stream(blocks).into_response()
}

async fn never(_open: OpenAnswer) -> &'static str {
    std::future::pending().await
}

pub(crate) fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

/// A well-formed request, with a length and a JSON type where it has a body.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let typed = headers.to_ascii_lowercase().contains("content-type");
    let kind = match (body, typed) {
        ("", _) | (_, true) => "",
        (_, false) => "Content-Type: application/json\r\n",
    };
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}{kind}{length}\r\n{body}"
    )
}

pub(crate) struct RawClient {
    pub socket: TcpStream,
}

impl RawClient {
    pub(crate) async fn to(addr: SocketAddr) -> RawClient {
        let socket = timeout(PATIENCE, TcpStream::connect(addr))
            .await
            .unwrap()
            .unwrap();
        socket.set_nodelay(true).unwrap();
        RawClient { socket }
    }

    /// Whether all of it could be sent: the edge may have closed already.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.socket.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Everything until the edge closes the connection.
    pub(crate) async fn rest(&mut self) -> RawReply {
        let mut all = Vec::new();
        let read = timeout(PATIENCE, self.socket.read_to_end(&mut all)).await;
        let clean = read.expect("the connection should end").is_ok();
        RawReply {
            text: String::from_utf8_lossy(&all).into_owned(),
            clean,
        }
    }

    /// One answer with a known length, the connection staying open.
    pub(crate) async fn answer(&mut self) -> RawReply {
        let mut all = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&all).into_owned();
            let length = text.split("\r\n\r\n").next().and_then(content_length);
            if let (Some((_, body)), Some(length)) = (text.split_once("\r\n\r\n"), length)
                && body.len() >= length
            {
                return RawReply { text, clean: true };
            }
            let mut part = [0; 4096];
            let read = timeout(PATIENCE, self.socket.read(&mut part))
                .await
                .unwrap()
                .unwrap();
            assert!(read > 0, "closed after {text:?}");
            all.extend_from_slice(&part[..read]);
        }
    }
}

fn content_length(head: &str) -> Option<usize> {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?;
    line.parse().ok()
}

#[derive(Debug)]
pub(crate) struct RawReply {
    pub text: String,
    /// Whether the connection ended, rather than broke.
    pub clean: bool,
}

impl RawReply {
    /// The statuses of the answers, in order.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let lines = self.text.split("HTTP/1.1 ").skip(1);
        lines
            .filter_map(|line| line.get(..3)?.parse().ok())
            .collect()
    }

    pub(crate) fn status(&self) -> u16 {
        *self
            .statuses()
            .first()
            .unwrap_or_else(|| panic!("no answer: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next()?;
        let fits = |line: &&str| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
        head.lines()
            .find(fits)
            .map(|line| line[name.len() + 1..].trim())
    }

    pub(crate) fn body(&self) -> &str {
        self.text
            .split_once("\r\n\r\n")
            .map_or("", |(_, body)| body)
    }

    /// The code of an error answer, which must have the shape of SPEC G3.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_str(self.body())
            .unwrap_or_else(|error| panic!("{error}: {}", self.text));
        assert!(body["error"]["message"].is_string(), "{}", self.text);
        body["error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", self.text))
            .to_owned()
    }
}

/// Waits until `done`, and fails if that never comes.
pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "never: {what}");
}
