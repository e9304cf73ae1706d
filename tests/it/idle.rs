//! What clients cost that are there and do nothing: legacy sessions with their
//! open stream, and open streams of `subscriptions/listen`; and what is left
//! of them when they are gone.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::app::{App, PATIENCE, TOKEN, eventually, fixtures, setup};
use crate::process::forest::rounds;

/// Bytes that one idle session with its stream and one open listen may cost
/// together: no connection that rests has a buffer.
const EACH: u64 = 16 << 10;

pub(crate) const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Each listen is an open file here and one there.
fn count() -> u64 {
    u64::from(rounds(400, 5_000))
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_idle_clients_cost_little() {
    let app = setup().mcp(fixtures(&[("x", &[])])).start().await;
    app.until_status("x", "connected").await;
    // What the first of a kind costs is not what each costs.
    let mut open = some(&app, 20).await;
    let before = resident(&app);
    open.extend(some(&app, count()).await);
    let after = resident(&app);
    let grown = after.saturating_sub(before);
    println!(
        "{} open streams: {} bytes a session and a listen, {} KiB in all",
        open.len(),
        grown / count(),
        after / 1024
    );
    assert!(
        grown < count() * EACH,
        "{} bytes for a session and a listen",
        grown / count()
    );
    let many = rounds(0, 1) == 1;
    if many {
        assert!(after < 110_000_000, "{after} bytes in all");
    }
    // They are alive: a change of the tools reaches the last of them.
    let last = open.last_mut().unwrap();
    toggle(&app).await;
    until(last, b"tools/list_changed").await;
    drop(open);
    if many {
        let small = || resident(&app) < 40_000_000;
        eventually("memory is given back", small).await;
    }
}

/// So many sessions with their streams, which are left alone, and so many
/// open listens.
async fn some(app: &App, count: u64) -> Vec<TcpStream> {
    let mut talk = connect(app).await;
    let mut open = Vec::new();
    for number in 0..count {
        let session = open_session(&mut talk, number).await;
        open.push(stream(app, &session).await);
        open.push(listen(app).await);
    }
    open
}

pub(crate) async fn connect(app: &App) -> TcpStream {
    let address = app.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

async fn open_session(talk: &mut TcpStream, number: u64) -> String {
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"idle","version":"1"}}}}}}"#
    );
    let head = exchange(talk, "", &hello, b"}").await;
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("no session: {head}"))
        .to_owned();
    let with = format!("mcp-session-id: {session}\r\n");
    let done = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    exchange(talk, &with, done, b"\r\n\r\n").await;
    let ping = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#);
    exchange(talk, &with, &ping, b"}").await;
    session
}

async fn stream(app: &App, session: &str) -> TcpStream {
    let mut talk = connect(app).await;
    let head = format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         accept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
    );
    talk.write_all(head.as_bytes()).await.unwrap();
    until(&mut talk, b"id: ").await;
    talk
}

async fn listen(app: &App) -> TcpStream {
    let mut talk = connect(app).await;
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{META}}}}}"#
    );
    let answer = exchange(&mut talk, headers, &body, b"acknowledged").await;
    assert!(answer.contains("text/event-stream"), "{answer}");
    talk
}

/// Adds a tool to the server, or takes it away.
async fn toggle(app: &App) {
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: mcp_x_toggle_tool\r\n";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"mcp_x_toggle_tool","arguments":{{}},"_meta":{META}}}}}"#
    );
    exchange(&mut connect(app).await, headers, &body, b"added").await;
}

/// Sends a message and reads until the answer has come so far.
pub(crate) async fn exchange(
    talk: &mut TcpStream,
    headers: &str,
    body: &str,
    until: &[u8],
) -> String {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    talk.write_all(head.as_bytes()).await.unwrap();
    self::until(talk, until).await
}

async fn until(talk: &mut TcpStream, last: &[u8]) -> String {
    let mut answer = Vec::new();
    let reading = async {
        while !contains(&answer, last) {
            assert!(talk.read_buf(&mut answer).await.unwrap() > 0, "it ended");
        }
    };
    timeout(PATIENCE, reading).await.expect("an answer");
    String::from_utf8(answer).unwrap()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The memory that Portway has, in bytes.
pub(crate) fn resident(app: &App) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB").parse::<u64>();
    number.unwrap() * 1024
}
