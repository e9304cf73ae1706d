//! The MCP endpoints over plain HTTP: what a client of either era sends, byte
//! by byte, and what it gets.

mod bare;
mod depth;
mod disconnect;
mod instructions;
mod ladder;
mod modern_traps;
pub(crate) mod old_sse;
mod sessions;
mod streams;
mod transport;
mod traps;

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wire::sse::{Decoder, Event};

use crate::app::{App, PATIENCE, TOKEN, fixtures, setup};

pub(crate) const X: &str = "/servers/x/mcp";
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const BOTH: &str = "application/json, text/event-stream";

/// Portway with one fixture, `x`, up.
pub(crate) async fn portway(args: &[&str]) -> App {
    let app = setup().mcp(fixtures(&[("x", args)])).start().await;
    app.until_status("x", "connected").await;
    app
}

/// A request on a connection of its own, which ends with its answer.
pub(crate) struct FrontRequest<'a> {
    app: &'a App,
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

pub(crate) fn ask<'a>(app: &'a App, method: &'static str, path: &str) -> FrontRequest<'a> {
    FrontRequest {
        app,
        method,
        path: path.to_owned(),
        headers: Vec::new(),
        body: Bytes::new(),
    }
    .header("authorization", &format!("Bearer {TOKEN}"))
    .header("accept", BOTH)
}

/// A POST of one message.
pub(crate) fn post<'a>(app: &'a App, path: &str, body: impl ToString) -> FrontRequest<'a> {
    ask(app, "POST", path)
        .header("content-type", "application/json")
        .body(body.to_string())
}

impl FrontRequest<'_> {
    /// Adds a header, beside others of its name.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a header.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.without(name).also(name, value)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) async fn send(self) -> FrontResponse {
        let what = format!("{} {}", self.method, self.path);
        match timeout(PATIENCE, self.sent()).await {
            Ok(talk) => talk,
            Err(_) => panic!("{what}: no answer"),
        }
    }

    async fn sent(self) -> FrontResponse {
        let authority = self.app.url.strip_prefix("http://").unwrap();
        let socket = TcpStream::connect(authority).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
            .await
            .unwrap();
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let mut request = http::Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", authority);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(self.body)).unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        FrontResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            chunk: Bytes::new(),
            decoder: Decoder::new(64 << 20),
            connection,
        }
    }
}

/// An answer that is being read; dropping it hangs up.
pub(crate) struct FrontResponse {
    pub status: u16,
    pub headers: http::HeaderMap,
    body: Incoming,
    chunk: Bytes,
    decoder: Decoder,
    connection: JoinHandle<()>,
}

impl Drop for FrontResponse {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl FrontResponse {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == "text/event-stream"
    }

    /// The next bytes of the body; None at its end.
    pub(crate) async fn bytes(&mut self) -> Option<Bytes> {
        let frame = timeout(PATIENCE, self.body.frame());
        let frame = frame.await.expect("something comes, or the end")?;
        Some(frame.unwrap().into_data().unwrap_or_default())
    }

    pub(crate) async fn text(mut self) -> String {
        let mut all = Vec::new();
        while let Some(bytes) = self.bytes().await {
            all.extend_from_slice(&bytes);
        }
        String::from_utf8(all).unwrap()
    }

