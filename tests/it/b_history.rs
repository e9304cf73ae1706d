//! The history of a server names the cause of each start and stop.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, fixture, fixtures, pid, setup};

/// Two servers that run; the record of `edited`.
async fn up() -> (App, Value) {
    let servers = fixtures(&[("steady", &[]), ("edited", &[])]);
    let app = setup().mcp(servers).start().await;
    app.until_status("steady", "connected").await;
    let edited = app.until_status("edited", "connected").await;
    (app, edited)
}

/// The reasons in a server's history, once `last` is among them.
async fn reasons(app: &App, server: &str, last: &str) -> Vec<String> {
    let start = Instant::now();
    loop {
        let path = format!("/api/mcp/servers/{server}/history");
        let answer = app.get(&path).await;
        let moments = answer.body.as_array().cloned().unwrap_or_default();
        let reasons: Vec<String> = moments
            .iter()
            .filter_map(|moment| Some(moment["reason"].as_str()?.to_owned()))
            .collect();
        if reasons.iter().any(|reason| reason == last) {
            return reasons;
        }
        assert!(start.elapsed() < PATIENCE, "no {last:?} in {reasons:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn b6_history_names_the_cause_of_a_start_or_a_stop() {
    let (app, _) = up().await;
    let path = std::fs::canonicalize(app.path(".mcp.json")).unwrap();
    let changed = format!("definition changed in {}", path.display());
    let mut text = fixtures(&[
        ("steady", &[]),
        ("edited", &["--era", "legacy"]),
        ("new", &[]),
    ]);
    let save = |text: &Value| std::fs::write(&path, text.to_string()).unwrap();
    save(&text);
    let history = reasons(&app, "edited", &changed).await;
    assert_eq!(history, ["Portway starts", &changed]);
    let added = format!("added in {}", path.display());
    assert_eq!(reasons(&app, "new", &added).await, [added]);

    app.until_status("edited", "connected").await;
    let change = json!({"args": ["--era", "modern"]});
    app.patch("edited", change).await.expect(200);
    reasons(&app, "edited", "definition changed through the API").await;
    app.act("edited", "restart").await;
    reasons(&app, "edited", "restart asked for").await;
    app.act("edited", "stop").await;
    reasons(&app, "edited", "stopped by hand").await;
    app.act("edited", "start").await;
    reasons(&app, "edited", "start asked for").await;

    text["mcpServers"]["steady"]["disabled"] = json!(true);
    save(&text);
    let off = format!("not enabled: {changed}");
    let history = reasons(&app, "steady", &off).await;
    assert_eq!(history, ["Portway starts", &off]);

    let body = json!({"name": "api", "command": fixture()});
    app.post("/api/mcp/servers", body).await.expect(201);
    let history = reasons(&app, "api", "added through the API").await;
    assert_eq!(history, ["added through the API"]);
    let body = json!({"name": "later", "command": fixture(), "autoStart": false});
    app.post("/api/mcp/servers", body).await.expect(201);
    let later = "not started: added through the API";
    assert_eq!(reasons(&app, "later", later).await, [later]);
}

#[tokio::test]
async fn b6_history_says_that_a_definition_became_invalid() {
    let (app, _) = up().await;
    let path = std::fs::canonicalize(app.path(".mcp.json")).unwrap();
    let changed = format!("definition changed in {}", path.display());
    let mut text = fixtures(&[("steady", &[])]);
    text["mcpServers"]["edited"] = json!("broken");
    std::fs::write(&path, text.to_string()).unwrap();
    app.until_status("edited", "error").await;
    let history = reasons(&app, "edited", &changed).await;
    assert_eq!(history[..2], ["Portway starts", &changed]);
    assert_eq!(history.len(), 3, "{history:?}");
    assert!(!history.iter().any(|reason| reason == "stopped by hand"));
}

#[tokio::test]
async fn b6_history_does_not_blame_an_earlier_failure_for_an_edit() {
    let (app, edited) = up().await;
    let killed = Pid::from_raw(pid(&edited) as i32);
    kill(killed, Signal::SIGKILL).unwrap();
    let up_again = |record: &Value| record["status"] == "connected" && record["restarts"] == 1;
    app.until("edited", up_again).await;
    let change = json!({"args": ["--era", "legacy"]});
    app.patch("edited", change).await.expect(200);
    let changed = "definition changed through the API";
    let history = reasons(&app, "edited", changed).await;
    let failure = history
        .iter()
        .position(|one| one == "try 2 after a failure");
    let edit = history.iter().position(|one| one == changed);
    assert_eq!(failure.map(|at| at + 1), edit, "{history:?}");
}
