//! A scripted HTTP server that can also misbehave below HTTP.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub verb: String,
    pub target: String,
    headers: HashMap<String, String>,
    pub body: Value,
    /// Cancelled when the client closes the connection meanwhile.
    pub hung_up: CancellationToken,
}

impl ReceivedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The JSON-RPC method, or the HTTP method if there is none.
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    pub(super) fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    pub(super) fn error(&self, code: i64, message: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"],
               "error": {"code": code, "message": message}})
    }

    /// The answer of a legacy server to `initialize`.
    pub(super) fn initialized(&self) -> Value {
        self.result(
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "scripted", "version": "1"}}),
        )
    }

    /// The answer of a modern server to `server/discover`.
    pub(super) fn discovered(&self) -> Value {
        self.result(
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                           "capabilities": {"tools": {"listChanged": true}}}),
        )
    }
}

/// The server's reaction to a request.
pub(super) enum ScriptedReply {
    Json(u16, Value),
    /// Status, media type, body.
    Text(u16, &'static str, String),
    Status(u16),
    With(&'static str, String, Box<ScriptedReply>),
    /// Chunks of an event stream; it ends when the sender is dropped, and
    /// breaks at an empty chunk.
    Events(mpsc::Receiver<String>),
    /// These bytes, then the end of the connection.
    Raw(&'static str),
    Nothing,
}

impl ScriptedReply {
    pub(super) fn with(self, name: &'static str, value: &str) -> ScriptedReply {
        ScriptedReply::With(name, value.to_owned(), Box::new(self))
    }

    /// A complete stream.
    pub(super) fn events(chunks: &[String]) -> ScriptedReply {
        let (sender, receiver) = mpsc::channel(chunks.len().max(1));
        for chunk in chunks {
            sender.try_send(chunk.clone()).unwrap();
        }
        ScriptedReply::Events(receiver)
    }
}

/// One message as an event.
pub(super) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

pub(super) fn event_with_id(id: &str, message: &Value) -> String {
    format!("id: {id}\n{}", event(message))
}

type ServerScript = Arc<dyn Fn(ReceivedRequest) -> BoxFuture<'static, ScriptedReply> + Send + Sync>;

pub(super) struct ScriptedServer {
    pub url: Url,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl ScriptedServer {
    /// Answers each request with the result of `script`.
    pub(super) async fn start<F>(
        script: impl Fn(ReceivedRequest) -> F + Send + Sync + 'static,
    ) -> ScriptedServer
    where
        F: Future<Output = ScriptedReply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: ServerScript = Arc::new(move |asked| script(asked).boxed());
        let log = seen.clone();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        let task = tokio::spawn(async move {
            let mut served = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                served.spawn(serve(stream, script.clone(), log.clone()));
            }
        });
        ScriptedServer {
            url: format!("http://{address}/mcp").parse().unwrap(),
            seen,
            connections,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(super) fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The methods of all requests, in order.
    pub(super) fn methods(&self) -> Vec<String> {
        let seen = self.seen();
        seen.iter().map(|asked| asked.method().to_owned()).collect()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|seen| *seen == method).count()
    }

    pub(super) fn find(&self, method: &str) -> Option<ReceivedRequest> {
        self.seen()
            .into_iter()
            .find(|asked| asked.method() == method)
    }
}

async fn serve(stream: TcpStream, script: ServerScript, seen: Arc<Mutex<Vec<ReceivedRequest>>>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(asked) = request(&mut read).await {
        seen.lock().unwrap().push(asked.clone());
        let hung_up = asked.hung_up.clone();
        let answer = async { send(&mut write, script(asked).await).await };
        let keep = tokio::select! {
            keep = answer => keep,
            // Clients do not pipeline: a read now means the end.
            _ = read.read_u8() => {
                hung_up.cancel();
                false
            }
        };
        if !keep {
            return;
        }
    }
}

async fn request(read: &mut (impl AsyncReadExt + Unpin)) -> Option<ReceivedRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(read.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    Some(ReceivedRequest {
        verb: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        hung_up: CancellationToken::new(),
    })
}

/// Returns whether the connection may be reused.
async fn send(write: &mut (impl AsyncWriteExt + Unpin), say: ScriptedReply) -> bool {
    let mut extra = String::new();
    let mut say = say;
    while let ScriptedReply::With(name, value, inner) = say {
        extra.push_str(&format!("{name}: {value}\r\n"));
        say = *inner;
    }
    let (status, kind, body) = match say {
        ScriptedReply::Json(status, value) => (status, "application/json", value.to_string()),
        ScriptedReply::Text(status, kind, body) => (status, kind, body),
        ScriptedReply::Status(status) => (status, "", String::new()),
        ScriptedReply::Events(chunks) => return stream(write, &extra, chunks).await,
        ScriptedReply::Raw(bytes) => {
            let _ = write.write_all(bytes.as_bytes()).await;
            return false;
        }
        ScriptedReply::Nothing | ScriptedReply::With(..) => return false,
    };
    if !kind.is_empty() {
        extra.push_str(&format!("content-type: {kind}\r\n"));
    }
    let length = body.len();
    let text = format!("HTTP/1.1 {status} X\r\n{extra}content-length: {length}\r\n\r\n{body}");
    write.write_all(text.as_bytes()).await.is_ok()
}

async fn stream(
    write: &mut (impl AsyncWriteExt + Unpin),
    extra: &str,
    mut chunks: mpsc::Receiver<String>,
) -> bool {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{extra}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    if write.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    while let Some(chunk) = chunks.recv().await {
        if chunk.is_empty() {
            return false;
        }
        let framed = format!("{:x}\r\n{chunk}\r\n", chunk.len());
        if write.write_all(framed.as_bytes()).await.is_err() {
            return false;
        }
    }
    write.write_all(b"0\r\n\r\n").await.is_ok()
}
