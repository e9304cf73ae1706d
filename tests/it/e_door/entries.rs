//! The address of an entry.

use serde_json::{Value, json};

use super::{StoreBeforeStart, StoredEntry, at, keyed, tools, up, with_x};
use crate::app::{App, TOKEN};
use crate::e_records::{Storage, on_each_store};
use crate::mcp_front::old_sse::connect;
use crate::mcp_front::{ask, call, legacy, modern, post, said};

on_each_store!(
    e6_an_entry_speaks_to_modern_clients,
    e6_an_entry_speaks_to_legacy_clients,
    k4_an_entry_has_the_old_transport,
    e7_what_opens_nothing_is_the_same_404,
    e6_host_origin_and_size_are_checked_there_too,
    t_d6_no_key_is_in_any_log,
);

async fn one(storage: Storage, bound: &[&str]) -> (App, StoredEntry) {
    let setup = with_x(storage);
    let entry = StoreBeforeStart::of(&setup).await.entry("a", bound).await;
    (up(setup).await, entry)
}

async fn e6_an_entry_speaks_to_modern_clients(storage: Storage) {
    let (app, entry) = one(storage, &["echo", "count"]).await;
    let path = entry.path();
    // What the client shows besides is not looked at, good or bad.
    for (name, value) in [
        ("authorization", format!("Bearer {TOKEN}")),
        ("authorization", "Bearer wrong".to_owned()),
        ("x-api-key", TOKEN.to_owned()),
        ("cookie", "portway_session=wrong".to_owned()),
    ] {
        let list = modern(&app, &path, "tools/list", json!({}));
        let list = list.without("authorization").header(name, &value);
        assert_eq!(tools(list).await, ["count", "echo"], "{name}");
    }
    let hi = modern(
        &app,
        &path,
        "tools/call",
        call("echo", json!({"text": "hi"})),
    );
    assert_eq!(said(&hi.send().await.answer().await), "hi");
    let not_bound = modern(&app, &path, "tools/call", call("sleep", json!({"ms": 1})));
    let refused = not_bound.send().await.answer().await;
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    // A key may be written in any way that means the same.
    let encoded = entry.path().replace("pwk_", "pwk%5F");
    let list = modern(&app, &encoded, "tools/list", json!({}));
    assert_eq!(tools(list).await, ["count", "echo"]);
}

async fn e6_an_entry_speaks_to_legacy_clients(storage: Storage) {
    let (app, entry) = one(storage, &["echo"]).await;
    let client = legacy(&app, &entry.path(), "2025-11-25", json!({})).await;
    client.notify("notifications/initialized", json!({})).await;
    let list = client.request(1, "tools/list", json!({}));
    assert_eq!(tools(list).await, ["echo"]);
    let hi = client.tool(2, "echo", json!({"text": "hi"})).send().await;
    assert_eq!(said(&hi.answer().await), "hi");
    let stream = client.listen().send().await;
    assert_eq!(stream.status, 200);
    assert!(stream.is_stream());
    // The session is the entry's, through whichever door.
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    let shared = keyed(post(&app, "/mcp", &ping), &entry.key, &client.session);
    let shared = shared.send().await;
    assert_eq!(shared.answer().await["result"], json!({}));
    let admin = post(&app, "/mcp", &ping).header("mcp-session-id", &client.session);
    assert_eq!(admin.send().await.status, 404);
    let end = ask(&app, "DELETE", &entry.path()).header("mcp-session-id", &client.session);
    assert_eq!(end.send().await.status, 204);
    assert_eq!(client.post(ping).send().await.status, 404);
}

async fn k4_an_entry_has_the_old_transport(storage: Storage) {
    let (app, entry) = one(storage, &["echo"]).await;
    let mut client = connect(&app, &format!("{}/sse", entry.path())).await;
    let place = format!("{}/messages?sessionId=", entry.path());
    assert!(client.place.starts_with(&place));
    client.hello("2024-11-05", json!({})).await;
    let list = client.request(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1);
    let hi = call("echo", json!({"text": "hi"}));
    assert_eq!(said(&client.request(2, "tools/call", hi).await), "hi");
    // The connection is the entry's: nobody else can say anything on it.
    let (_, id) = client.place.split_once('?').unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let stolen = post(&app, &format!("/messages?{id}"), &ping).send().await;
    assert_eq!(stolen.status, 404);
}

/// An answer as it stands on the wire, but for the time of day.
pub(crate) async fn raw(app: &App, method: &str, path: &str, body: &str) -> String {
    let host = app.url.strip_prefix("http://").unwrap();
    raw_for(app, host, method, path, body).await
}

