//! Entries whose MCP service is another Portway.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{StoreBeforeStart, StoredEntry, copy, tools, up, with_x};
use crate::app::{App, PATIENCE, setup};
use crate::e_records::Storage;
use crate::mcp_front::old_sse::connect;
use crate::mcp_front::{ask, call, calls, has_begun, legacy, modern, post, said, until};

/// A Portway with the servers, one in front of it with the same entries, and
/// two of these, one of them switched off.
async fn pair() -> (App, App, StoredEntry, StoredEntry) {
    let (behind, front) = (with_x(Storage::Json), setup());
    let before = StoreBeforeStart::of(&behind).await;
    let entry = before
        .entry("a", &["echo", "sleep", "count", "cancelled", "progress"])
        .await;
    let off = before.entry("off", &["echo"]).await;
    before.disable(&off).await;
    drop(before);
    copy(&behind, &front);
    let behind = up(behind).await;
    let front = front.env("MCP_SERVICE_URL", &format!("{}/mcp", behind.url));
    let front = front.env("RUST_LOG", "trace").start().await;
    (front, behind, entry, off)
}

#[tokio::test]
async fn e6_the_service_may_be_another_portway() {
    let (front, behind, entry, off) = pair().await;
    let path = entry.path();
    let list = modern(&front, &path, "tools/list", json!({}));
    assert_eq!(tools(list).await.len(), 5);
    let hi = modern(
        &front,
        &path,
        "tools/call",
        call("echo", json!({"text": "hi"})),
    );
    let hi = hi.send().await;
    assert!(hi.header("content-length").parse::<u64>().is_ok());
    assert_eq!(said(&hi.answer().await), "hi");

    // Progress comes as it is made, the answer last.
    let steps = json!({"name": "progress", "arguments": {"steps": 3, "ms": 10},
        "_meta": {"progressToken": "t"}});
    let mut talk = modern(&front, &path, "tools/call", steps).send().await;
    assert!(talk.is_stream());
    for step in 1..=3 {
        let (_, message) = talk.message().await.unwrap();
        assert_eq!(message["params"]["progress"], step);
    }
    assert!(talk.message().await.unwrap().1["result"].is_object());

    let client = legacy(&front, &path, "2025-11-25", json!({})).await;
    let hi = client.tool(2, "echo", json!({"text": "hi"})).send().await;
    assert_eq!(said(&hi.answer().await), "hi");
    let stream = client.listen().send().await;
    assert!(stream.is_stream());
    drop(stream);
    let end = ask(&front, "DELETE", &path).header("mcp-session-id", &client.session);
    assert_eq!(end.send().await.status, 204);

    // A bare request, too (SPEC K4).
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let bare = post(&front, &path, bare).header("accept", "*/*");
    let bare = bare.without("authorization").send().await.json().await;
    assert_eq!(bare["result"]["tools"].as_array().unwrap().len(), 5);

    let mut old = connect(&front, &format!("{path}/sse")).await;
    assert!(
        old.place
            .starts_with(&format!("{path}/messages?sessionId="))
    );
    old.hello("2024-11-05", json!({})).await;
    let hi = call("echo", json!({"text": "hi"}));
    assert_eq!(said(&old.request(2, "tools/call", hi).await), "hi");

    // Refused here, and not asked for there.
    let refused = modern(&front, &off.path(), "tools/list", json!({}));
    assert_eq!(refused.send().await.status, 404);
    let log = front.log();
    assert!(!log.contains(&entry.key[4..]) && !log.contains(&off.key[4..]));

    assert_eq!(behind.stop().await, Some(0));
    let down = modern(&front, &path, "tools/list", json!({})).send().await;
    assert_eq!(down.status, 503);
    assert_eq!(down.json().await["error"]["code"], "UNAVAILABLE");
}

#[tokio::test]
async fn e6_who_hangs_up_has_cancelled_there_too() {
    let (front, behind, entry, _) = pair().await;
    let observer = legacy(&behind, "/servers/x/mcp", "2025-06-18", json!({})).await;
    let before = calls(&observer).await;
    let sleep = call("sleep", json!({"ms": 600_000}));
    let waiting = modern(&front, &entry.path(), "tools/call", sleep);
    tokio::select! {
        talk = waiting.send() => panic!("an answer: {}", talk.status),
        () = has_begun(&observer, before) => {}
    }
    until("the server is told", || async {
        let given_up = observer.cancelled().await;
        given_up.iter().any(|call| call["name"] == "sleep")
    })
    .await;
}

