//! A gateway that goes away and comes back, at another port each time.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{RUNS, StdioClient, error, heard, recorded, text};
use crate::app::{App, eventually};
use crate::mcp_front::portway;

const CHANGED: &str = "notifications/tools/list_changed";

/// A server that is there before a client may ask for it.
async fn up(app: App) -> App {
    app.until_status("x", "connected").await;
    app
}

async fn killed(mut app: App) -> App {
    app.signal(Signal::SIGKILL);
    app.ended().await;
    up(app.setup.start().await).await
}

async fn begin(client: &mut StdioClient, modern: bool, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    match modern {
        false => client.begin("tools/call", params).await,
        true => client.begin_modern("tools/call", params).await,
    }
}

#[tokio::test]
async fn k5_a_call_in_flight_is_told_and_the_next_ones_work() {
    for modern in [false, true] {
        let app = recorded().await;
        let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
        if !modern {
            client.hello("2025-11-25", json!({})).await;
        }
        let lost = begin(&mut client, modern, "hang", json!({})).await;
        heard(&app, RUNS).await;
        let app = killed(app).await;
        let answer = client.answer(lost).await;
        assert!(error(&answer).contains("went away"), "{answer}");
        let id = begin(&mut client, modern, "echo", json!({"text": "again"})).await;
        assert_eq!(text(&client.answer(id).await), "again");
        // Neither was sent twice.
        let id = begin(&mut client, modern, "count", json!({})).await;
        assert_eq!(text(&client.answer(id).await), "1");
        drop(app);
    }
}

#[tokio::test]
async fn k5_a_session_goes_on_after_an_orderly_restart() {
    let app = recorded().await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-11-25", json!({})).await;
    let level = json!({"level": "debug"});
    client.ask("logging/setLevel", level).await;
    // What runs is finished first.
    let id = begin(
        &mut client,
        false,
        "sleep",
        json!({"ms": 300, "text": "done"}),
    )
    .await;
    heard(&app, "\"name\":\"sleep\"").await;
    let app = up(app.again().await).await;
    assert_eq!(text(&client.answer(id).await), "done");
    assert_eq!(client.call("echo", json!({"text": "b"})).await, "b");
    eventually("told to look again", || client.count(CHANGED) > 0).await;
    // The level it had asked for holds in the new one too.
    let params = json!({"name": "log", "arguments": {"level": "debug", "message": "psst"}});
    client.ask("tools/call", params).await;
    client.told("notifications/message").await;
    drop(app);
}

#[tokio::test]
async fn k5_requests_wait_for_a_gateway_that_is_away_but_not_for_ever() {
    let mut app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-11-25", json!({})).await;
    app.signal(Signal::SIGKILL);
    app.ended().await;
    let early = begin(&mut client, false, "echo", json!({"text": "a"})).await;
    let modern = begin(&mut client, true, "echo", json!({"text": "b"})).await;
    let mut app = app.setup.start().await;
    assert_eq!(text(&client.answer(early).await), "a");
    assert_eq!(text(&client.answer(modern).await), "b");
    app.signal(Signal::SIGKILL);
    app.ended().await;
    let never = client.ask("tools/list", json!({})).await;
    assert!(error(&never).contains("no Portway answers at"), "{never}");
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn k5_whoever_takes_the_port_of_a_killed_gateway_gets_no_key() {
    // Another test that runs beside this one may just have been given the port.
    let mut tries = 0;
    let (app, mut client, somebody) = loop {
        let mut app = portway(&[]).await;
        let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
        client.hello("2025-11-25", json!({})).await;
        let port = app.url.rsplit(':').next().unwrap().to_owned();
        app.signal(Signal::SIGKILL);
        app.ended().await;
        tries += 1;
        match std::net::TcpListener::bind(format!("127.0.0.1:{port}")) {
            Ok(somebody) => break (app, client, somebody),
            Err(error) => assert!(tries < 5, "port {port}: {error}"),
        }
    };
    somebody.set_nonblocking(true).unwrap();
    let waiting = begin(&mut client, false, "echo", json!({"text": "a"})).await;
    let other = begin(&mut client, true, "echo", json!({"text": "b"})).await;
    let app = app.setup.start().await;
    assert_eq!(text(&client.answer(waiting).await), "a");
    assert_eq!(text(&client.answer(other).await), "b");
    let came = somebody.accept();
    assert!(came.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    drop(app);
}

#[tokio::test]
async fn k5_a_session_that_is_unknown_is_opened_anew_unnoticed() {
    let app = portway(&[]).await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    client.hello("2025-06-18", json!({})).await;
    assert_eq!(client.call("echo", json!({"text": "a"})).await, "a");
    // What seals the sessions is gone, and so are all of them.
    let secret = app.path("data/session_secret");
    let mut app = app;
    app.signal(Signal::SIGTERM);
    app.ended().await;
    std::fs::remove_file(secret).unwrap();
    let app = up(app.setup.start().await).await;
    assert_eq!(client.call("echo", json!({"text": "b"})).await, "b");
    eventually("told to look again", || client.count(CHANGED) > 0).await;
    let hellos = client
        .seen()
        .iter()
        .filter(|m| m["result"]["protocolVersion"].is_string())
        .count();
    assert_eq!(hellos, 1, "the client had its answer long ago");
    drop(app);
}
