//! A server is removed or renamed in its file and in the store, or in neither:
//! while the store is away, when it refuses, and across a crash in between.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::a_away::{fill, on_a_small_disk, on_database, seen_by, until_health};
use crate::app::{App, PATIENCE, fixtures, setup};
use crate::cluster::Cluster;

/// The one that Portway uses.
fn database(cluster: &Cluster) -> String {
    let only = "select datname from pg_database where datname like 't%' and not datistemplate";
    cluster.sql("postgres", only)
}

/// An entry with one tool of `one`, by its number.
async fn entry(app: &App) -> i64 {
    let tool = json!({"name": "t", "server": "one", "tool": "echo"});
    let tool = app.post("/api/v1/tools", tool).await.expect(201);
    let entry = json!({"name": "e", "bindings": [{"tool_id": tool["id"], "status": true}]});
    let path = "/api/v1/mcp_v2/with_bindings";
    let entry = app.post(path, entry).await.expect(201);
    entry["id"].as_i64().unwrap()
}

async fn bindings(app: &App, entry: i64) -> usize {
    let path = format!("/api/v1/mcp_v2/{entry}/bindings");
    let bindings = app.get(&path).await.expect(200);
    bindings["items"].as_array().unwrap().len()
}

async fn until_unbound(app: &App, entry: i64) {
    let start = Instant::now();
    while bindings(app, entry).await > 0 {
        let log = app.log();
        assert!(start.elapsed() < PATIENCE, "still bound; log: {log}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn file(app: &App) -> String {
    std::fs::read_to_string(app.path(".mcp.json")).unwrap()
}

/// Neither a removal nor a rename changes anything.
async fn nothing_moves(app: &App, status: u16) {
    let (text, before) = (file(app), app.server("one").await);
    let refused = app.delete("one").await;
    assert_eq!(refused.status, status, "{}", refused.text);
    let refused = app.patch("one", json!({"name": "uno"})).await;
    assert_eq!(refused.status, status, "{}", refused.text);
    assert_eq!(file(app), text);
    let after = app.server("one").await;
    assert_eq!(
        (&after["id"], &after["pid"]),
        (&before["id"], &before["pid"])
    );
    assert_eq!(app.list().await.len(), 2);
}

async fn it_can_be_removed(app: &App, entry: i64) {
    assert_eq!(bindings(app, entry).await, 1);
    app.delete("one").await.expect(204);
    assert_eq!(bindings(app, entry).await, 0);
    assert!(!file(app).contains("\"one\""));
    assert!(!app.path("data/unfinished_edit.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a9_nothing_is_removed_while_the_database_is_away() {
    let (cluster, app) = on_database().await;
    let entry = entry(&app).await;
    cluster.freeze(true);
    nothing_moves(&app, 503).await;
    cluster.freeze(false);
    until_health(&app, "ok").await;
    it_can_be_removed(&app, entry).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a9_a_removal_that_the_database_refuses_is_taken_back() {
    let (cluster, app) = on_database().await;
    let entry = entry(&app).await;
    let database = database(&cluster);
    let forbid = "create function keep() returns trigger language plpgsql as \
                  $$ begin raise exception 'no'; end $$; \
                  create trigger keep before delete on mcp_binding \
                  for each row execute function keep(); \
                  create trigger keep before update on tool \
                  for each row execute function keep()";
    cluster.sql(&database, forbid);
    nothing_moves(&app, 422).await;
    cluster.sql(&database, "drop function keep cascade");
    it_can_be_removed(&app, entry).await;
}

/// Holds the bindings for itself until it is ended.
fn lock(cluster: &Cluster, database: &str) -> Child {
    let mut psql = cluster.psql(database);
    let mut child = psql
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let orders = b"begin; lock table mcp_binding in exclusive mode; select 'locked';\n";
    child.stdin.as_mut().unwrap().write_all(orders).unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.as_mut().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "locked\n");
    child
}

fn unlock(mut lock: Child) {
    drop(lock.stdin.take());
    assert!(lock.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a9_what_the_database_does_not_follow_at_once_is_finished_later() {
    let (cluster, app) = on_database().await;
    let entry = entry(&app).await;
    let database = database(&cluster);
    let held = lock(&cluster, &database);
    app.delete("one").await.expect(204);
    assert!(!file(&app).contains("\"one\""));
    assert_eq!(app.list().await.len(), 1);
    assert_eq!(bindings(&app, entry).await, 1);
    // The next edit would find the records of the one before.
    let refused = app.delete("two").await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    unlock(held);
    until_unbound(&app, entry).await;
    let records = cluster.sql(&database, "select name from mcp_server");
    assert_eq!(records, "two");
    app.delete("two").await.expect(204);
}

#[tokio::test]
async fn a9_nothing_is_removed_while_the_data_directory_is_full() {
    let setup = setup().mcp(fixtures(&[("one", &[]), ("two", &[])]));
    let app = on_a_small_disk(setup, "data").await;
    app.until_status("one", "connected").await;
    let entry = entry(&app).await;
    let filler = seen_by(&app, "data/filler");
    fill(&filler);
    nothing_moves(&app, 507).await;
    std::fs::remove_file(&filler).unwrap();
    until_health(&app, "ok").await;
    it_can_be_removed(&app, entry).await;
}

/// Ends Portway, makes the file what a crash in the middle of an edit leaves,
/// and starts it again.
async fn cut_off(mut app: App, to: Value, servers: &[(&str, &[&str])]) -> App {
    let (mcp, note) = (app.path(".mcp.json"), app.path("data/unfinished_edit.json"));
    app.signal(Signal::SIGTERM);
    assert_eq!(app.ended().await, Some(0));
    std::fs::write(mcp, fixtures(servers).to_string()).unwrap();
    let edit = json!({"source": "mcp", "from": "one", "to": to});
    std::fs::write(&note, edit.to_string()).unwrap();
    let app = app.setup.start().await;
    assert!(!note.exists());
    app
}

#[tokio::test]
async fn a9_an_edit_that_was_cut_off_counts_if_the_file_has_it() {
    let servers = fixtures(&[("one", &[]), ("two", &[])]);
    let app = setup().mcp(servers).start().await;
    let id = app.until_status("one", "connected").await["id"].clone();
    let entry = entry(&app).await;
    // Before the file was saved.
    let app = cut_off(app, Value::Null, &[("one", &[]), ("two", &[])]).await;
    assert_eq!(bindings(&app, entry).await, 1);
    assert_eq!(app.server("one").await["id"], id);
    // After it.
    let app = cut_off(app, json!("uno"), &[("uno", &[]), ("two", &[])]).await;
    assert_eq!(bindings(&app, entry).await, 1);
    assert_eq!(app.server("uno").await["id"], id);
    let tools = app.get("/api/v1/tools").await.expect(200);
    assert!(tools.to_string().contains("\"uno\""), "{tools}");
    app.patch("uno", json!({"name": "one"})).await.expect(200);
    let app = cut_off(app, Value::Null, &[("two", &[])]).await;
    assert_eq!(bindings(&app, entry).await, 0);
    let app = cut_off(app, Value::Null, &[("one", &[])]).await;
    assert_ne!(app.server("one").await["id"], id);
}