    pub(crate) async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text:?}"))
    }

    /// Status, and the code of the JSON-RPC error if it is one.
    pub(crate) async fn verdict(self) -> (u16, Option<i64>) {
        let status = self.status;
        let text = self.text().await;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        (status, body["error"]["code"].as_i64())
    }

    /// The next event, an empty one included; None at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            let mut input = &self.chunk[..];
            let event = self.decoder.next(&mut input).unwrap();
            let taken = self.chunk.len() - input.len();
            self.chunk.advance(taken);
            if let Some(event) = event {
                return Some(event);
            }
            self.chunk = self.bytes().await?;
        }
    }

    /// The next message of the stream, with its event id.
    pub(crate) async fn message(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            let event = self.event().await?;
            if event.is_message() {
                let message = serde_json::from_slice(&event.data).unwrap();
                return Some((event.id, message));
            }
        }
    }

    /// The answer to a request, whether it comes as JSON or on a stream.
    pub(crate) async fn answer(mut self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        loop {
            let (_, message) = self.message().await.expect("an answer before the end");
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

/// A modern request's body.
pub(crate) fn modern_body(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let meta = params["_meta"].take();
    let mut envelope = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in meta.as_object().into_iter().flatten() {
        envelope[key] = value.clone();
    }
    params["_meta"] = envelope;
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A modern request with the headers it needs.
pub(crate) fn modern<'a>(
    app: &'a App,
    path: &str,
    method: &str,
    params: Value,
) -> FrontRequest<'a> {
    let name = ["name", "uri"].iter().find_map(|key| params[*key].as_str());
    let name = name.map(ToOwned::to_owned);
    let ask = post(app, path, modern_body(1, method, params))
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", method);
    match name {
        Some(name) => ask.header("mcp-name", &name),
        None => ask,
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// The text of a tool's result.
#[track_caller]
pub(crate) fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:#}"))
}

/// A legacy client with a session.
pub(crate) struct LegacyClient<'a> {
    pub app: &'a App,
    pub path: String,
    pub session: String,
    pub hello: Value,
}

pub(crate) async fn legacy<'a>(
    app: &'a App,
    path: &str,
    version: &str,
    abilities: Value,
) -> LegacyClient<'a> {
    let params = json!({
        "protocolVersion": version, "capabilities": abilities,
        "clientInfo": {"name": "test", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let talk = post(app, path, body).send().await;
    assert_eq!(talk.status, 200);
    let session = talk.header("mcp-session-id").to_owned();
    assert!(!session.is_empty());
    LegacyClient {
        app,
        path: path.to_owned(),
        session,
        hello: talk.answer().await,
    }
}

impl LegacyClient<'_> {
    /// A POST in the session, of a message or several.
    pub(crate) fn post(&self, body: Value) -> FrontRequest<'_> {
        post(self.app, &self.path, body).header("mcp-session-id", &self.session)
    }

    pub(crate) fn request(
        &self,
        id: impl Into<Value>,
        method: &str,
        params: Value,
    ) -> FrontRequest<'_> {
        let body = json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params});
        self.post(body)
    }

    pub(crate) fn tool(
        &self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
    ) -> FrontRequest<'_> {
        self.request(id, "tools/call", call(tool, arguments))
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let talk = self.post(body).send().await;
        assert_eq!(talk.status, 202);
        assert_eq!(talk.text().await, "");
    }

    pub(crate) async fn reply(&self, id: &Value, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(self.post(body).send().await.status, 202);
    }

    /// GET of the session's own stream.
    pub(crate) fn listen(&self) -> FrontRequest<'_> {
        ask(self.app, "GET", &self.path)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &self.session)
    }

    pub(crate) fn resume(&self, last: &str) -> FrontRequest<'_> {
        self.listen().header("last-event-id", last)
    }

    /// What the fixture's `cancelled` tool says: the calls it saw given up.
    pub(crate) async fn cancelled(&self) -> Vec<Value> {
        let answer = self
            .tool("c", "cancelled", json!({}))
            .send()
            .await
            .answer()
            .await;
        serde_json::from_str(said(&answer)).unwrap()
    }
}

/// Polls until a condition holds that takes a request to see.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let start = tokio::time::Instant::now();
    while !holds().await {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// How many calls the fixture has seen, those of `count` aside.
pub(crate) async fn calls(client: &LegacyClient<'_>) -> usize {
    let answer = client.tool("n", "count", json!({})).send().await;
    said(&answer.answer().await).parse().unwrap()
}

/// Waits until the fixture has seen more calls than `before`.
pub(crate) async fn has_begun(client: &LegacyClient<'_>, before: usize) {
    let more = || async { calls(client).await > before };
    until("the call reaches the server", more).await;
}
