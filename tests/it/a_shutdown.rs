//! SPEC A11: when Portway ends, in order or not, nothing of it remains.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::app::{App, PATIENCE, Setup, fixture, fixtures, setup};
use crate::process::forest::rounds;

/// As bad as it gets: one that ignores everything, daemons that left the
/// session, what `npx` makes (npm, sh, node), and a well-behaved one.
fn unruly() -> Value {
    let heart = ["--heartbeat", "heart"];
    let with = |args: &[&str]| -> Value {
        let args: Vec<&str> = args.iter().copied().chain(heart).collect();
        json!({"command": fixture(), "args": args})
    };
    let npx = format!(
        "sh -c \"'{}' --ignore-eof --fork tree --heartbeat heart; :\"; :",
        fixture()
    );
    json!({"mcpServers": {
        "deaf": with(&["--ignore-eof", "--ignore-term", "--fork", "daemon"]),
        "comet": with(&["--fork", "comet", "--fork", "tree"]),
        "npx": {"command": "sh", "args": ["-c", npx]},
        "good": with(&[]),
    }})
}

async fn all_connected(app: &App) {
    for record in app.list().await {
        app.until_status(record["name"].as_str().unwrap(), "connected")
            .await;
    }
}

/// No process is left, and what forks faster than we look beats no more.
fn assert_nothing_left(setup: &Setup) {
    let start = Instant::now();
    while !setup.processes().is_empty() {
        let left = setup.processes();
        assert!(start.elapsed() < PATIENCE, "{left:?} are left");
        std::thread::sleep(Duration::from_millis(5));
    }
    let heart = setup.path().join("heart");
    let beats = || std::fs::metadata(&heart).map_or(0, |file| file.len());
    let before = beats();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(beats(), before, "the heart goes on");
}

async fn ends_in_order(signal: Signal) {
    let mut app = setup()
        .mcp(unruly())
        .env("PORTWAY_STOP_GRACE", "300ms")
        .start()
        .await;
    all_connected(&app).await;
    app.signal(signal);
    assert_eq!(app.ended().await, Some(0), "{}", app.log());
    // At once: not eventually.
    assert_eq!(app.setup.processes(), [0; 0]);
    assert_nothing_left(&app.setup);
}

#[tokio::test]
async fn a11_sigterm_ends_every_process_and_exits_0() {
    ends_in_order(Signal::SIGTERM).await;
}

#[tokio::test]
async fn a11_sigint_ends_every_process_and_exits_0() {
    ends_in_order(Signal::SIGINT).await;
}

#[tokio::test]
async fn a11_obedient_servers_end_in_moments() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &["--era", "legacy"])]))
        // The test would never end if a grace were waited for.
        .env("PORTWAY_STOP_GRACE", "600s")
        .start()
        .await;
    all_connected(&app).await;
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn a11_a_second_signal_ends_everything_at_once() {
    let mut app = setup()
        .mcp(unruly())
        .env("PORTWAY_STOP_GRACE", "60s")
        .start()
        .await;
    all_connected(&app).await;
    app.signal(Signal::SIGTERM);
    crate::app::eventually("it is told", || app.log().contains("SIGTERM")).await;
    app.signal(Signal::SIGINT);
    assert_eq!(app.ended().await, Some(130));
    assert_nothing_left(&app.setup);
}

#[tokio::test]
async fn a11_a_request_in_flight_is_answered_and_new_ones_are_not_taken() {
    let slow = json!({"command": fixture(), "args": ["--late", "800"], "disabled": true});
    let mut app = setup()
        .mcp(json!({"mcpServers": {"slow": slow}}))
        .start()
        .await;
    let pid = Pid::from_raw(app.pid());
    let end = async {
        app.until_status("slow", "connecting").await;
        kill(pid, Signal::SIGTERM).unwrap();
    };
    let (up, ()) = tokio::join!(app.act("slow", "start"), end);
    assert_eq!(up["status"], "connected");
    assert_eq!(app.ended().await, Some(0));
    assert_nothing_left(&app.setup);
    let port = app.url.strip_prefix("http://").unwrap();
    assert!(std::net::TcpStream::connect(port).is_err());
}

#[tokio::test]
async fn a11_sigterm_during_the_start_leaves_nothing() {
    for round in 0..rounds(6, 60) {
        let setup = setup().mcp(unruly()).env("PORTWAY_STOP_GRACE", "50ms");
        let mut child = setup.spawn();
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..400_000))).await;
        let pid = Pid::from_raw(child.id().unwrap() as i32);
        kill(pid, Signal::SIGTERM).unwrap();
        let status = tokio::time::timeout(PATIENCE, child.wait()).await;
        let status = status.expect("it ends").unwrap();
        // Before its handler is in place the signal itself ends it.
        let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let fine = status.code() == Some(0) || by_signal == Some(Signal::SIGTERM as i32);
        assert!(fine, "round {round}: {status:?}");
        assert_nothing_left(&setup);
    }
}

#[tokio::test]
async fn a11_soak_sigkill_leaves_nothing() {
    let mut times = Vec::new();
    for _ in 0..rounds(3, 100) {
        let mut app = setup().mcp(unruly()).start().await;
        all_connected(&app).await;
        beating(&app.path("heart")).await;
        app.signal(Signal::SIGKILL);
        app.ended().await;
        times.push(time_to_nothing(&app.setup));
        assert_nothing_left(&app.setup);
    }
    report("SIGKILL with four unruly servers", times);
}

#[tokio::test]
async fn a11_soak_sigkill_during_the_start_leaves_nothing() {
    let mut times = Vec::new();
    for _ in 0..rounds(6, 100) {
        let setup = setup().mcp(unruly());
        let mut child = setup.spawn();
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..400_000))).await;
        child.kill().await.unwrap();
        times.push(time_to_nothing(&setup));
        assert_nothing_left(&setup);
    }
    report("SIGKILL at a random moment of the start", times);
}

#[tokio::test]
async fn a11_an_ordinary_user_leaves_nothing_either() {
    let start = || setup().mcp(unruly()).env("PORTWAY_STOP_GRACE", "100ms");
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut app = start().for_nobody().start().await;
        all_connected(&app).await;
        app.signal(signal);
        app.ended().await;
        assert_nothing_left(&app.setup);
    }
}

async fn beating(heart: &Path) {
    crate::app::eventually("the daemons run", || {
        std::fs::metadata(heart).is_ok_and(|file| file.len() > 200)
    })
    .await;
}

fn time_to_nothing(setup: &Setup) -> Duration {
    let start = Instant::now();
    while !setup.processes().is_empty() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!(
        "{what}: {} rounds, 0 left; to nothing: median {:?}, longest {:?}",
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1]
    );
}
