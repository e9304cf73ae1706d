//! Connections to scripted servers that behave as real servers were seen to.

mod auth;
mod bounds;
mod legacy;
mod modern;
mod probe;
mod server;
mod session;
mod sse;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    ConnectOptions, Connection, ConnectionLimits, ConnectionOwner, InboundMessage, UpstreamCall,
    UpstreamError, no_capabilities,
};
use config::{Containment, EraChoice, Privileges, Redactor, RemoteKind};
use server::ScriptedServer;

/// Long enough on a busy machine; a passing test never waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

type LogText = Arc<Mutex<Vec<String>>>;

fn options() -> (ConnectOptions, LogText) {
    let lines = LogText::default();
    let sink = lines.clone();
    let options = ConnectOptions {
        title: "the server".into(),
        era: EraChoice::Auto,
        remembered: None,
        containment: Containment::Auto,
        privileges: Privileges::Drop,
        hidden: Vec::new(),
        project: PathBuf::new(),
        base_env: Arc::default(),
        instance: String::new(),
        shim: PathBuf::new(),
        limits: ConnectionLimits::default(),
        log: Arc::new(move |_, line| sink.lock().unwrap().push(line.to_owned())),
        capabilities: no_capabilities(),
        redactor: Arc::new(Redactor::default()),
        asking: Arc::default(),
    };
    (options, lines)
}

async fn connect_with(
    server: &ScriptedServer,
    kind: RemoteKind,
    options: &ConnectOptions,
) -> Result<(ConnectionOwner, Connection), UpstreamError> {
    let (stop, headers) = (CancellationToken::new(), IndexMap::new());
    let connecting = super::probe::connect(kind, &server.url, &headers, options, &stop);
    tokio::time::timeout(PATIENCE, connecting)
        .await
        .expect("an answer in time")
}

async fn connect(server: &ScriptedServer) -> (ConnectionOwner, Connection) {
    connect_with(server, RemoteKind::Http, &options().0)
        .await
        .expect("a connection")
}

fn raw(value: Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(&value).unwrap()
}

/// A `tools/call` of `name`, without arguments.
async fn call(connection: &Connection, name: &str) -> Result<Value, UpstreamError> {
    call_within(connection, name, PATIENCE).await
}

async fn call_within(
    connection: &Connection,
    name: &str,
    limit: Duration,
) -> Result<Value, UpstreamError> {
    let params = raw(json!({"name": name}));
    let call = UpstreamCall::new("tools/call", limit).params(Some(&params));
    let answer = connection.request(call).await?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Waits until `holds` returns true.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn next_notification(link: &mut ConnectionOwner) -> String {
    let inbound = tokio::time::timeout(PATIENCE, link.inbound.recv()).await;
    match inbound
        .expect("a message in time")
        .expect("a living connection")
    {
        InboundMessage::Notification(notification) => notification.method,
        InboundMessage::Request(request) => format!("request {}", request.method),
    }
}
