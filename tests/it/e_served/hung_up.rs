//! What a key had open closes with the key: streams, and the connections
//! they and others came on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::app::PATIENCE;
use crate::e_records::{ENTRIES, on_each_store};
use crate::mcp_front::{call, legacy, until};

/// Sends a message to an entry's own address and reads until the answer has
/// come so far.
async fn ask(socket: &mut TcpStream, key: &str, method: &str, params: Value, until: &str) {
    let name = match params["name"].as_str() {
        Some(name) => format!("mcp-name: {name}\r\n"),
        None => String::new(),
    };
    let body = modern_body(1, method, params).to_string();
    let request = format!(
        "POST /api/v1/mcp_v2/server/{key} HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\naccept: {BOTH}\r\n\
         mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{name}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&answer).contains(until) {
            let read = socket.read_buf(&mut answer).await.unwrap();
            assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&answer));
        }
    };
    timeout(PATIENCE, reading).await.expect("an answer");
}

async fn connect(app: &App) -> TcpStream {
    let address = app.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// An open stream of an entry's own address.
pub(crate) async fn listen(app: &App, key: &str) -> TcpStream {
    let mut socket = connect(app).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let method = "subscriptions/listen";
    ask(&mut socket, key, method, wanted, "acknowledged").await;
    socket
}

async fn list(socket: &mut TcpStream, key: &str) {
    ask(socket, key, "tools/list", json!({}), "\"tools\":[").await;
}

/// A connection that is kept for the next request.
async fn idle(app: &App, key: &str) -> TcpStream {
    let mut socket = connect(app).await;
    list(&mut socket, key).await;
    socket
}

/// Reads until the other side has closed the connection.
pub(crate) async fn closed(socket: &mut TcpStream, what: &str) {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, socket.read_to_end(&mut rest)).await;
    read.unwrap_or_else(|_| panic!("{what}: still open"))
        .unwrap();
}

async fn e7_e10_connections_close_with_the_key(storage: Storage) {
    let app = storage.setup().mcp(fixtures(&[("x", &[])])).start().await;
    app.until_status("x", "connected").await;
    let tool = app.tool_of("say", "x", "echo").await;
    let other = app.new_entry("other", &[tool]).await;
    let mut others = idle(&app, text(&other["api_key"])).await;
    for how in ["disabled", "rotated", "expired", "deleted"] {
        let made = app.new_entry(how, &[tool]).await;
        let (key, path) = (text(&made["api_key"]), format!("{ENTRIES}/{}", made["id"]));
        let mut stream = listen(&app, key).await;
        let mut kept = idle(&app, key).await;
        let change = |body: Value| Some(body.to_string());
        match how {
            "disabled" => {
                app.send("PATCH", &path, change(json!({"status": false})))
                    .await
            }
            "rotated" => app.send("POST", &format!("{path}/rotate_key"), None).await,
            "expired" => {
                let soon = SystemTime::now() + Duration::from_secs(2);
                let at = soon.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
                let at = store::Timestamp::from_millis(at).to_string();
                app.send("PATCH", &path, change(json!({ "expires_at": at })))
                    .await
            }
            _ => app.send("DELETE", &path, None).await,
        };
        closed(&mut stream, &format!("{how}: the stream's")).await;
        closed(&mut kept, &format!("{how}: the idle one")).await;
    }
    // Another key's connection stays.
    list(&mut others, text(&other["api_key"])).await;
}

/// The streams of calls, which the server behind them does not end.
async fn e7_calls_that_stream_end_with_the_key(storage: Storage) {
    let servers = fixtures(&[("x", &[]), ("old", &["--era", "legacy"])]);
    let app = storage.setup().mcp(servers).start().await;
    for name in ["x", "old"] {
        app.until_status(name, "connected").await;
    }
    let tools = [
        app.tool_of("progress", "x", "progress").await,
        app.tool_of("elicit", "old", "elicit").await,
    ];
    let admin = legacy(&app, "/servers/x/mcp", "2025-11-25", json!({})).await;
    for (round, how) in ["disabled", "deleted"].into_iter().enumerate() {
        let made = app.new_entry(how, &tools).await;
        let (key, path) = (text(&made["api_key"]), format!("{ENTRIES}/{}", made["id"]));
        let mut stream = connect(&app).await;
        let mut params = call("progress", json!({"steps": 1000, "ms": 1000}));
        params["_meta"] = json!({"progressToken": 1});
        ask(
            &mut stream,
            key,
            "tools/call",
            params,
            "notifications/progress",
        )
        .await;
        let place = format!("/api/v1/mcp_v2/server/{key}");
        let able = json!({"elicitation": {}});
        let client = legacy(&app, &place, "2025-11-25", able).await;
        let question = json!({"message": "q"});
        let mut asked = client.tool(1, "elicit", question).send().await;
        let (_, message) = asked.message().await.expect("a question");
        assert_eq!(message["method"], "elicitation/create", "{message}");
        match how {
            "disabled" => app.patched(&path, json!({"status": false})).await,
            _ => app.deleted(&path).await,
        };
        closed(&mut stream, &format!("{how}: the call's stream")).await;
        assert!(asked.message().await.is_none(), "{how}: it has no answer");
        until("the server hears of it", async || {
            admin.cancelled().await.len() > round
        })
        .await;
    }
}

on_each_store!(
    e7_e10_connections_close_with_the_key,
    e7_calls_that_stream_end_with_the_key
);
