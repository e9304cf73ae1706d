//! SPEC A: registration and lifecycle.

use serde_json::json;

use crate::app::{alive, eventually, fixture, fixtures, setup};

#[tokio::test]
async fn a1_register_returns_201_and_the_full_record() {
    let app = setup().start().await;
    let body = json!({
        "name": "one", "command": fixture(), "args": ["--era", "legacy"],
        "env": {"TOKEN": "s3cret-value"}, "timeout": 5000,
    });
    let record = app.post("/api/mcp/servers", body.clone()).await.expect(201);
    assert!(uuid::Uuid::try_parse(record["id"].as_str().unwrap()).is_ok());
    assert_eq!(record["name"], "one");
    assert_eq!(record["transport"], "stdio");
    assert_eq!(record["enabled"], true);
    assert_eq!(record["config"]["command"], fixture());
    assert_eq!(record["config"]["args"], json!(["--era", "legacy"]));
    assert_eq!(record["config"]["timeout"], 5000);
    assert_eq!(record["config"]["env"], json!({"TOKEN": "***"}));

    let clash = app.post("/api/mcp/servers", body).await;
    assert_eq!(clash.status, 409, "{}", clash.text);
    assert!(
        clash.body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("\"one\"")
    );
    let list = app.get("/api/mcp/servers").await.expect(200);
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a2_a3_start_and_stop_leave_nothing_behind() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--fork", "tree"])]))
        .start()
        .await;
    let up = app.until_status("one", "connected").await;
    assert_eq!(up["state"], "running");
    assert!(up["toolCount"].as_u64().unwrap() > 10);
    let pid = up["pid"].as_i64().unwrap();
    assert!(alive(pid));

    let down = app
        .post("/api/mcp/servers/one/stop", json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&down["status"], &down["state"]),
        (&json!("disconnected"), &json!("stopped"))
    );
    assert!(!alive(pid));

    let again = app
        .post("/api/mcp/servers/one/start", json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&again["status"], &again["state"]),
        (&json!("connected"), &json!("running"))
    );
    assert_eq!(again["id"], up["id"]);
}

#[tokio::test]
async fn a11_sigterm_ends_every_child_and_exits_0() {
    let app = setup()
        .mcp(fixtures(&[
            ("a", &[]),
            ("b", &["--ignore-eof"]),
            ("c", &["--fork", "tree"]),
        ]))
        .start()
        .await;
    let mut pids = Vec::new();
    for name in ["a", "b", "c"] {
        pids.push(
            app.until_status(name, "connected").await["pid"]
                .as_i64()
                .unwrap(),
        );
    }
    assert_eq!(app.stop().await, Some(0));
    for pid in pids {
        eventually("the child is gone", || !alive(pid)).await;
    }
}
