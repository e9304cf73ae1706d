//! A database that goes away under load: calls go on, writes are refused in
//! time and work again as soon as it is back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::*;
use crate::app::{PATIENCE, setup};
use crate::cluster::Cluster;

/// Calls that must have been answered in each part of a story.
const CALLS: usize = 50;

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
    let agent = Agent::new(app, key, (EntryRoute::Header, EntryEra::Modern)).await;
    assert_eq!(agent.send("tools/list", json!({})).await.status, 200);
    let close = "update public.mcp_v2 set status = false where name = 'last'";
    cluster.sql(database, close);
    let start = Instant::now();
    while agent.send("tools/list", json!({})).await.status == 200 {
        assert!(start.elapsed() < PATIENCE, "nothing is heard");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Calls that are made all the time, through every door.
#[derive(Default)]
struct Load {
    over: AtomicBool,
    good: AtomicUsize,
    bad: AtomicUsize,
}

impl Load {
    /// One client after the other behind each door, until told to stop.
    async fn run(&self, app: &App, key: &str) {
        let mut agents = Vec::new();
        for way in WAYS {
            agents.push(Agent::new(app, key, way).await);
        }
        join_all(agents.iter().map(|agent| self.calls(agent))).await;
    }

    async fn calls(&self, agent: &Agent<'_>) {
        while !self.over.load(Ordering::Relaxed) {
            let answer = agent.call("say", json!({"text": "hello"})).await;
            if answer["result"]["content"][0]["text"] == "hello" {
                self.good.fetch_add(1, Ordering::Relaxed);
            } else {
                println!("a call failed: {answer}");
                self.bad.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until calls have been made for a while.
    async fn goes_on(&self) {
        let wanted = self.good.load(Ordering::Relaxed) + CALLS;
        let start = Instant::now();
        while self.good.load(Ordering::Relaxed) < wanted {
            assert!(start.elapsed() < PATIENCE, "no calls are answered");
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn holds(&self) {
        let (good, bad) = (&self.good, &self.bad);
        let (good, bad) = (good.load(Ordering::Relaxed), bad.load(Ordering::Relaxed));
        println!("{good} calls good, {bad} not");
        assert_eq!(bad, 0, "of {} calls", good + bad);
    }
}

/// Tries a write: why it was refused, if it was. Nothing but 201 and 503
/// will do.
async fn write(app: &App) -> Result<(), String> {
    let body = json!({"name": "w", "server": "x", "tool": "echo", "allow_missing": true});
    let answer = app.post(TOOLS, body).await;
    match answer.status {
        201 => Ok(()),
        503 => {
            assert_eq!(answer.body["error"]["code"], "UNAVAILABLE");
            Err(answer.text)
        }
        _ => panic!("{}", answer.text),
    }
}

/// A write that must work, for the database is there. One that takes too
/// long on this machine is tried again; none may meet a dead connection.
async fn works(app: &App) {
    let start = Instant::now();
    while let Err(reason) = write(app).await {
        assert!(!reason.contains("is lost"), "{reason}");
        assert!(start.elapsed() < PATIENCE, "{reason}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// As many at once as use all connections of the pool.
async fn many_work(app: &App) {
    join_all((0..20).map(|_| works(app))).await;
}

/// Waits until a write works; all those behind it must work, too, whichever
/// connections of the pool they get.
async fn writes_work(app: &App) {
    let start = Instant::now();
    while let Err(reason) = write(app).await {
        assert!(start.elapsed() < PATIENCE, "writes do not work: {reason}");
        sleep(Duration::from_millis(20)).await;
    }
    many_work(app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_calls_survive_a_restart_of_the_database() {
    let (mut cluster, app, key) = on_its_own().await;
    let load = Load::default();
    let story = async {
        for _ in 0..2 {
            many_work(&app).await;
            load.goes_on().await;
            cluster.restart();
            let restarting = spawn_blocking(move || {
                cluster.restarted();
                cluster
            });
            let mut refused = 0;
            while !restarting.is_finished() {
                refused += usize::from(write(&app).await.is_err());
                sleep(Duration::from_millis(5)).await;
            }
            cluster = restarting.await.unwrap();
            writes_work(&app).await;
            load.goes_on().await;
            println!("{refused} writes refused");
        }
        load.over.store(true, Ordering::Relaxed);
    };
    tokio::join!(load.run(&app, &key), story);
    load.holds();
}

/// All that a restart leaves of a pool is dead connections: not one write
/// may be lost to them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_connections_that_died_while_idle_cost_no_write() {
    let (cluster, app, _) = on_its_own().await;
    let ours = "from pg_stat_activity where application_name = 'portway'";
    for _ in 0..5 {
        many_work(&app).await;
        let pids = cluster.sql(
            "postgres",
            &format!("select string_agg(pid::text, ',') {ours}"),
        );
        let end = format!("select count(pg_terminate_backend(pid)) {ours} and pid in ({pids})");
        cluster.sql("postgres", &end);
        let left = format!("select count(*) {ours} and pid in ({pids})");
        let start = Instant::now();
        while cluster.sql("postgres", &left) != "0" {
            assert!(start.elapsed() < PATIENCE, "they do not end");
            sleep(Duration::from_millis(5)).await;
        }
        many_work(&app).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_a_database_that_hangs_is_503_and_costs_no_call() {
    let (cluster, app, key) = on_its_own().await;
    let load = Load::default();
    let story = async {
        load.goes_on().await;
        cluster.freeze(true);
        // Those that come at once, and those that come when it is known. It
        // hangs until they are answered: they do not wait for it.
        for _ in 0..3 {
            for written in join_all((0..50).map(|_| write(&app))).await {
                written.unwrap_err();
            }
            load.goes_on().await;
        }
        cluster.freeze(false);
        writes_work(&app).await;
        load.goes_on().await;
        load.over.store(true, Ordering::Relaxed);
    };
    tokio::join!(load.run(&app, &key), story);
    load.holds();
}
