//! Gateways that nobody but `connect` has started.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::{StdioClient, command, empty, refused};
use crate::app::{Setup, alive, eventually, fixtures, setup};

fn house() -> Setup {
    setup().mcp(fixtures(&[("x", &[])]))
}

fn start(house: &Setup, linger: &str) -> StdioClient {
    let mut command = command(house, &["--linger", linger]);
    command.env("PORTWAY_LISTEN", "127.0.0.1:0");
    StdioClient::run(command)
}

/// The process that holds the data directory.
fn gateway(house: &Setup) -> i32 {
    let text = std::fs::read_to_string(house.path().join("data/lock")).unwrap();
    text.trim().parse().unwrap()
}

#[tokio::test]
async fn k5_one_gateway_for_two_that_start_at_once_and_none_when_both_have_gone() {
    let house = house();
    let (mut one, mut two) = (start(&house, "0.5"), start(&house, "0.5"));
    for client in [&mut one, &mut two] {
        client.hello("2025-11-25", json!({})).await;
        // Its servers are there before the first look at the tools.
        assert_eq!(client.call("mcp_x_echo", json!({"text": "a"})).await, "a");
    }
    let first = one.call("mcp_x_pid", json!({})).await;
    assert_eq!(two.call("mcp_x_pid", json!({})).await, first);
    let gateway = gateway(&house);
    assert_eq!(one.close().await, Some(0));
    // The other still has it, however long.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(two.call("mcp_x_pid", json!({})).await, first);
    assert!(alive(gateway.into()));
    assert_eq!(two.close().await, Some(0));
    empty(&house).await;
    let log = std::fs::read_to_string(house.path().join("data/gateway.log")).unwrap();
    assert!(log.contains("nobody has been here"), "{log}");
    assert!(!house.path().join("data/address").exists());
}

#[tokio::test]
async fn k5_a_gateway_of_its_clients_is_started_again_when_it_dies() {
    let house = house();
    let mut client = start(&house, "0.5");
    client.hello("2025-11-25", json!({})).await;
    client.call("mcp_x_pid", json!({})).await;
    let first = gateway(&house);
    kill(Pid::from_raw(first), Signal::SIGKILL).unwrap();
    // As long as one of its threads is left, so are its connections.
    let threads = || std::fs::read_dir(format!("/proc/{first}/task")).map_or(0, Iterator::count);
    eventually("it is dead", || !alive(first.into()) && threads() <= 1).await;
    assert_eq!(client.call("mcp_x_echo", json!({"text": "b"})).await, "b");
    assert_ne!(gateway(&house), first);
    assert_eq!(client.close().await, Some(0));
    empty(&house).await;
}

#[tokio::test]
async fn k5_clients_that_are_killed_leave_no_gateway() {
    let house = house();
    let mut client = start(&house, "0.5");
    client.hello("2025-11-25", json!({})).await;
    client.call("mcp_x_pid", json!({})).await;
    client.signal(Signal::SIGKILL);
    client.ended().await;
    empty(&house).await;
}

#[tokio::test]
async fn k5_a_gateway_outlives_what_is_done_to_the_group_and_children_of_its_first_client() {
    let house = house();
    let mut first = command(&house, &["--linger", "0.5"]);
    first.env("PORTWAY_LISTEN", "127.0.0.1:0").process_group(0);
    let mut first = StdioClient::run(first);
    first.hello("2025-11-25", json!({})).await;
    let mut second = start(&house, "0.5");
    second.hello("2025-11-25", json!({})).await;
    let pid = second.call("mcp_x_pid", json!({})).await;
    // Some clients look for all that their child has started.
    let children = format!("/proc/{0}/task/{0}/children", first.pid());
    assert_eq!(std::fs::read_to_string(children).unwrap().trim(), "");
    nix::sys::signal::killpg(Pid::from_raw(first.pid()), Signal::SIGKILL).unwrap();
    first.ended().await;
    assert_eq!(second.call("mcp_x_pid", json!({})).await, pid);
    assert_eq!(second.close().await, Some(0));
    empty(&house).await;
}

#[tokio::test]
async fn k5_another_port_is_taken_where_the_usual_one_is() {
    // Whoever has it: it is not to be had.
    let _taken = std::net::TcpListener::bind("127.0.0.1:7420");
    let house = house();
    let mut client = StdioClient::start(&house, &["--linger", "0.5"]);
    client.hello("2025-11-25", json!({})).await;
    let address = std::fs::read_to_string(house.path().join("data/address")).unwrap();
    assert!(address.starts_with("http://127.0.0.1:") && !address.contains(":7420"));
    assert_eq!(client.close().await, Some(0));
    empty(&house).await;
}

#[tokio::test]
async fn k5_a_gateway_that_cannot_start_says_why() {
    let house = house();
    let mut wrong = command(&house, &[]);
    wrong.env("PORTWAY_DRAIN", "soon");
    let (code, text) = refused(wrong).await;
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("PORTWAY_DRAIN"), "{text}");

    // Only the gateway finds out.
    let mut taken = command(&house, &[]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    taken.env("PORTWAY_LISTEN", &address);
    let (code, text) = refused(taken).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("cannot listen on"), "{text}");

    std::fs::write(house.path().join("file"), "").unwrap();
    let (code, text) = refused(command(&house, &["--project", "file"])).await;
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--project"), "{text}");
    eventually("nothing is left", || house.processes().is_empty()).await;
}
