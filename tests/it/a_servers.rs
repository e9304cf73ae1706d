//! SPEC A2-A4, A9, G2: start, stop, restart, delete.

use serde_json::{Value, json};

use crate::app::{alive, fixture, fixtures, pid, setup};

#[tokio::test]
async fn a2_a3_start_and_stop_leave_nothing_behind() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--fork", "tree"])]))
        .start()
        .await;
    let up = app.until_status("one", "connected").await;
    assert_eq!(up["state"], "running");
    assert!(up["toolCount"].as_u64().unwrap() > 10);
    assert!(alive(pid(&up)));
    assert!(app.children().len() > 3, "server, its tree, the helper");

    let down = app.act("one", "stop").await;
    assert_eq!(
        (&down["status"], &down["state"]),
        (&json!("disconnected"), &json!("stopped"))
    );
    assert_eq!(
        (&down["pid"], &down["toolCount"], &down["error"]),
        (&Value::Null, &json!(0), &Value::Null)
    );
    assert_eq!(app.children(), [0; 0]);

    let again = app.act("one", "start").await;
    assert_eq!(
        (&again["status"], &again["state"]),
        (&json!("connected"), &json!("running"))
    );
    assert_eq!(again["id"], up["id"]);
    assert_ne!(again["pid"], up["pid"]);
}

#[tokio::test]
async fn a3_a_stubborn_server_is_ended_too() {
    let stubborn = &["--ignore-eof", "--ignore-term", "--fork", "daemon"];
    let app = setup()
        .mcp(fixtures(&[("one", stubborn)]))
        .env("PORTWAY_STOP_GRACE", "100ms")
        .start()
        .await;
    app.until_status("one", "connected").await;
    assert_eq!(app.act("one", "stop").await["state"], "stopped");
    assert_eq!(app.children(), [0; 0]);
}

#[tokio::test]
async fn a3_a_stop_is_remembered_over_a_restart_of_portway() {
    let first = setup().mcp(fixtures(&[("one", &[])])).start().await;
    let id = first.until_status("one", "connected").await["id"].clone();
    first.act("one", "stop").await;
    let second = first.again().await;
    let record = second.server("one").await;
    assert_eq!((&record["id"], &record["state"]), (&id, &json!("stopped")));
    assert_eq!(record["enabled"], true);
    assert_eq!(second.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a4_a_restart_shows_connecting_and_a_new_process() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--late", "300"]), ("two", &[])]))
        .start()
        .await;
    let before = app.until_status("one", "connected").await;
    let other = app.until_status("two", "connected").await;
    let watch = async {
        let mut seen = Vec::new();
        loop {
            let record = app.server("one").await;
            let status = record["status"].as_str().unwrap().to_owned();
            if seen.last() != Some(&status) {
                seen.push(status);
            }
            if record["status"] == "connected" && record["pid"] != before["pid"] {
                return seen;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (after, seen) = tokio::join!(app.act("one", "restart"), watch);
    assert!(seen.contains(&"connecting".to_owned()), "{seen:?}");
    assert!(!seen.contains(&"error".to_owned()), "{seen:?}");
    assert_eq!(after["status"], "connected");
    assert_ne!(pid(&after), pid(&before));
    assert!(!alive(pid(&before)));
    assert_eq!(after["restarts"], 0, "asked for, not a failure");
    assert_eq!(app.server("two").await["pid"], other["pid"]);
}

#[tokio::test]
async fn a4_a_restart_starts_what_is_stopped_once() {
    let server = json!({"command": fixture(), "args": ["--instance-file", "starts"]});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .start()
        .await;
    app.until_status("one", "connected").await;
    app.act("one", "stop").await;
    assert_eq!(app.act("one", "restart").await["status"], "connected");
    let starts = std::fs::read_to_string(app.path("starts")).unwrap();
    assert_eq!(starts.lines().count(), 2, "{starts}");
}

#[tokio::test]
async fn g2_start_of_a_running_and_stop_of_a_stopped_server_change_nothing() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    let up = app.until_status("one", "connected").await;
    for _ in 0..3 {
        assert_eq!(app.act("one", "start").await, up);
    }
    let down = app.act("one", "stop").await;
    for _ in 0..3 {
        assert_eq!(app.act("one", "stop").await, down);
    }
}

#[tokio::test]
async fn a2_many_starts_at_once_make_one_process() {
    let args = &["--late", "100", "--exclusive", "lock"];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    let act = |verb| app.act("one", verb);
    tokio::join!(act("start"), act("start"), act("restart"), act("start"));
    let up = app.until_status("one", "connected").await;
    tokio::join!(act("stop"), act("start"), act("restart"), act("stop"));
    let end = app.act("one", "start").await;
    assert_eq!(end["status"], "connected", "{end:#}");
    assert_ne!(end["pid"], up["pid"]);
    assert_eq!(std::fs::read(app.path("lock")).unwrap(), b"", "no overlap");
}

#[tokio::test]
async fn a9_delete_stops_and_removes_everywhere() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--fork", "daemon"]), ("two", &[])]))
        .start()
        .await;
    let up = app.until_status("one", "connected").await;
    let id = up["id"].as_str().unwrap();
    let two = app.until_status("two", "connected").await;
    let gone = app.delete(id).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert!(!alive(pid(&up)));
    let names: Vec<Value> = app
        .list()
        .await
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["two"]);
    let text = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
    assert!(!text.contains("\"one\"") && !text.contains(id), "{text}");
    for path in ["one", id] {
        let error = app.delete(path).await.expect(404);
        assert_eq!(error["error"]["code"], "NOT_FOUND");
        app.get(&format!("/api/mcp/servers/{path}"))
            .await
            .expect(404);
    }
    assert_eq!(app.server("two").await["pid"], two["pid"]);

    // The name is free again, for another server.
    let body = json!({"name": "one", "command": fixture()});
    let fresh = app.post("/api/mcp/servers", body).await.expect(201);
    assert_ne!(fresh["id"], id);
    app.until_status("one", "connected").await;
}

#[tokio::test]
async fn a9_a_server_is_deleted_in_any_state() {
    let app = setup()
        .mcp(fixtures(&[
            ("hangs", &["--hang-init"]),
            ("fails", &["--exit", "1"]),
            ("stopped", &[]),
        ]))
        .env("PORTWAY_STOP_GRACE", "200ms")
        .start()
        .await;
    app.act("stopped", "stop").await;
    app.until_status("hangs", "connecting").await;
    app.until_status("fails", "error").await;
    for name in ["hangs", "fails", "stopped"] {
        assert_eq!(app.delete(name).await.status, 204, "{name}");
    }
    assert!(app.list().await.is_empty());
    assert_eq!(app.children(), [0; 0]);
}
