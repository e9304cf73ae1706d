//! A database that goes away under load: calls go on, writes are refused in
//! time and work again as soon as it is back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, interval, sleep, timeout};

use super::*;
use crate::app::{PATIENCE, setup};
use crate::cluster::Cluster;

/// Writes are answered by then, whatever the database does.
const ANSWERED: Duration = Duration::from_secs(3);
/// Writes work by then once it is back.
const BACK: Duration = Duration::from_secs(5);
/// Between two calls: 200 in a second.
const EVERY: Duration = Duration::from_millis(5);

/// Its database is its own, for it will be harmed.
async fn on_its_own() -> (Cluster, App, String) {
    let cluster = spawn_blocking(Cluster::start).await.unwrap();
    let database = cluster.database();
    let setup = setup()
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", &cluster.url(&database))
        .mcp(fixtures(&[("x", &[])]));
    let app = setup.start().await;
    app.until_status("x", "connected").await;
    let tool = app.tool_of("say", "x", "echo").await;
    let made = app.new_entry("e", &[tool]).await;
    let key = text(&made["api_key"]).to_owned();
    has_heard(&app, &cluster, &database).await;
    (cluster, app, key)
}

/// Waits until the notices of what was made so far have been read: an entry
/// known to have changed is not served from memory. They come in order.
async fn has_heard(app: &App, cluster: &Cluster, database: &str) {
    let last = app.new_entry("last", &[]).await;
    let key = text(&last["api_key"]);
    let agent = Agent::new(app, key, (Way::Header, Speech::Modern)).await;
    assert_eq!(agent.send("tools/list", json!({})).await.status, 200);
    let close = "update public.mcp_v2 set status = false where name = 'last'";
    cluster.sql(database, close);
    let start = Instant::now();
    while agent.send("tools/list", json!({})).await.status == 200 {
        assert!(start.elapsed() < PATIENCE, "nothing is heard");
        sleep(Duration::from_millis(20)).await;
    }
}

struct Load {
    good: usize,
    bad: Vec<String>,
    slowest: Duration,
}

/// Calls at a steady pace, through every door, until told to stop.
async fn load(app: &App, key: &str, over: &AtomicBool) -> Load {
    let mut agents = Vec::new();
    for way in WAYS {
        agents.push(Agent::new(app, key, way).await);
    }
    let call = async |agent: &Agent<'_>| {
        let start = Instant::now();
        let answer = agent.call("say", json!({"text": "hello"})).await;
        (answer, start.elapsed())
    };
    let (mut under_way, mut every) = (FuturesUnordered::new(), interval(EVERY));
    let mut load = Load {
        good: 0,
        bad: Vec::new(),
        slowest: Duration::ZERO,
    };
    let mut next = agents.iter().cycle();
    while !over.load(Ordering::Relaxed) || !under_way.is_empty() {
        tokio::select! {
            _ = every.tick(), if !over.load(Ordering::Relaxed) => {
                under_way.extend(next.next().map(&call));
            }
            Some((answer, took)) = under_way.next() => {
                load.slowest = load.slowest.max(took);
                match answer["result"]["content"][0]["text"] == "hello" {
                    true => load.good += 1,
                    false => load.bad.push(answer.to_string()),
                }
            }
        }
    }
    load
}

impl Load {
    fn holds(&self, what: &str) {
        let Load { good, bad, slowest } = self;
        println!(
            "{what}: {good} calls good, {} not, {slowest:?} at worst",
            bad.len()
        );
        assert!(*good > 200, "{what}: {good} calls are no load");
        assert!(
            *good >= 99 * bad.len(),
            "{what}: {good} good, but: {bad:#?}"
        );
    }
}

/// Status and duration of a write; nothing but 201 and 503 will do.
async fn write(app: &App) -> (u16, Duration) {
    let start = Instant::now();
    let body = json!({"name": "w", "server": "x", "tool": "echo"});
    let answer = app.post(TOOLS, body).await;
    assert!(matches!(answer.status, 201 | 503), "{}", answer.text);
    if answer.status == 503 {
        assert_eq!(answer.body["error"]["code"], "UNAVAILABLE");
    }
    (answer.status, start.elapsed())
}

/// How long until a write works; those behind it must work, too.
async fn writes_work(app: &App) -> Duration {
    let start = Instant::now();
    while write(app).await.0 != 201 {
        assert!(start.elapsed() < PATIENCE, "writes do not work again");
        sleep(Duration::from_millis(20)).await;
    }
    let took = start.elapsed();
    for (status, _) in join_all((0..20).map(|_| write(app))).await {
        assert_eq!(status, 201);
    }
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_calls_survive_a_restart_of_the_database() {
    let (mut cluster, app, key) = on_its_own().await;
    let over = AtomicBool::new(false);
    let story = async {
        for _ in 0..2 {
            sleep(Duration::from_millis(500)).await;
            cluster.restart();
            let restarting = spawn_blocking(move || {
                cluster.restarted();
                cluster
            });
            let (mut refused, mut slowest) = (0, Duration::ZERO);
            while !restarting.is_finished() {
                let (status, took) = write(&app).await;
                refused += usize::from(status == 503);
                slowest = slowest.max(took);
                sleep(Duration::from_millis(5)).await;
            }
            cluster = restarting.await.unwrap();
            let back = writes_work(&app).await;
            println!("{refused} writes refused, {slowest:?} at worst; back after {back:?}");
            assert!(slowest < ANSWERED, "{slowest:?}");
            assert!(back < BACK, "{back:?}");
        }
        sleep(Duration::from_millis(500)).await;
        over.store(true, Ordering::Relaxed);
    };
    let both = async { tokio::join!(load(&app, &key, &over), story) };
    let (load, ()) = timeout(PATIENCE, both).await.expect("in time");
    load.holds("restarted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_a_database_that_hangs_is_503_in_time_and_costs_no_call() {
    let (cluster, app, key) = on_its_own().await;
    let over = AtomicBool::new(false);
    let story = async {
        sleep(Duration::from_millis(300)).await;
        cluster.freeze(true);
        let frozen = Instant::now();
        let (mut writes, mut slowest) = (0, Duration::ZERO);
        // Whoever comes at once, and whoever comes when it is known.
        while frozen.elapsed() < Duration::from_secs(4) {
            for (status, took) in join_all((0..50).map(|_| write(&app))).await {
                assert_eq!(status, 503);
                slowest = slowest.max(took);
                writes += 1;
            }
            sleep(Duration::from_millis(200)).await;
        }
        let (status, alone) = write(&app).await;
        assert_eq!(status, 503);
        assert!(alone < ANSWERED, "{alone:?}");
        cluster.freeze(false);
        let back = writes_work(&app).await;
        println!("{writes} writes refused, {slowest:?} at worst; back after {back:?}");
        assert!(slowest < ANSWERED, "{slowest:?}");
        assert!(back < BACK, "{back:?}");
        over.store(true, Ordering::Relaxed);
    };
    let both = async { tokio::join!(load(&app, &key, &over), story) };
    let (load, ()) = timeout(PATIENCE, both).await.expect("in time");
    load.holds("hung");
}
