//! Many clients that all use the same ids, and servers that answer in random
//! order: nobody gets another's answer.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::app::{App, Setup, TOKEN, fixture, setup};
use crate::process::forest::rounds;
use crate::remote;

const CLIENTS: usize = 64;
/// The most a call is held up, in milliseconds.
const LATEST: u64 = 4;

/// Of all clients together, in one test.
fn calls() -> usize {
    rounds(2_500, 25_000) as usize
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientEra {
    Legacy,
    Modern,
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_modern_clients_of_a_pipe_get_their_own_answers() {
    over_stdio(ClientEra::Modern, "legacy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_legacy_clients_of_a_pipe_get_their_own_answers() {
    over_stdio(ClientEra::Legacy, "modern").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_modern_clients_of_a_remote_server_get_their_own_answers() {
    over_http(ClientEra::Modern, "modern").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_legacy_clients_of_a_remote_server_get_their_own_answers() {
    over_http(ClientEra::Legacy, "legacy").await;
}

async fn over_stdio(client: ClientEra, server: &str) {
    let server = json!({"command": fixture(), "args": ["--era", server]});
    mix(setup().mcp(json!({"mcpServers": {"x": server}})), client).await;
}

async fn over_http(client: ClientEra, server: &str) {
    let server = remote::fixture(&["--http", "0", "--era", server]).await;
    let config = json!({"mcpServers": {"x": {"type": "http", "url": server.url}}});
    mix(setup().mcp(config), client).await;
}

async fn mix(setup: Setup, era: ClientEra) {
    let app = Arc::new(setup.start().await);
    app.until_status("x", "connected").await;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let app = app.clone();
        clients.spawn(async move { MixUpClient::open(app, era, number).await.call_all().await });
    }
    let answered: usize = clients.join_all().await.into_iter().sum();
    assert_eq!(answered, calls() / CLIENTS * CLIENTS);
}

struct MixUpClient {
    app: Arc<App>,
    era: ClientEra,
    number: usize,
    session: String,
}

impl MixUpClient {
    async fn open(app: Arc<App>, era: ClientEra, number: usize) -> MixUpClient {
        let mut client = MixUpClient {
            app,
            era,
            number,
            session: String::new(),
        };
        if era == ClientEra::Legacy {
            let info = json!({"name": "many", "version": "1"});
            let params =
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
            let hello =
                json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            client.session = client.post(&hello).await.1;
            let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            client.post(&done).await;
        }
        client
    }

    /// How many calls were answered; each answer is looked at.
    async fn call_all(self) -> usize {
        let count = calls() / CLIENTS;
        for id in 1..=count {
            let nonce = format!("{}-{id}-{}", self.number, fastrand::u64(..));
            let arguments = json!({"ms": fastrand::u64(..=LATEST), "text": nonce});
            let mut params = json!({"name": "mcp_x_sleep", "arguments": arguments});
            if self.era == ClientEra::Modern {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
            }
            let call =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let (answer, _) = self.post(&call).await;
            assert_eq!(answer["id"], json!(id), "{answer}");
            assert_eq!(
                answer["result"]["content"][0]["text"],
                json!(nonce),
                "{answer}"
            );
        }
        count
    }

    /// Posts a message; the answer, and the session it opened.
    async fn post(&self, message: &Value) -> (Value, String) {
        let token = format!("Bearer {TOKEN}");
        let mut headers = vec![
            ("authorization", token.as_str()),
            ("accept", "application/json, text/event-stream"),
        ];
        match self.era {
            ClientEra::Modern => headers.extend([
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "mcp_x_sleep"),
            ]),
            ClientEra::Legacy if !self.session.is_empty() => {
                headers.push(("mcp-session-id", &self.session))
            }
            ClientEra::Legacy => {}
        }
        let answer = self
            .app
            .request("POST", "/mcp", Some(message.to_string()), &headers)
            .await;
        assert!(
            matches!(answer.status, 200 | 202),
            "{}: {}",
            answer.status,
            answer.text
        );
        let session = answer.headers.get("mcp-session-id");
        let session = session
            .map_or("", |value| value.to_str().unwrap())
            .to_owned();
        (message_of(&answer.text), session)
    }
}

/// The one message in a body, which is a stream where the answer took long.
fn message_of(body: &str) -> Value {
    let mut data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let text = data.next_back().unwrap_or(body);
    serde_json::from_str(text).unwrap_or_default()
}
