//! SPEC A10: enabled servers connect at start-up, all at once, and none
//! delays another or the port.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, fixture, fixtures, setup};

/// Memory of a process in kB, by its line in a file of `/proc`.
fn memory(pid: i32, file: &str, line: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let value = text.lines().find_map(|one| one.strip_prefix(line))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

pub(crate) fn rss(app: &App) -> u64 {
    memory(app.pid(), "status", "VmRSS:").expect("it runs")
}

pub(crate) async fn ready(app: &App) {
    let start = Instant::now();
    while app.get("/readyz").await.status != 200 {
        assert!(start.elapsed() < PATIENCE, "not ready; {}", app.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a10_a_slow_server_delays_neither_the_port_nor_the_others() {
    let app = setup()
        .mcp(fixtures(&[
            ("a-hangs", &["--hang-init"]),
            ("b-late", &["--late", "1500"]),
            ("c-good", &[]),
            ("d-good", &["--era", "legacy"]),
        ]))
        .start()
        .await;
    app.get("/healthz").await.expect(200);
    app.until_status("c-good", "connected").await;
    app.until_status("d-good", "connected").await;
    for name in ["a-hangs", "b-late"] {
        assert_eq!(app.server(name).await["status"], "connecting", "{name}");
    }
    app.until_status("b-late", "connected").await;
    assert_eq!(app.server("a-hangs").await["status"], "connecting");
}

#[tokio::test]
async fn a10_many_hanging_servers_give_up_their_place_in_the_queue() {
    let mut servers = serde_json::Map::new();
    for n in 0..30 {
        let server = json!({"command": "sleep", "args": ["1000"]});
        servers.insert(format!("a-{n}"), server);
    }
    servers.insert("z-good".into(), json!({"command": fixture()}));
    let app = setup()
        .mcp(json!({ "mcpServers": servers }))
        .env("PORTWAY_STOP_GRACE", "50ms")
        .start()
        .await;
    app.until_status("z-good", "connected").await;
    assert_eq!(app.server("a-0").await["status"], "connecting");
}

#[tokio::test]
async fn a10_disabled_servers_are_not_started() {
    let off = |field: Value| {
        let mut server = json!({"command": fixture(), "args": ["--instance-file", "starts"]});
        server
            .as_object_mut()
            .unwrap()
            .extend(field.as_object().unwrap().clone());
        server
    };
    let app = setup()
        .mcp(json!({"mcpServers": {
            "one": off(json!({"enabled": false})),
            "two": off(json!({"disabled": true})),
            "good": {"command": fixture()},
        }}))
        .start()
        .await;
    app.until_status("good", "connected").await;
    ready(&app).await;
    for name in ["one", "two"] {
        let record = app.server(name).await;
        assert_eq!(
            (&record["status"], &record["state"], &record["enabled"]),
            (&json!("disconnected"), &json!("stopped"), &json!(false))
        );
    }
    assert!(!app.path("starts").exists());
}

#[tokio::test]
async fn a10_200_servers_connect_in_parallel_within_60_mb() {
    let names: Vec<String> = (0..200).map(|n| format!("s{n:03}")).collect();
    let servers: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let start = Instant::now();
    let app = setup().mcp(fixtures(&servers)).start().await;
    let port = start.elapsed();
    ready(&app).await;
    let all = start.elapsed();
    let records = app.list().await;
    assert_eq!(records.len(), 200);
    for record in &records {
        assert_eq!(record["status"], "connected", "{record:#}");
    }
    let own = rss(&app);
    let pss = |pid: &i32| memory(*pid, "smaps_rollup", "Pss:").unwrap_or(0);
    let helpers = helpers(&app);
    let shared: u64 = helpers.iter().map(pss).sum();
    println!(
        "200 servers: port after {port:?}, all after {all:?}; Portway {own} kB; \
         {} helpers and inits {shared} kB together (proportional)",
        helpers.len()
    );
    assert!(own < 60_000, "{own} kB");
    let stopping = Instant::now();
    assert_eq!(app.stop().await, Some(0));
    println!("all ended after {:?}", stopping.elapsed());
}

fn helpers(app: &App) -> Vec<i32> {
    let ours = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.starts_with("portway-")
    };
    app.children().into_iter().filter(ours).collect()
}
