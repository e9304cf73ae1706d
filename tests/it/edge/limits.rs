//! Clients that are slow, silent or too many (threats F5), and shutdown.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use portway_http::EdgeLimits;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{PATIENCE, TestEdge, bearer, request, until};

const SHORT: Duration = Duration::from_millis(300);

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", bearer())
}

#[tokio::test]
async fn t_f5_a_silent_connection_is_closed() {
    let edge = TestEdge::with(EdgeLimits {
        first_byte: SHORT,
        ..EdgeLimits::default()
    })
    .await;
    let started = Instant::now();
    let reply = edge.connect().await.rest().await;
    assert_eq!(reply.text, "");
    assert!(started.elapsed() >= SHORT);
}

#[tokio::test]
async fn t_f5_a_head_in_drips_is_answered_408() {
    let edge = TestEdge::with(EdgeLimits {
        header: SHORT,
        ..EdgeLimits::default()
    })
    .await;
    let mut client = edge.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: local").await;
    let reply = client.rest().await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (408, "REQUEST_TIMEOUT")
    );

    // Dripping does not extend it, also not on a connection that was good.
    let mut client = edge.connect().await;
    client.send(get("/api/touch")).await;
    assert_eq!(client.answer().await.status(), 200);
    let dripped = async {
        for byte in b"GET / HTTP/1.1\r\nX: ".iter().chain([b'y'].iter().cycle()) {
            client.send([*byte]).await;
            let pause = client.socket.readable();
            if timeout(Duration::from_millis(20), pause).await.is_ok() {
                break;
            }
        }
    };
    timeout(PATIENCE, dripped).await.unwrap();
    assert_eq!(client.rest().await.status(), 408);
}

#[tokio::test]
async fn t_f5_a_body_in_drips_is_answered_408() {
    let edge = TestEdge::with(EdgeLimits {
        body: SHORT,
        ..EdgeLimits::default()
    })
    .await;
    let mut client = edge.connect().await;
    let full = request("POST", "/api/echo", &bearer(), r#"{"a":"b"}"#);
    client.send(&full[..full.len() - 3]).await;
    let reply = client.rest().await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (408, "REQUEST_TIMEOUT")
    );
    assert_eq!(edge.hits(), 0);
}

#[tokio::test]
async fn t_f5_a_body_must_keep_up_a_rate() {
    let limits = EdgeLimits {
        body_grace: SHORT,
        body_rate: 1024,
        ..EdgeLimits::default()
    };
    let edge = TestEdge::with(limits).await;
    let text = format!("{{\"a\":\"{}\"}}", "x".repeat(8 * 1024));
    let full = request("POST", "/api/echo", &bearer(), &text);

    // Its first half earns the sender seconds that it then takes.
    let mut client = edge.connect().await;
    let (first, second) = full.split_at(full.len() / 2);
    client.send(first).await;
    tokio::time::sleep(2 * SHORT).await;
    client.send(second).await;
    assert_eq!(client.rest().await.status(), 200);

    let mut client = edge.connect().await;
    client.send(&full[..full.len() - text.len() + 1]).await;
    assert_eq!(client.rest().await.status(), 408);
}

#[tokio::test]
async fn t_f5_an_idle_connection_is_closed_but_never_a_working_one() {
    let short = Duration::from_secs(1);
    let edge = TestEdge::with(EdgeLimits {
        first_byte: short,
        header: short,
        body: short,
        write_stall: short,
        idle: short,
        ..EdgeLimits::default()
    })
    .await;
    let mut client = edge.connect().await;
    client.send(get("/api/slow/2000")).await;
    let reply = client.answer().await;
    assert_eq!(
        reply.status(),
        200,
        "an answer may take longer than silence"
    );
    assert_eq!(client.rest().await.text, "");
}

