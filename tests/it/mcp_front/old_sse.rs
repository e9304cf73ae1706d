//! HTTP+SSE, the transport of 2024-11-05.

use serde_json::{Value, json};

use super::{FrontResponse, X, ask, call, legacy, modern, portway, post, said, until};
use crate::app::App;

/// A client of the old transport.
pub(crate) struct OldSseClient<'a> {
    app: &'a App,
    stream: FrontResponse,
    pub place: String,
}

pub(crate) async fn connect<'a>(app: &'a App, path: &str) -> OldSseClient<'a> {
    let get = ask(app, "GET", path).header("accept", "text/event-stream");
    let mut stream = get.send().await;
    assert_eq!(stream.status, 200);
    assert!(stream.is_stream());
    assert_eq!(stream.header("x-accel-buffering"), "no");
    let first = stream.event().await.unwrap();
    assert_eq!(first.name.as_deref(), Some("endpoint"));
    OldSseClient {
        app,
        stream,
        place: String::from_utf8(first.data).unwrap(),
    }
}

impl OldSseClient<'_> {
    async fn send(&self, body: Value) -> u16 {
        post(self.app, &self.place, body).send().await.status
    }

    /// Sends a request, and reads to its answer.
    pub(crate) async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert_eq!(self.send(body).await, 202);
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn next(&mut self) -> Value {
        let (id, message) = self.stream.message().await.expect("a message");
        assert_eq!(id, None, "it cannot be resumed");
        message
    }

    pub(crate) async fn hello(&mut self, version: &str, abilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": abilities});
        let hello = self.request(0, "initialize", params).await;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.send(told).await, 202);
        hello
    }
}

#[tokio::test]
async fn k4_old_clients_have_their_transport() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        let mut client = connect(&app, "/servers/x/sse").await;
        assert!(client.place.starts_with("/servers/x/messages?sessionId="));
        let hello = client.hello("2024-11-05", json!({"roots": {}})).await;
        assert_eq!(hello["result"]["protocolVersion"], "2024-11-05");
        let answer = client
            .request(1, "tools/call", call("echo", json!({"text": "hi"})))
            .await;
        assert_eq!(said(&answer), "hi");

        // What is asked and told meanwhile comes on the same stream.
        let roots = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": call("roots", json!({}))});
        assert_eq!(client.send(roots).await, 202);
        let question = client.next().await;
        assert_eq!(question["method"], "roots/list");
        let roots = json!({"roots": [{"uri": "file:///here"}]});
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots});
        assert_eq!(client.send(reply).await, 202);
        let answer = client.next().await;
        assert!(said(&answer).contains("file:///here"), "{answer}");
        let steps =
            json!({"name": "progress", "arguments": {"steps": 2}, "_meta": {"progressToken": 9}});
        let steps = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": steps});
        assert_eq!(client.send(steps).await, 202);
        for step in 1..=2 {
            assert_eq!(client.next().await["params"]["progress"], step);
        }
        assert_eq!(client.next().await["id"], 3);
        let toggle = modern(&app, X, "tools/call", call("toggle_tool", json!({})));
        drop(toggle.send().await.answer().await);
        assert_eq!(
            client.next().await["method"],
            "notifications/tools/list_changed"
        );
        assert_eq!(
            client.request(4, "ping", json!({})).await["result"],
            json!({})
        );
    }
}

#[tokio::test]
async fn k4_all_servers_have_it_too() {
    let app = portway(&[]).await;
    let mut client = connect(&app, "/sse").await;
    assert!(client.place.starts_with("/messages?sessionId="));
    let hello = client.hello("2025-03-26", json!({})).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
    let list = client.request(1, "tools/list", json!({})).await;
    assert!(list["result"]["tools"].as_array().unwrap().len() > 10);
    let batch = json!([
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    ]);
    assert_eq!(client.send(batch).await, 202);
    let mut ids = [
        client.next().await["id"].as_u64(),
        client.next().await["id"].as_u64(),
    ];
    ids.sort();
    assert_eq!(ids, [Some(2), Some(3)]);
}

#[tokio::test]
async fn t_d2_the_message_url_is_one_clients_own() {
    let app = portway(&[]).await;
    let mut client = connect(&app, "/servers/x/sse").await;
    let (_, id) = client.place.split_once("sessionId=").unwrap();
    assert!(id.len() >= 22, "{id}");
    let ping = || json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for place in [
        "/servers/x/messages".to_owned(),
        "/servers/x/messages?sessionId=".to_owned(),
        format!("/servers/x/messages?sessionId={id}&sessionId={id}"),
        "/servers/x/messages?sessionId=AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        // Another endpoint is another client.
        format!("/messages?sessionId={id}"),
        format!("/servers/none/messages?sessionId={id}"),
    ] {
        assert_eq!(
            post(&app, &place, ping()).send().await.status,
            404,
            "{place}"
        );
    }
    assert_eq!(ask(&app, "GET", &client.place).send().await.status, 405);
    assert_eq!(post(&app, "/sse", ping()).send().await.status, 405);
    let none = ask(&app, "GET", "/sse").header("accept", "application/json");
    assert_eq!(none.send().await.status, 406);

    assert_eq!(client.send(ping()).await, 400, "initialize comes first");
    client.hello("2024-11-05", json!({})).await;
    let body = post(&app, &client.place, "").body("{");
    assert_eq!(body.send().await.verdict().await, (400, Some(-32700)));
    assert_eq!(client.send(json!([ping()])).await, 400);
    let new = super::modern_body(1, "tools/list", json!({}));
    assert_eq!(client.send(new).await, 400);
    assert_eq!(
        client.request(5, "ping", json!({})).await["result"],
        json!({})
    );
}

#[tokio::test]
async fn k4_the_end_of_the_stream_is_the_end_of_the_session() {
    let app = portway(&[]).await;
    let observer = legacy(&app, X, "2025-06-18", json!({})).await;
    let mut client = connect(&app, "/servers/x/sse").await;
    client.hello("2024-11-05", json!({})).await;
    let sleep = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": call("sleep", json!({"ms": 600_000}))});
    assert_eq!(client.send(sleep).await, 202);
    super::has_begun(&observer, 0).await;
    let OldSseClient { stream, place, .. } = client;
    drop(stream);
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    until("the session is over", || async {
        post(&app, &place, &ping).send().await.status == 404
    })
    .await;
    until("its call is given up", || async {
        observer
            .cancelled()
            .await
            .iter()
            .any(|call| call["name"] == "sleep")
    })
    .await;
}