async fn raw_for(app: &App, host: &str, method: &str, path: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = app.url.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = match body {
        "" => String::new(),
        body => format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ),
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{length}connection: close\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(crate::app::PATIENCE, socket.read_to_end(&mut answer));
    read.await.unwrap().unwrap();
    let text = String::from_utf8(answer).unwrap();
    let lines = text.split("\r\n").filter(|line| !line.starts_with("date:"));
    lines.collect::<Vec<_>>().join("\n")
}

async fn e7_what_opens_nothing_is_the_same_404(storage: Storage) {
    let setup = with_x(storage);
    let before = StoreBeforeStart::of(&setup).await;
    let off = before.entry("off", &["echo"]).await;
    before.disable(&off).await;
    let past = store::Timestamp::from_millis(1);
    let old = before.entry_until("old", &["count"], Some(past)).await;
    let good = before.entry("good", &["echo"]).await;
    drop(before);
    let app = up(setup).await;
    let near = format!("{}A", &good.key[..good.key.len() - 1]);
    let near = match near == good.key {
        true => format!("{}B", &good.key[..good.key.len() - 1]),
        false => near,
    };
    let long = "x".repeat(2000);
    let nothing = [
        near.as_str(),
        &off.key,
        &old.key,
        "pwk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "x",
        "",
        "%ff%00",
        "%zz",
        "..",
        &long,
        TOKEN,
        "pwk_a/b/c",
    ];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (method, more, body) in [
        ("POST", "", ping),
        ("GET", "", ""),
        ("DELETE", "", ""),
        ("GET", "/sse", ""),
        ("POST", "/messages?sessionId=x", ping),
    ] {
        let first = raw(&app, method, &format!("{}{more}", at(nothing[0])), body).await;
        assert!(first.starts_with("HTTP/1.1 404 "), "{first}");
        assert!(
            first.contains(r#"{"error":{"code":"NOT_FOUND","#),
            "{first}"
        );
        for key in nothing {
            let answer = raw(&app, method, &format!("{}{more}", at(key)), body).await;
            assert_eq!(answer, first, "{method} {key}");
        }
    }
    // A good key, to show that it is the key that makes the difference.
    let good = raw(&app, "POST", &good.path(), ping).await;
    assert!(!good.starts_with("HTTP/1.1 404 "), "{good}");
}

async fn e6_host_origin_and_size_are_checked_there_too(storage: Storage) {
    let (app, entry) = one(storage, &["echo"]).await;
    let list = || modern(&app, &entry.path(), "tools/list", json!({}));
    let rebound = raw_for(&app, "evil.example", "POST", &entry.path(), "{}").await;
    assert!(rebound.starts_with("HTTP/1.1 403 "), "{rebound}");
    let page = list().header("origin", "http://evil.example");
    assert_eq!(page.send().await.status, 403);
    let large = list().body(vec![b' '; (4 << 20) + 1]);
    assert_eq!(large.send().await.status, 413);
    let form = list().header("content-type", "text/plain");
    assert_eq!(form.send().await.status, 415);
}

async fn t_d6_no_key_is_in_any_log(storage: Storage) {
    let setup = with_x(storage).env("RUST_LOG", "trace");
    let before = StoreBeforeStart::of(&setup).await;
    let entry = before.entry("a", &["echo"]).await;
    let off = before.entry("off", &["count"]).await;
    before.disable(&off).await;
    drop(before);
    let app = up(setup).await;
    for key in [&entry.key, &off.key] {
        let path = at(key);
        for path in [
            path.clone(),
            format!("{path}?x=y"),
            format!("{path}/nothing"),
            path.replace("pwk_", "pwk%5F"),
        ] {
            drop(modern(&app, &path, "tools/list", json!({})).send().await);
            drop(ask(&app, "GET", &path).send().await);
        }
        drop(ask(&app, "GET", &format!("{path}/sse")).send().await);
        let list = || modern(&app, "/mcp", "tools/list", json!({})).without("authorization");
        drop(list().header("x-api-key", key).send().await);
        let bearer = format!("Bearer {key}");
        drop(list().header("authorization", &bearer).send().await);
        let bad = modern(&app, &path, "tools/call", Value::Null);
        drop(bad.body("{").send().await);
    }
    crate::app::eventually("the log has the requests", || {
        app.log().matches("POST /api/v1/mcp_v2/server/").count() >= 10
    })
    .await;
    let log = app.log();
    for key in [&entry.key, &off.key] {
        // Its random part, however its prefix is spelled.
        assert!(!log.contains(&key[4..]));
    }
}
