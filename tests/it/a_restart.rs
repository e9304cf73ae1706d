//! SPEC A6, A7: a server that dies or hangs is noticed and restarted, so
//! often and no oftener.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, alive, eventually, fixture, fixtures, pid, setup};
use crate::rooms::Rooms;

/// When a fixture with `--instance-file starts` was started, in ms.
fn starts(app: &App) -> Vec<u64> {
    let text = std::fs::read_to_string(app.path("starts")).unwrap_or_default();
    let time = |line: &str| line.split_once(' ').unwrap().1.parse().unwrap();
    text.lines().map(time).collect()
}

/// How long Portway says it waits before each restart, in ms.
fn announced(app: &App) -> Vec<u64> {
    let log = app.log();
    let waits = log.split("next try in ").skip(1);
    waits
        .map(|rest| rest.split_once(" ms").unwrap().0.parse().unwrap())
        .collect()
}

/// Every status a server goes through until it is as `fits` says.
async fn history(app: &App, name: &str, fits: impl Fn(&Value) -> bool) -> Vec<(String, Value)> {
    let start = Instant::now();
    let mut seen: Vec<(String, Value)> = Vec::new();
    loop {
        let record = app.server(name).await;
        let status = record["status"].as_str().unwrap().to_owned();
        let done = fits(&record);
        if seen.last().is_none_or(|(last, _)| *last != status) {
            seen.push((status, record));
        }
        if done {
            return seen;
        }
        assert!(start.elapsed() < PATIENCE, "{seen:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn words(history: &[(String, Value)]) -> Vec<&str> {
    history.iter().map(|(word, _)| word.as_str()).collect()
}

fn send(pid: i64, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

#[tokio::test]
async fn a6_a_killed_server_is_noticed_at_once_and_restarted() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .start()
        .await;
    let before = app.until_status("one", "connected").await;
    let two = app.until_status("two", "connected").await;
    send(pid(&before), Signal::SIGKILL);
    let after = |record: &Value| record["status"] == "connected" && record["pid"] != before["pid"];
    let seen = history(&app, "one", after).await;
    let lost = seen.iter().find(|(word, _)| word == "disconnected");
    let lost = &lost.unwrap_or_else(|| panic!("{seen:#?}")).1;
    let error = lost["error"].as_str().unwrap();
    assert!(error.contains("signal 9 (SIGKILL)"), "{error}");
    assert_eq!(
        (&lost["toolCount"], &lost["pid"]),
        (&json!(0), &Value::Null)
    );
    let up = &seen.last().unwrap().1;
    assert_eq!((&up["restarts"], &up["error"]), (&json!(1), &Value::Null));
    assert_eq!(up["toolCount"], before["toolCount"]);
    assert_eq!(app.server("two").await["pid"], two["pid"]);
}

#[tokio::test]
async fn h2_a_server_that_will_be_restarted_says_when() {
    let args = &[
        "--exit",
        "7",
        "--instance-file",
        "starts",
        "--only-first",
        "2",
    ];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    let seen = history(&app, "one", |record| record["status"] == "connected").await;
    for (word, record) in &seen {
        match word.as_str() {
            "error" => assert!(
                record["retryAt"].as_u64() > record["since"].as_u64(),
                "{record}"
            ),
            _ => assert_eq!(record["retryAt"], Value::Null, "{record}"),
        }
    }
    assert!(words(&seen).contains(&"error"), "{:?}", words(&seen));
}

#[tokio::test]
async fn a6_a_crash_loop_gets_three_restarts_with_growing_gaps_then_error() {
    let args = &[
        "--crash-after",
        "200",
        "--instance-file",
        "starts",
        "--stderr",
        "here we go",
    ];
    let app = setup()
        .mcp(fixtures(&[("one", args), ("good", &[])]))
        .start()
        .await;
    let good = app.until_status("good", "connected").await;
    let seen = history(&app, "one", |record| record["status"] == "error").await;
    assert!(words(&seen).contains(&"disconnected"), "{:?}", words(&seen));

    let times = starts(&app);
    assert_eq!(times.len(), 4, "one start and three restarts: {times:?}");
    let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    let waits = announced(&app);
    println!("waits before restarts, ms: {waits:?}; from start to start: {gaps:?}");
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert!(waits[0] < waits[1] && waits[1] < waits[2], "{waits:?}");
    assert!(waits[0] >= 400 && waits[2] <= 2400, "{waits:?}");
    for (gap, wait) in gaps.iter().zip(&waits) {
        assert!(gap >= wait, "{gaps:?} for {waits:?}");
    }

    let last = &seen.last().unwrap().1;
    assert_eq!(last["restarts"], 3);
    let error = last["error"].as_str().unwrap();
    for part in ["exit code 3", "here we go", "crashing as told", &fixture()] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    assert_eq!(app.server("good").await["pid"], good["pid"]);
    assert_eq!(starts(&app).len(), 4, "and it stays so");

    // A person may ask again, with a fresh count.
    let again = app.act("one", "start").await;
    assert_eq!(again["status"], "connected");
    assert_eq!(again["restarts"], 0);
}

#[tokio::test]
async fn a6_a_failed_start_is_tried_again_too() {
    let args = &[
        "--exit",
        "7",
        "--instance-file",
        "starts",
        "--only-first",
        "2",
    ];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    let seen = history(&app, "one", |record| record["status"] == "connected").await;
    assert!(words(&seen).contains(&"error"), "{:?}", words(&seen));
    assert_eq!(seen.last().unwrap().1["restarts"], 2);
    assert_eq!(starts(&app).len(), 3);
}

#[tokio::test]
async fn a6_one_that_closes_its_stdout_but_stays_is_replaced() {
    // A wrapper whose server is gone: nothing will ever be said again.
    let script = format!("'{}' --crash-after 200; exec >&-; sleep 1000", fixture());
    let app = setup()
        .mcp(json!({"mcpServers": {"one": {"command": "sh", "args": ["-c", script]}}}))
        .env("PORTWAY_STOP_GRACE", "30s")
        .start()
        .await;
    let before = app.until_status("one", "connected").await;
    // Told at once, though ending it takes its time.
    let lost = app.until_status("one", "disconnected").await;
    let error = lost["error"].as_str().unwrap();
    assert!(error.contains("closed its stdout"), "{error}");
    assert!(alive(pid(&before)), "the grace is not over");
}

#[tokio::test]
async fn a6_a_stop_while_it_waits_for_its_restart_is_obeyed() {
    let args = &["--exit", "1", "--instance-file", "starts"];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    app.until_status("one", "error").await;
    let stopped = app.act("one", "stop").await;
    assert_eq!(
        (&stopped["status"], &stopped["error"]),
        (&json!("disconnected"), &Value::Null)
    );
    let count = starts(&app).len();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(starts(&app).len(), count);
}

#[tokio::test]
async fn a6_a_minute_up_and_the_count_starts_anew() {
    let rooms = Rooms::open(&[("one", &[])]).await;
    let restarts = || rooms.fleet.snapshot().servers["one"].restarts;
    for count in 1..=3 {
        rooms.call("one", "crash", json!({})).await.unwrap_err();
        eventually("it is restarted", || restarts() == count).await;
        rooms.connected("one").await;
    }
    // One more would be one too many, but for the minute in between.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    eventually("forgiven", || restarts() == 0).await;
    rooms.call("one", "crash", json!({})).await.unwrap_err();
    eventually("it is restarted", || restarts() == 1).await;
    rooms.connected("one").await;
    rooms.close().await;
}

async fn found_and_restarted(era: &str, stall: &str) {
    let args = [
        "--era",
        era,
        stall,
        "--instance-file",
        "starts",
        "--only-first",
        "1",
    ];
    let app = setup()
        .mcp(fixtures(&[("hangs", &args), ("good", &["--era", era])]))
        .env("PORTWAY_HEALTH_INTERVAL", "200ms")
        .env("PORTWAY_STOP_GRACE", "100ms")
        .start()
        .await;
    let good = app.until_status("good", "connected").await;
    let up = |record: &Value| record["status"] == "connected" && record["restarts"] == 1;
    let seen = history(&app, "hangs", up).await;
    let lost = seen.iter().find(|(word, _)| word == "disconnected");
    let lost = &lost.unwrap_or_else(|| panic!("{seen:#?}")).1;
    let error = lost["error"].as_str().unwrap();
    assert!(error.contains("health check"), "{error}");
    // Checked as often, and not disturbed.
    assert_eq!(app.server("good").await["pid"], good["pid"]);
}

#[tokio::test]
async fn a7_a_hung_legacy_server_is_found_by_its_ping_and_restarted() {
    found_and_restarted("legacy", "--stall=health").await;
}

#[tokio::test]
async fn a7_a_hung_modern_server_is_found_by_its_discover_and_restarted() {
    found_and_restarted("modern", "--stall=health").await;
}

#[tokio::test]
async fn a7_a_frozen_process_is_found_and_replaced() {
    let app = setup()
        .mcp(fixtures(&[("one", &[])]))
        .env("PORTWAY_HEALTH_INTERVAL", "200ms")
        .env("PORTWAY_STOP_GRACE", "100ms")
        .start()
        .await;
    let before = app.until_status("one", "connected").await;
    send(pid(&before), Signal::SIGSTOP);
    let seen = history(&app, "one", |record| {
        record["status"] == "connected" && record["pid"] != before["pid"]
    })
    .await;
    assert!(words(&seen).contains(&"disconnected"), "{:?}", words(&seen));
    assert!(!alive(pid(&before)));
}

#[tokio::test]
async fn a7_a_server_that_reads_nothing_more_is_found() {
    let args = ["--stall", "--instance-file", "starts", "--only-first", "1"];
    // It hangs before its lists: the definition's own limit finds that.
    let server = json!({"command": fixture(), "args": args, "timeout": 500});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .env("PORTWAY_STOP_GRACE", "100ms")
        .start()
        .await;
    let seen = history(&app, "one", |record| record["status"] == "connected").await;
    let failed = seen.iter().find(|(word, _)| word == "error");
    let failed = &failed.unwrap_or_else(|| panic!("{seen:#?}")).1;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("tools/list"), "{error}");
    assert_eq!(starts(&app).len(), 2);
}

/// It waits for an answer that cannot come any more.
#[tokio::test]
async fn a4_a_server_that_asks_when_it_should_end_does_not_use_up_its_time() {
    let args = ["--era", "legacy", "--ask-roots", "300"];
    let app = setup()
        .mcp(fixtures(&[("x", &args)]))
        .env("PORTWAY_STOP_GRACE", "600s")
        .start()
        .await;
    for _ in 0..2 {
        app.until_status("x", "connected").await;
        app.act("x", "restart").await;
        app.until_status("x", "connected").await;
    }
}
