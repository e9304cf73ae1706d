//! A connection that rests gives its memory back, and nobody notices.

use std::time::Duration;

use portway_http::EdgeLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::{PATIENCE, TestEdge, bearer, request};

/// A rest begins in nearly every pause.
fn restless() -> EdgeLimits {
    EdgeLimits {
        rest: Duration::from_millis(1),
        ..EdgeLimits::default()
    }
}

fn echo(body: &str) -> String {
    request("POST", "/api/echo", &bearer(), body).replace("Connection: close\r\n", "")
}

#[tokio::test]
async fn t_f5_a_connection_that_has_rested_is_served_as_before() {
    let edge = TestEdge::with(restless()).await;
    let mut client = edge.connect().await;
    for round in 0..100 {
        let body = format!("{{\"round\":{round}}}");
        let asked = echo(&body);
        // Cut anywhere: in the head, in the body, and between the two.
        let (first, second) = asked.split_at(round * asked.len() / 100);
        client.send(first).await;
        sleep(Duration::from_millis(round as u64 % 7)).await;
        client.send(second).await;
        assert_eq!(client.answer().await.body(), body);
        sleep(Duration::from_millis(round as u64 % 5)).await;
    }
    assert_eq!(edge.hits(), 100);
}

#[tokio::test]
async fn t_f5_a_slow_reader_gets_the_whole_answer_from_a_connection_that_rests() {
    const ASKED: usize = 200;
    let edge = TestEdge::with(restless()).await;
    let mut client = edge.connect().await;
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(60_000));
    let asked = echo(&body);
    client.send(&asked).await;
    let one = client.answer().await.text.len();
    // More than the kernel takes for a client that does not read.
    let (mut read, mut write) = client.socket.into_split();
    let sending = async move {
        for _ in 0..ASKED {
            write.write_all(asked.as_bytes()).await.unwrap();
        }
        write
    };
    let reading = async {
        let mut part = vec![0; 1 << 20];
        let mut got = 0;
        while got < ASKED * one {
            let count = read.read(&mut part).await.unwrap();
            assert!(count > 0, "it ended after {got} bytes");
            got += count;
            sleep(Duration::from_millis(3)).await;
        }
        got
    };
    let both = timeout(PATIENCE, async { tokio::join!(sending, reading) });
    let (_write, got) = both.await.expect("all of it comes");
    assert_eq!((got, edge.hits()), (ASKED * one, ASKED + 1));
}