/// A service that says the same to everybody, and what it was told.
async fn scripted(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = heard.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, answer, sink.clone()));
        }
    });
    (url, heard)
}

async fn serve(mut socket: TcpStream, answer: &str, heard: Arc<Mutex<Vec<String>>>) {
    let (mut got, mut chunk) = (Vec::new(), [0; 4096]);
    let head = loop {
        match socket.read(&mut chunk).await {
            Ok(n @ 1..) => got.extend_from_slice(&chunk[..n]),
            _ => return,
        }
        let text = String::from_utf8_lossy(&got).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            break head.to_owned();
        }
    };
    heard.lock().unwrap().push(head);
    let _ = socket.write_all(answer.as_bytes()).await;
    let _ = tokio::time::timeout(PATIENCE, socket.read(&mut chunk)).await;
}

async fn in_front_of(answer: &'static str) -> (App, StoredEntry, Arc<Mutex<Vec<String>>>) {
    let front = setup();
    let entry = StoreBeforeStart::of(&front)
        .await
        .entry("a", &["echo"])
        .await;
    let (url, heard) = scripted(answer).await;
    let front = front.env("MCP_SERVICE_URL", &url);
    let front = front.env("PORTWAY_MAX_RESPONSE", "64KiB");
    (front.start().await, entry, heard)
}

#[tokio::test]
async fn t_g3_the_service_sees_our_credential_alone() {
    let good = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
        set-cookie: a=b\r\nserver: other\r\nmcp-session-id: s\r\nconnection: close\r\n\r\n{}";
    let (app, entry, heard) = in_front_of(good).await;
    let asked = modern(
        &app,
        &format!("{}?filter=x&token=canary", entry.path()),
        "tools/list",
        json!({}),
    );
    let asked = asked
        .header("authorization", "Bearer canary")
        .header("x-api-key", "canary")
        .header("cookie", "canary=canary")
        .header("proxy-authorization", "canary")
        .header("te", "trailers")
        .header("connection", "x-hop")
        .header("x-hop", "canary")
        .header("mcp-param-region", "here")
        .header("origin", &app.url);
    let talk = asked.send().await;
    assert_eq!((talk.status, talk.header("mcp-session-id")), (200, "s"));
    assert!(!talk.headers.contains_key("set-cookie"));
    assert!(!talk.headers.contains_key("server"));
    assert_eq!(talk.text().await, "{}");
    let head = heard.lock().unwrap().remove(0).to_ascii_lowercase();
    assert!(
        head.starts_with("post /mcp?filter=x http/1.1\r\n"),
        "{head}"
    );
    let key = format!("x-api-key: {}", entry.key.to_ascii_lowercase());
    assert!(
        head.contains(&key) && head.contains("mcp-param-region: here"),
        "{head}"
    );
    for gone in [
        "canary", "cookie", "authorization", "origin", "x-hop", "\r\nte:",
    ] {
        assert!(!head.contains(gone), "{gone}: {head}");
    }
}

#[tokio::test]
async fn e6_an_odd_service_is_told_in_our_words() {
    let table = [
        (
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
            502,
            "BAD_GATEWAY",
        ),
        (
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
            404,
            "NOT_FOUND",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
            502,
            "BAD_GATEWAY",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 65537\r\n\r\n",
            502,
            "BAD_GATEWAY",
        ),
        ("nonsense\r\n\r\n", 502, "BAD_GATEWAY"),
    ];
    for (answer, status, code) in table {
        let (app, entry, heard) = in_front_of(answer).await;
        let talk = modern(&app, &entry.path(), "tools/list", json!({}))
            .send()
            .await;
        assert_eq!(talk.status, status, "{answer}");
        assert_eq!(talk.json().await["error"]["code"], code);
        let unknown = modern(&app, &super::at("pwk_x"), "tools/list", json!({}));
        assert_eq!(unknown.send().await.status, 404);
        assert_eq!(heard.lock().unwrap().len(), 1, "nothing else is passed on");
    }
}
