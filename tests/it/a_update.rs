//! SPEC A8: a change is in force at once, loses no call, and never runs a
//! server twice.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::app::{App, eventually, fixture, fixtures, pid, setup};
use crate::rooms::Rooms;

/// The environment of a running server, as the kernel knows it.
fn environment(record: &Value) -> Vec<String> {
    let raw = std::fs::read(format!("/proc/{}/environ", pid(record))).unwrap();
    let variables = raw.split(|byte| *byte == 0);
    variables
        .map(|one| String::from_utf8_lossy(one).into_owned())
        .collect()
}

fn one_with_env() -> Value {
    let args = ["--exclusive", "lock", "--fork", "tree"];
    let env = json!({"MODE": "old", "TOKEN": "s3cret-value"});
    json!({"mcpServers": {"one": {"command": fixture(), "args": args, "env": env}}})
}

/// Waits for a process of another number.
async fn replaced(app: &App, before: &Value) -> Value {
    let fresh = |record: &Value| record["status"] == "connected" && record["pid"] != before["pid"];
    app.until(before["id"].as_str().unwrap(), fresh).await
}

#[tokio::test]
async fn a8_put_and_patch_are_in_force_at_once_and_never_run_it_twice() {
    let app = setup().mcp(one_with_env()).start().await;
    let first = app.until_status("one", "connected").await;

    let patched = app.patch(
        "one",
        json!({"env": {"MODE": "new", "MORE": "${MORE:-some}"}}),
    );
    let patched = patched.await.expect(200);
    assert_eq!(patched["id"], first["id"]);
    let env = json!({"MODE": "***", "TOKEN": "***", "MORE": "${MORE:-***}"});
    assert_eq!(patched["config"]["env"], env);
    let second = replaced(&app, &first).await;
    let env = environment(&second);
    for one in ["MODE=new", "TOKEN=s3cret-value", "MORE=some"] {
        assert!(env.contains(&one.to_owned()), "{one}: {env:?}");
    }

    // PUT is the whole definition: what it leaves out is gone. A cover stands
    // for what is stored.
    let args = ["--exclusive", "lock", "--tools", "3"];
    let body = json!({"command": fixture(), "args": args, "env": {"TOKEN": "***"}});
    let put = app.send("PUT", "/api/mcp/servers/one", Some(body.to_string()));
    let put = put.await.expect(200);
    assert_eq!(put["config"]["args"], json!(args));
    let third = replaced(&app, &second).await;
    let env = environment(&third);
    assert!(env.contains(&"TOKEN=s3cret-value".to_owned()), "{env:?}");
    assert!(!env.iter().any(|one| one.starts_with("MODE=")), "{env:?}");
    assert!(app.tools("one").await.contains(&"extra_0002".to_owned()));

    assert_eq!(std::fs::read(app.path("lock")).unwrap(), b"", "no overlap");
    let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
    assert!(
        file.contains("s3cret-value") && !file.contains("***"),
        "{file}"
    );
}

#[tokio::test]
async fn a8_a_change_of_the_time_limit_alone_restarts_nothing() {
    let app = setup().mcp(one_with_env()).start().await;
    let before = app.until_status("one", "connected").await;
    for body in [
        json!({"timeout": 1234}),
        json!({"timeout": 1234}),
        json!({}),
    ] {
        let after = app.patch("one", body).await.expect(200);
        assert_eq!(after["config"]["timeout"], 1234);
        assert_eq!(
            (&after["status"], &after["pid"], &after["since"]),
            (&before["status"], &before["pid"], &before["since"])
        );
    }
    let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
    assert!(file.contains("1234"), "{file}");
}

