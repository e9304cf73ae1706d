//! The control plane stays reachable: the admin and `/healthz` are answered
//! while others hold all connections or all descriptors.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::app::{App, PATIENCE, Setup, TOKEN, fixtures, setup};
use crate::mcp_front::modern;

/// The crowd is in this process.
fn raise_own_limit() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

async fn connect(app: &App) -> TcpStream {
    let address = app.url.strip_prefix("http://").unwrap();
    let connecting = timeout(PATIENCE, TcpStream::connect(address));
    connecting.await.unwrap().unwrap()
}

/// A connection that has had `/healthz`, and stays.
async fn idle(app: &App) -> TcpStream {
    let mut socket = connect(app).await;
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut answer = [0; 12];
    let read = timeout(PATIENCE, socket.read_exact(&mut answer)).await;
    read.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200", "health is for everybody");
    socket
}

/// The status of a request on a connection of its own.
async fn status(app: &App, path: &str) -> u16 {
    let mut socket = connect(app).await;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         connection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, socket.read_to_end(&mut answer)).await;
    read.expect("an answer").unwrap();
    let text = String::from_utf8(answer).unwrap();
    text.get(9..12).and_then(|code| code.parse().ok()).unwrap()
}

async fn all_is_reachable(app: &App) {
    for _ in 0..20 {
        assert_eq!(status(app, "/api/mcp/servers").await, 200);
        assert_eq!(status(app, "/healthz").await, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_k3_idle_connections_of_strangers_give_way_to_the_admin() {
    raise_own_limit();
    let app = setup().env("PORTWAY_MAX_CONNECTIONS", "300").start().await;
    let mut crowd = Vec::new();
    for _ in 0..600 {
        crowd.push(idle(&app).await);
    }
    all_is_reachable(&app).await;
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_k3_busy_connections_of_keys_leave_the_admin_a_way_in() {
    let app = setup()
        .env("PORTWAY_MAX_CONNECTIONS", "8")
        .mcp(fixtures(&[("x", &[])]))
        .start()
        .await;
    app.until_status("x", "connected").await;
    let mut streams = Vec::new();
    // Two keys, each with its share of open streams.
    for name in ["a", "b"] {
        let made = app.post("/api/v1/mcp_v2", json!({ "name": name })).await;
        let key = made.expect(201)["api_key"].as_str().unwrap().to_owned();
        for _ in 0..4 {
            streams.push(crate::e_served::hung_up::listen(&app, &key).await);
        }
    }
    all_is_reachable(&app).await;
    let made = app.post("/api/v1/mcp_v2", json!({"name": "c"})).await;
    let key = made.expect(201)["api_key"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/mcp_v2/server/{key}");
    let talk = modern(&app, &path, "tools/list", json!({})).send().await;
    assert_eq!(talk.status, 503, "the reserve is not for them");
    drop(streams);
    let start = Instant::now();
    while modern(&app, &path, "tools/list", json!({}))
        .send()
        .await
        .status
        != 200
    {
        assert!(start.elapsed() < PATIENCE, "there is room again");
        sleep(Duration::from_millis(50)).await;
    }
}

fn with_descriptors(mut setup: Setup, soft: u32, hard: u32) -> Setup {
    let run = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    setup.before = vec!["sh".into(), "-c".into(), run];
    setup
}

fn limit(pid: i64) -> (String, String) {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    (words[3].to_owned(), words[4].to_owned())
}

#[tokio::test]
async fn t_portway_takes_the_hard_limit_and_servers_get_theirs_back() {
    let setup = setup().mcp(fixtures(&[("x", &[])]));
    let app = with_descriptors(setup, 512, 1000).start().await;
    let x = app.until_status("x", "connected").await;
    assert_eq!(limit(i64::from(app.pid())), ("1000".into(), "1000".into()));
    let server = limit(x["pid"].as_i64().unwrap());
    assert_eq!(server, ("512".into(), "1000".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_b7_without_descriptors_the_admin_is_served_and_files_are_followed() {
    raise_own_limit();
    let setup = with_descriptors(setup(), 160, 160).mcp(fixtures(&[("x", &[])]));
    // More than there are descriptors, so that they run out.
    let app = setup.env("PORTWAY_MAX_CONNECTIONS", "400").start().await;
    app.until_status("x", "connected").await;
    let mut crowd = Vec::new();
    for _ in 0..400 {
        crowd.push(idle(&app).await);
    }
    let filters = r#"{"filters":{"none":{"allow":["nothing:*"]}},"default":"none"}"#;
    std::fs::write(app.path(".portway.json"), filters).unwrap();
    let servers = fixtures(&[("x", &[]), ("y", &[])]).to_string();
    std::fs::write(app.path(".mcp.json"), servers).unwrap();
    all_is_reachable(&app).await;
    app.until_status("y", "connected").await;
    let start = Instant::now();
    loop {
        let listed = modern(&app, "/mcp", "tools/list", json!({})).send().await;
        let answer = listed.answer().await;
        match answer["result"]["tools"].as_array() {
            Some(tools) if tools.is_empty() => break,
            _ => assert!(start.elapsed() < PATIENCE, "the filter holds: {answer}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
    drop(crowd);
}
