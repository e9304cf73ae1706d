//! What clients can make Portway hold in memory, and that it is given back.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::app::{App, PATIENCE, eventually, fixtures, setup};
use crate::e_records::{BOUND, TOOLS, number, text};
use crate::e_served::{Agent, EntryEra, EntryRoute};
use crate::idle::resident;
use crate::mcp_front::modern_body;

const MIB: u64 = 1 << 20;
/// More than the system takes in place of a client that does not read.
const ANSWER: u64 = 7 * MIB;
const UNREAD: usize = 20;

/// An entry with the tool `big`; its key.
async fn entry(app: &App) -> String {
    let tool = json!({"name": "big", "server": "x", "tool": "big"});
    let tool = app.post(TOOLS, tool).await.expect(201);
    let bound = json!({"name": "e", "bindings": [{"tool_id": number(&tool["id"])}]});
    let made = app.post(BOUND, bound).await.expect(201);
    text(&made["api_key"]).to_owned()
}

/// Asks for a large answer and reads no further than its status.
async fn ask(app: &App, key: &str) -> (TcpStream, String) {
    let address = app.url.strip_prefix("http://").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    // The system would take megabytes of it in our place.
    socket.set_recv_buffer_size(4096).unwrap();
    let mut talk = socket.connect(address).await.unwrap();
    let params = json!({"name": "big", "arguments": {"bytes": ANSWER}});
    let body = modern_body(1, "tools/call", params).to_string();
    let head = format!(
        "POST /api/v1/mcp_v2/server/{key} HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: big\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    talk.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let read = timeout(PATIENCE, talk.read(&mut answer)).await;
    answer.truncate(read.expect("an answer").unwrap());
    (talk, String::from_utf8(answer).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn t_answers_that_nobody_reads_stay_within_a_share_of_the_budget() {
    let app = setup()
        .mcp(fixtures(&[("x", &[])]))
        .env("PORTWAY_MEMORY_BUDGET", "64MiB")
        // On a slow machine the first answers would be given up before the last is asked for.
        .env("PORTWAY_WRITE_TIMEOUT", "10m")
        .start()
        .await;
    app.until_status("x", "connected").await;
    let key = entry(&app).await;
    let other = entry(&app).await;
    let before = resident(&app);
    let (mut open, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..UNREAD {
        let (talk, answer) = ask(&app, &key).await;
        match answer.starts_with("HTTP/1.1 200") {
            true => open.push(talk),
            false => refused.push(answer),
        }
    }
    let grown = resident(&app).saturating_sub(before);
    println!(
        "{} unread answers, {} refused: {} MiB",
        open.len(),
        refused.len(),
        grown / MIB
    );
    // A quarter of the budget, at seven MiB each.
    assert!((1..=2).contains(&open.len()), "{} are open", open.len());
    for answer in &refused {
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("retry-after: 1"), "{answer}");
        assert!(answer.contains("16 MiB"), "{answer}");
    }
    assert!(grown < ANSWER * UNREAD as u64 / 2, "{} MiB", grown / MIB);

    // Others are served meanwhile, and this key is again once it has read.
    let agent = Agent::new(&app, &other, (EntryRoute::Address, EntryEra::Modern)).await;
    assert!(is_big(&agent.call("big", json!({"bytes": ANSWER})).await));
    app.get("/api/mcp/servers").await.expect(200);
    drop(open);
    let agent = Agent::new(&app, &key, (EntryRoute::Address, EntryEra::Legacy)).await;
    let served = async { while !is_big(&agent.call("big", json!({"bytes": ANSWER})).await) {} };
    timeout(PATIENCE, served).await.expect("it is served again");
    eventually("memory is given back", || {
        resident(&app) < before + 32 * MIB
    })
    .await;
}

fn is_big(answer: &Value) -> bool {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.is_some_and(|text| text.len() as u64 == ANSWER)
}