#[tokio::test]
async fn t_a_client_that_reads_too_slowly_is_cut() {
    let edge = TestEdge::with(EdgeLimits {
        write_stall: SHORT,
        // Nobody reads as fast as this.
        write_rate: 1 << 40,
        ..EdgeLimits::default()
    })
    .await;
    let mut client = edge.connect().await;
    client.send(get("/api/endless")).await;
    let mut buffer = vec![0; 16 << 10];
    let reading = async {
        // It always takes something before the pause is over.
        while matches!(client.socket.read(&mut buffer).await, Ok(1..)) {
            tokio::time::sleep(SHORT / 30).await;
        }
    };
    timeout(PATIENCE, reading).await.expect("it is cut");
    until("the answer is given up", || {
        edge.open.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn t_f5_a_client_that_does_not_read_is_cut() {
    let edge = TestEdge::with(EdgeLimits {
        write_stall: SHORT,
        ..EdgeLimits::default()
    })
    .await;
    let mut client = edge.connect().await;
    client.send(get("/api/endless")).await;
    until("the answer begins", || {
        edge.open.load(Ordering::SeqCst) == 1
    })
    .await;
    until("the answer is given up", || {
        edge.open.load(Ordering::SeqCst) == 0
    })
    .await;
    assert_eq!(edge.ask("GET", "/api/touch", "", "").await.status(), 200);
}

#[tokio::test]
async fn t_fault_5_a_client_that_leaves_ends_its_request() {
    let edge = TestEdge::start().await;
    for path in ["/api/endless", "/api/never"] {
        let mut client = edge.connect().await;
        client.send(get(path)).await;
        until("the request is handled", || {
            edge.open.load(Ordering::SeqCst) == 1
        })
        .await;
        drop(client);
        until("the handler is dropped", || {
            edge.open.load(Ordering::SeqCst) == 0
        })
        .await;
    }
}

#[tokio::test]
async fn t_f5_connections_are_counted() {
    let edge = TestEdge::with(EdgeLimits {
        connections: 3,
        reserve: 0,
        ..EdgeLimits::default()
    })
    .await;
    let mut held = Vec::new();
    for count in 1..=3 {
        let mut client = edge.connect().await;
        client.send(get("/api/never")).await;
        held.push(client);
        until("it waits", || edge.open.load(Ordering::SeqCst) == count).await;
    }
    let reply = edge.connect().await.rest().await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (503, "UNAVAILABLE")
    );
    held.pop();
    let freed = async {
        while edge.ask("GET", "/api/touch", "", "").await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, freed).await.unwrap();
}

/// Fault 3, with the counts of a test machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_fault_3_half_open_connections_disturb_nobody() {
    let limits = EdgeLimits {
        first_byte: Duration::from_secs(2),
        header: Duration::from_secs(2),
        ..EdgeLimits::default()
    };
    let edge = TestEdge::with(limits).await;
    let mut half_open = Vec::new();
    for at in 0..200 {
        let mut client = edge.connect().await;
        if at % 2 == 0 {
            client.send("POST /api/echo HTT").await;
        }
        half_open.push(client);
    }
    let mut live = edge.connect().await;
    for _ in 0..200 {
        live.send(get("/api/touch")).await;
        assert_eq!(live.answer().await.status(), 200);
    }
    for mut client in half_open {
        let reply = client.rest().await;
        assert!(reply.text.is_empty() || reply.status() == 408, "{reply:?}");
    }
}

/// Without TCP_NODELAY an answer in two writes waits for a delayed ACK, 40 ms:
/// hundreds of times what an answer in one write takes in the same run.
#[tokio::test]
async fn small_writes_are_sent_at_once() {
    let edge = TestEdge::start().await;
    let mut client = edge.connect().await;
    client.socket.set_nodelay(false).unwrap();
    let (mut one_write, mut two_writes) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..300 {
        let started = Instant::now();
        client.send(get("/api/touch")).await;
        assert_eq!(client.answer().await.status(), 200);
        one_write += started.elapsed();
        let started = Instant::now();
        client.send(get("/api/pair")).await;
        let mut seen = String::new();
        while !seen.ends_with("0\r\n\r\n") {
            let mut part = [0; 1024];
            let read = timeout(
                PATIENCE,
                tokio::io::AsyncReadExt::read(&mut client.socket, &mut part),
            );
            let read = read.await.unwrap().unwrap();
            assert!(read > 0, "closed after {seen:?}");
            seen.push_str(std::str::from_utf8(&part[..read]).unwrap());
        }
        two_writes += started.elapsed();
    }
    assert!(two_writes < one_write * 20, "{two_writes:?}, {one_write:?}");
}

#[tokio::test]
async fn a11_shutdown_finishes_what_is_in_flight_and_takes_nothing_new() {
    let edge = TestEdge::start().await;
    let mut idle = edge.connect().await;
    idle.send(get("/api/touch")).await;
    assert_eq!(idle.answer().await.status(), 200);
    let mut silent = edge.connect().await;
    let mut busy = edge.connect().await;
    busy.send(get("/api/slow/500")).await;
    until("the request is in flight", || edge.hits() == 1).await;
    edge.shutdown.cancel();
    assert_eq!(idle.rest().await.text, "");
    assert_eq!(silent.rest().await.text, "");
    let reply = busy.rest().await;
    assert_eq!((reply.status(), reply.body()), (200, "slow"));
    timeout(PATIENCE, edge.server).await.unwrap().unwrap();
    assert!(TcpStream::connect(edge.addr).await.is_err());
}

#[tokio::test]
async fn a11_shutdown_cuts_what_does_not_finish() {
    let edge = TestEdge::with(EdgeLimits {
        drain: SHORT,
        ..EdgeLimits::default()
    })
    .await;
    let mut client = edge.connect().await;
    client.send(get("/api/endless")).await;
    until("the answer begins", || {
        edge.open.load(Ordering::SeqCst) == 1
    })
    .await;
    edge.shutdown.cancel();
    timeout(PATIENCE, edge.server).await.unwrap().unwrap();
    assert_eq!(edge.open.load(Ordering::SeqCst), 0);
}
