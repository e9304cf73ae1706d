//! Servers that flood, babble and never end a line: they cost themselves,
//! nobody else, and Portway no memory.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::a_startup::{ready, rss};
use crate::app::{App, fixture, fixtures, pid, setup};

/// kB; 8 MiB of a line, what it is copied into, and the program itself.
const BOUND: u64 = 100_000;

async fn good_one(app: &App) -> Value {
    app.until_status("good", "connected").await
}

async fn untouched(app: &App, before: &Value) {
    let after = app.server("good").await;
    assert_eq!(
        (&after["pid"], &after["status"]),
        (&before["pid"], &json!("connected"))
    );
    let own = rss(app);
    println!("Portway uses {own} kB");
    assert!(own < BOUND, "{own} kB");
}

#[tokio::test]
async fn t_f3_a_gigabyte_line_costs_only_the_server_that_writes_it() {
    for era in ["legacy", "modern"] {
        let args = &["--era", era, "--giant-line", "1073741824"];
        let app = setup()
            .mcp(fixtures(&[("giant", args), ("good", &[])]))
            .env("PORTWAY_STOP_GRACE", "100ms")
            .start()
            .await;
        let good = good_one(&app).await;
        let record = app
            .until("giant", |record| record["error"].is_string())
            .await;
        let error = record["error"].as_str().unwrap();
        assert!(error.contains("larger than 8 MiB"), "{error}");
        untouched(&app, &good).await;
    }
}

#[tokio::test]
async fn t_f3_an_endless_line_of_stderr_is_cut() {
    let script = format!(
        "head -c 20000000 /dev/zero | tr '\\0' x >&2; exec '{}'",
        fixture()
    );
    let app = setup()
        .mcp(json!({"mcpServers": {
            "one": {"command": "sh", "args": ["-c", script]},
            "good": {"command": fixture()},
        }}))
        .start()
        .await;
    let good = good_one(&app).await;
    app.until_status("one", "connected").await;
    assert!(app.lines("one").await.iter().all(|line| line.len() <= 4096));
    untouched(&app, &good).await;
}

#[tokio::test]
async fn t_e6_a_flood_of_notifications_is_survived() {
    for era in ["legacy", "modern"] {
        let args = &["--era", era, "--flood-notifications"];
        let app = setup()
            .mcp(fixtures(&[("floods", args), ("good", &[])]))
            .env("PORTWAY_HEALTH_INTERVAL", "100ms")
            .start()
            .await;
        let good = good_one(&app).await;
        let before = app.until_status("floods", "connected").await;
        let newest = || async {
            let last = app
                .get("/api/mcp/servers/floods/logs?limit=1")
                .await
                .expect(200);
            last[0]["seq"].as_u64().unwrap_or(0)
        };
        let start = std::time::Instant::now();
        while newest().await < 3000 {
            assert!(start.elapsed() < crate::app::PATIENCE, "{era}: it floods");
        }
        // Its answers come through, so it is not taken for hung.
        assert_eq!(app.server("floods").await["pid"], pid(&before), "{era}");
        untouched(&app, &good).await;
        assert_eq!(app.act("floods", "stop").await["state"], "stopped");
    }
}

#[tokio::test]
async fn t_e6_a_changed_list_is_not_lost_in_a_flood() {
    for era in ["legacy", "modern"] {
        let args = &["--era", era, "--flood-notifications", "--toggle-on-usr1"];
        let app = setup().mcp(fixtures(&[("one", args)])).start().await;
        let before = app.until_status("one", "connected").await;
        let tools = before["toolCount"].as_u64().unwrap();
        for round in 1..6 {
            kill(Pid::from_raw(pid(&before) as i32), Signal::SIGUSR1).unwrap();
            let expected = tools + round % 2;
            let after = app.until("one", |record| record["toolCount"] == expected);
            assert_eq!(after.await["pid"], before["pid"], "{era}");
        }
    }
}

#[tokio::test]
async fn t_e6_a_server_that_floods_but_answers_nothing_is_found() {
    let args = &["--era", "legacy", "--flood-notifications", "--stall=health"];
    let app = setup()
        .mcp(fixtures(&[("one", args)]))
        .env("PORTWAY_HEALTH_INTERVAL", "200ms")
        .env("PORTWAY_STOP_GRACE", "100ms")
        .start()
        .await;
    let before = app.until_status("one", "connected").await;
    app.until("one", |record| {
        record["status"] == "connected" && record["pid"] != before["pid"]
    })
    .await;
}

#[tokio::test]
async fn t_e6_noise_between_messages_is_put_up_with() {
    let app = setup()
        .mcp(fixtures(&[
            ("legacy", &["--noise", "--era", "legacy", "--page", "1"]),
            ("modern", &["--noise", "--era", "modern", "--page", "1"]),
            ("good", &[]),
        ]))
        .start()
        .await;
    let good = good_one(&app).await;
    for name in ["legacy", "modern"] {
        let record = app.until_status(name, "connected").await;
        assert_eq!(record["toolCount"], good["toolCount"], "{name}");
    }
    untouched(&app, &good).await;
}

#[tokio::test]
async fn c3_a_cursor_that_repeats_does_not_go_on_for_ever() {
    let args = &["--repeat-cursor", "--page", "5", "--record", "record"];
    let app = setup()
        .mcp(fixtures(&[("repeats", args), ("good", &[])]))
        .start()
        .await;
    let good = good_one(&app).await;
    let record = app.until_status("repeats", "connected").await;
    assert!(record["toolCount"].as_u64().unwrap() >= 5);
    let log = app.lines("repeats").await;
    assert!(
        log.iter().any(|line| line.contains("repeats a cursor")),
        "{log:?}"
    );
    let asked = std::fs::read_to_string(app.path("record")).unwrap();
    let pages = asked.matches("tools/list").count();
    // Two at most each time it is listed, and again when it is followed.
    assert!(pages <= 8, "{pages} pages");
    untouched(&app, &good).await;
}

#[tokio::test]
async fn c3_ten_thousand_tools_are_listed_and_more_are_cut() {
    let app = setup()
        .mcp(fixtures(&[
            ("many", &["--tools", "9900"]),
            (
                "paged",
                &["--tools", "9900", "--page", "2500", "--era", "legacy"],
            ),
            ("more", &["--tools", "11000"]),
            ("good", &[]),
        ]))
        .start()
        .await;
    let good = good_one(&app).await;
    ready(&app).await;
    let tools = 9900 + good["toolCount"].as_u64().unwrap();
    for name in ["many", "paged"] {
        let record = app.until_status(name, "connected").await;
        assert_eq!(record["toolCount"], tools, "{name}");
        assert!(app.tools(name).await.contains(&"extra_9899".to_owned()));
    }
    let record = app.until_status("more", "connected").await;
    assert_eq!(record["toolCount"], 10_000);
    let log = app.lines("more").await;
    assert!(log.iter().any(|line| line.contains("cut short")), "{log:?}");
    untouched(&app, &good).await;
}