#[tokio::test]
async fn a8_a_rename_keeps_the_id_and_never_runs_it_twice() {
    let stubborn = ["--exclusive", "lock", "--ignore-eof", "--fork", "daemon"];
    let app = setup()
        .mcp(fixtures(&[("old", &stubborn), ("taken", &[])]))
        .env("PORTWAY_STOP_GRACE", "300ms")
        .start()
        .await;
    let before = app.until_status("old", "connected").await;
    let id = before["id"].as_str().unwrap();
    let clash = app.patch("old", json!({"name": "taken"})).await.expect(409);
    assert!(clash.to_string().contains("taken"), "{clash}");
    let wrong = app.patch("old", json!({"name": "a/b"})).await.expect(422);
    assert_eq!(wrong["error"]["details"][0]["field"], "name");
    assert_eq!(app.server("old").await["pid"], before["pid"]);

    let renamed = app.patch("old", json!({"name": "new"})).await.expect(200);
    assert_eq!(
        (&renamed["id"], &renamed["name"]),
        (&json!(id), &json!("new"))
    );
    let after = app.until_status("new", "connected").await;
    assert_eq!(after["id"], id);
    app.get("/api/mcp/servers/old").await.expect(404);
    assert_eq!(app.server(id).await["name"], "new");
    assert_eq!(std::fs::read(app.path("lock")).unwrap(), b"", "no overlap");
    let again = app.again().await;
    assert_eq!(again.server("new").await["id"], id);
}

#[tokio::test]
async fn a8_a_wrong_change_changes_nothing() {
    let app = setup().mcp(one_with_env()).start().await;
    let before = app.until_status("one", "connected").await;
    let file = std::fs::read(app.path(".mcp.json")).unwrap();
    for (method, body, status) in [
        ("PATCH", json!({"timeout": 0}), 422),
        ("PATCH", json!({"colour": 1}), 422),
        ("PATCH", json!({"env": {"NEW": "***"}}), 422),
        ("PATCH", json!({"url": "http://127.0.0.1:1/"}), 422),
        ("PATCH", json!({"command": null}), 422),
        ("PATCH", json!([]), 400),
        ("PUT", json!({}), 422),
        (
            "PUT",
            json!({"command": fixture(), "env": {"MODE": 1}}),
            422,
        ),
    ] {
        let answer = app.send(method, "/api/mcp/servers/one", Some(body.to_string()));
        let answer = answer.await;
        assert_eq!(answer.status, status, "{method} {body}: {}", answer.text);
        assert_eq!(app.server("one").await, before, "{method} {body}");
    }
    assert_eq!(std::fs::read(app.path(".mcp.json")).unwrap(), file);
}

#[tokio::test]
async fn a8_enabled_false_stops_it_and_true_starts_it() {
    let app = setup().mcp(one_with_env()).start().await;
    app.until_status("one", "connected").await;
    app.patch("one", json!({"enabled": false}))
        .await
        .expect(200);
    let down = app.until_status("one", "disconnected").await;
    assert_eq!(
        (&down["enabled"], &down["state"]),
        (&json!(false), &json!("stopped"))
    );
    // The state says what is meant; calls in flight may finish first.
    eventually("no process is left", || app.children().is_empty()).await;
    app.patch("one", json!({"disabled": false}))
        .await
        .expect(200);
    app.until_status("one", "connected").await;
}

#[tokio::test]
async fn a8_a_failing_server_is_tried_anew_with_its_new_settings() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--exit", "1"])]))
        .start()
        .await;
    app.until_status("one", "error").await;
    app.patch("one", json!({"args": []})).await.expect(200);
    app.until_status("one", "connected").await;
}

#[tokio::test]
async fn a8_a_change_does_not_wait_for_calls_in_flight() {
    let rooms = Rooms::open(&[("one", &[])]).await;
    let over = std::cell::Cell::new(false);
    let slow = async {
        let answer = rooms.call("one", "sleep", json!({"ms": 4000})).await;
        over.set(true);
        answer
    };
    let edit = async {
        rooms.busy("one").await;
        rooms.patch("one", json!({"env": {"MODE": "new"}})).await;
        assert!(!over.get(), "the change waited");
    };
    let (slow, ()) = tokio::join!(slow, edit);
    slow.unwrap();
    rooms.close().await;
}

