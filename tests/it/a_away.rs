//! Servers are started and stopped while the store is away, on either store;
//! `/healthz` says so, and what was done is recorded when the store is back.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use crate::app::{App, PATIENCE, Setup, fixture, fixtures, setup};
use crate::cluster::Cluster;

async fn health(app: &App) -> Value {
    app.request("GET", "/healthz", None, &[]).await.expect(200)
}

pub(crate) async fn until_health(app: &App, status: &str) -> Value {
    let start = Instant::now();
    loop {
        let health = health(app).await;
        if health["status"] == status {
            return health;
        }
        assert!(start.elapsed() < PATIENCE, "{health} is not {status}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn is_unrecorded(record: &Value) -> bool {
    let warning = record["warnings"][0].as_str().unwrap_or_default();
    warning.contains("not recorded yet")
}

/// Acts until the store takes the record again.
async fn until_recorded(app: &App, name: &str, verb: &str) {
    let start = Instant::now();
    while is_unrecorded(&app.act(name, verb).await) {
        assert!(start.elapsed() < PATIENCE, "nothing is recorded again");
        sleep(Duration::from_millis(50)).await;
    }
}

/// `one` and `two` run, and the store is away.
async fn they_obey(app: &App) {
    let stopped = app.act("one", "stop").await;
    assert_eq!(stopped["status"], "disconnected", "{stopped:#}");
    assert!(is_unrecorded(&stopped), "{stopped:#}");
    let health = until_health(app, "degraded").await;
    let reasons = health["reasons"].as_array().unwrap();
    assert!(!reasons.is_empty() && reasons.iter().all(Value::is_string));
    let home = app.setup.path().display().to_string();
    assert!(!health.to_string().contains(&home), "anybody may read it");

    let started = app.act("one", "start").await;
    assert_eq!(started["status"], "connected", "{started:#}");
    let before = app.server("two").await["pid"].clone();
    let restarted = app.act("two", "restart").await;
    assert_eq!(restarted["status"], "connected", "{restarted:#}");
    assert_ne!(restarted["pid"], before);
    app.act("one", "stop").await;
}

/// The store is back: `one` is stopped for good, although its definition
/// says that it runs.
async fn it_is_recorded(app: App) {
    let health = until_health(&app, "ok").await;
    assert!(health.get("reasons").is_none(), "{health}");
    until_recorded(&app, "one", "stop").await;
    let app = app.again().await;
    app.until_status("two", "connected").await;
    let one = app.server("one").await;
    assert_eq!(one["status"], "disconnected", "{one:#}");
    assert_eq!(one["enabled"], true);
    assert_eq!(app.stop().await, Some(0));
}

pub(crate) async fn on_database() -> (Cluster, App) {
    let cluster = spawn_blocking(Cluster::start).await.unwrap();
    let setup = setup()
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", &cluster.url(&cluster.database()))
        .mcp(fixtures(&[("one", &[]), ("two", &[])]));
    let app = setup.start().await;
    app.until_status("one", "connected").await;
    app.until_status("two", "connected").await;
    (cluster, app)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_k3_servers_obey_while_the_database_hangs() {
    let (cluster, app) = on_database().await;
    assert_eq!(health(&app).await["status"], "ok");
    cluster.freeze(true);
    they_obey(&app).await;
    cluster.freeze(false);
    it_is_recorded(app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_k3_a_restart_of_the_database_loses_no_stop() {
    let (mut cluster, app) = on_database().await;
    cluster.restart();
    let restarting = spawn_blocking(move || {
        cluster.restarted();
        cluster
    });
    // Recorded or not: it is in force, and survives.
    let stopped = app.act("one", "stop").await;
    assert_eq!(stopped["status"], "disconnected", "{stopped:#}");
    let _cluster = restarting.await.unwrap();
    it_is_recorded(app).await;
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a3_k3_servers_obey_while_the_data_directory_cannot_be_written() {
    let setup = setup().mcp(fixtures(&[("one", &[]), ("two", &[])]));
    let app = setup.for_nobody().start().await;
    app.until_status("one", "connected").await;
    app.until_status("two", "connected").await;
    let (data, journal) = (app.path("data"), app.path("data/mcp_instances.journal"));
    set_mode(&journal, 0o400);
    set_mode(&data, 0o500);
    they_obey(&app).await;
    let refused = app
        .post(
            "/api/v1/tools",
            json!({"name": "t", "server": "one", "tool": "echo", "allow_missing": true}),
        )
        .await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    set_mode(&data, 0o700);
    set_mode(&journal, 0o600);
    it_is_recorded(app).await;
}

/// Portway where a directory of the project, or all of it, is on a small disk
/// of its own.
pub(crate) async fn on_a_small_disk(setup: Setup, directory: &str) -> App {
    let inner = setup.command();
    let inner = inner.as_std();
    let run = "mkdir -p \"$0\" && mount -t tmpfs -o size=1m,mode=700 none \"$0\" && \
               cd \"$1\" && shift && exec \"$@\"";
    let mut outer = Command::new("unshare");
    outer
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", run])
        .arg(setup.path().join(directory))
        .arg(setup.path())
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    for (name, value) in inner.get_envs() {
        outer.env(name, value.unwrap());
    }
    let mut child = outer.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    let line = line.expect("a user namespace with a mount of its own can be made here");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let url = line.strip_prefix("portway listening on ").unwrap();
    App::at(setup, child, url)
}

/// The disk as Portway sees it.
pub(crate) fn seen_by(app: &App, name: &str) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", app.pid()));
    root.join(app.path(name).strip_prefix("/").unwrap())
}

pub(crate) fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    // Down to the last page.
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
}

#[tokio::test]
async fn f6_a3_a_full_disk_is_507_for_servers_and_stops_nobody() {
    let app = on_a_small_disk(setup(), "").await;
    let server = |name: &str| json!({"name": name, "command": [fixture()]});
    for name in ["one", "two"] {
        app.post("/api/mcp/servers", server(name)).await.expect(201);
        app.until_status(name, "connected").await;
    }
    let filler = seen_by(&app, "filler");
    fill(&filler);
    let refused = app.post("/api/mcp/servers", server("three")).await;
    assert_eq!(refused.status, 507, "{}", refused.text);
    assert_eq!(refused.body["error"]["code"], "STORAGE_FULL");
    let refused = app.patch("one", json!({"env": {"A": "b"}})).await;
    assert_eq!(refused.status, 507, "{}", refused.text);
    assert_eq!(app.act("one", "stop").await["status"], "disconnected");
    assert_eq!(app.act("one", "start").await["status"], "connected");
    assert_eq!(app.act("two", "restart").await["status"], "connected");
    assert_eq!(app.list().await.len(), 2);

    std::fs::remove_file(&filler).unwrap();
    until_health(&app, "ok").await;
    until_recorded(&app, "one", "stop").await;
    app.post("/api/mcp/servers", server("three"))
        .await
        .expect(201);
}
