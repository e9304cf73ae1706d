//! Fault 54: the process runs out of file descriptors. In a process of its
//! own, since the limit is the process's.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;

use super::{PATIENCE, RawClient, TestEdge, bearer};

const MARK: &str = "edge at ";

/// Not a test: what the test below runs, with few descriptors.
#[tokio::test]
#[ignore = "started by t_fault_54_running_out_of_descriptors"]
async fn scarce() {
    let edge = TestEdge::start().await;
    println!("\n{MARK}{}", edge.addr);
    // Ends with its parent, or at the latest when nobody can be waiting.
    tokio::time::sleep(Duration::from_secs(120)).await;
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_scarce() -> (KilledOnDrop, SocketAddr) {
    let run = "ulimit -n 40; exec \"$0\" --exact edge::scarcity::scarce --ignored --nocapture";
    let child = Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = KilledOnDrop(child);
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with(MARK));
    (
        child,
        line.expect("the edge says where it is")[MARK.len()..]
            .parse()
            .unwrap(),
    )
}

#[tokio::test]
async fn t_fault_54_running_out_of_descriptors() {
    let (_child, addr) = tokio::task::spawn_blocking(start_scarce).await.unwrap();
    let ask = format!(
        "GET /api/touch HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        bearer()
    );
    let mut first = RawClient::to(addr).await;
    first.send(&ask).await;
    assert_eq!(first.answer().await.status(), 200);

    let health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut crowd = Vec::new();
    for _ in 0..60 {
        let mut client = RawClient::to(addr).await;
        client.send(health).await;
        assert_eq!(client.answer().await.status(), 200);
        crowd.push(client);
    }
    first.send(&ask).await;
    assert_eq!(
        first.answer().await.status(),
        200,
        "strangers give way, not the admin"
    );
    let mut late = RawClient::to(addr).await;
    late.send(&ask).await;
    assert_eq!(
        timeout(PATIENCE, late.answer()).await.unwrap().status(),
        200
    );
}