#[tokio::test]
async fn a8_c2_a_changed_server_may_speak_another_era() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--era", "legacy"])]))
        .start()
        .await;
    let before = app.until_status("one", "connected").await;
    assert_eq!(before["era"], "legacy");
    app.patch("one", json!({"args": ["--era", "modern"]}))
        .await
        .expect(200);
    assert_eq!(replaced(&app, &before).await["era"], "modern");
}

#[tokio::test]
async fn a8_calls_in_flight_finish_on_the_old_process_and_new_ones_wait() {
    let rooms = Rooms::open(&[("one", &["--exclusive", "lock"])]).await;
    let slow = rooms.call("one", "sleep", json!({"ms": 700}));
    let edit = async {
        rooms.busy("one").await;
        rooms.patch("one", json!({"env": {"MODE": "new"}})).await;
        // The old process is still busy; this call must see the new one.
        rooms.call("one", "env", json!({"name": "MODE"})).await
    };
    let (slow, fresh) = tokio::join!(slow, edit);
    assert_eq!(slow.unwrap(), "slept 700 ms");
    assert_eq!(fresh.unwrap(), "new");
    assert_eq!(
        std::fs::read(rooms.path("lock")).unwrap(),
        b"",
        "no overlap"
    );
    rooms.close().await;
}

#[tokio::test]
async fn a8_no_call_is_lost_over_many_changes() {
    let rooms = Rooms::open(&[("one", &["--exclusive", "lock"])]).await;
    let (answered, over) = (Cell::new(0), Cell::new(false));
    let edits = async {
        for n in 0..4 {
            let before = answered.get();
            rooms
                .patch("one", json!({"env": {"N": n.to_string()}}))
                .await;
            rooms.connected("one").await;
            eventually("calls go on", || answered.get() > before + 1).await;
        }
        over.set(true);
    };
    let calls = async {
        while !over.get() {
            rooms.call("one", "sleep", json!({"ms": 5})).await.unwrap();
            answered.set(answered.get() + 1);
        }
    };
    tokio::join!(calls, edits);
    println!("{} calls answered over 4 replacements", answered.get());
    assert_eq!(
        std::fs::read(rooms.path("lock")).unwrap(),
        b"",
        "no overlap"
    );
    rooms.close().await;
}

#[tokio::test]
async fn a6_a_call_in_flight_fails_quickly_when_its_server_dies() {
    let rooms = Rooms::open(&[("one", &[])]).await;
    let error = rooms.call("one", "crash", json!({})).await.unwrap_err();
    // The cause, not the limit of the call.
    assert!(error.to_string().contains("ended with"), "{error}");
    // Told at once while it is away, served again when it is back.
    let away = rooms.call("one", "echo", json!({"text": "hi"})).await;
    let away = away.unwrap_err().to_string();
    assert!(away.contains("ended with"), "{away}");
    eventually("it is restarted", || {
        rooms.fleet.snapshot().servers["one"].restarts == 1
    })
    .await;
    rooms.connected("one").await;
    let said = rooms.call("one", "echo", json!({"text": "hi"})).await;
    assert_eq!(said.unwrap(), "hi");
    rooms.close().await;
}

#[tokio::test]
async fn a3_a_call_in_flight_fails_quickly_when_its_server_is_stopped() {
    let rooms = Rooms::open(&[("one", &[])]).await;
    let hangs = rooms.call("one", "hang", json!({}));
    let stop = async {
        rooms.busy("one").await;
        rooms.registry.set_run("one", false).unwrap();
    };
    let (error, ()) = tokio::join!(hangs, stop);
    let error = error.unwrap_err().to_string();
    // The cause, not the limit of the call.
    assert!(error.contains("was stopped"), "{error}");
    eventually("its catalog is gone", || {
        let snapshot = rooms.fleet.snapshot();
        snapshot.servers["one"].catalog.tools.is_empty()
    })
    .await;
    rooms.close().await;
}
