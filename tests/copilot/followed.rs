//! A live session whose tools change with Portway's.

use std::sync::Arc;

use async_trait::async_trait;
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::{Error, Tool, ToolInvocation, ToolResult};
use portway::copilot::{self, FollowHandle, RemotePortway, ToolOptions};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::app::{PATIENCE, TOKEN, fixture};
use crate::runtime::{Runtime, say};
use crate::used::{own, portway};

/// Waits until a session has, or has no more, a tool of Portway's.
async fn until(following: &FollowHandle, name: &str, there: bool) {
    let mut offered = following.offered();
    let fits = offered.wait_for(|names| names.iter().any(|one| one == name) == there);
    let fits = tokio::time::timeout(PATIENCE, fits).await;
    let fits = fits.unwrap_or_else(|_| panic!("{name}: never {there}"));
    fits.map(drop).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_a_live_session_follows_the_catalog() {
    let (app, portway) = portway(&[("fs", &[])]).await;
    let runtime = Runtime::start().await;
    let options = ToolOptions::default();
    let tools = copilot::tools(&portway, &options).await.unwrap();
    let tools = copilot::merge(vec![own()], tools).unwrap();
    let (session, _) = runtime.session(tools).await;
    let following = copilot::follow(&portway, &session, vec![own()], options);
    assert_eq!(
        say(&session, "call mcp_fs_echo {\"text\":\"1\"}").await,
        "it says: 1"
    );

    let added = json!({"name": "late", "command": fixture()});
    app.post("/api/mcp/servers", added).await.expect(201);
    until(&following, "mcp_late_echo", true).await;
    assert_eq!(
        say(&session, "call mcp_late_echo {\"text\":\"2\"}").await,
        "it says: 2"
    );
    assert_eq!(
        say(&session, "call own_word {\"word\":\"3\"}").await,
        "it says: own 3"
    );

    app.delete("late").await.expect(204);
    until(&following, "mcp_late_echo", false).await;
    say(&session, "nothing").await;
    let offered = runtime.model.offered();
    assert!(offered.iter().any(|name| name == "mcp_fs_echo"));
    assert!(!offered.iter().any(|name| name.starts_with("mcp_late")));
    drop(following);
    runtime.end().await;
    assert_eq!(app.stop().await, Some(0));
}

/// Holds a turn open until it is let through.
#[derive(Default)]
struct TurnGate {
    reached: Notify,
    open: Notify,
}

#[async_trait]
impl ToolHandler for TurnGate {
    async fn call(&self, _: ToolInvocation) -> Result<ToolResult, Error> {
        self.reached.notify_one();
        self.open.notified().await;
        Ok(ToolResult::Text("through".into()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_within_a_turn_tools_come_and_none_goes() {
    let (app, portway) = portway(&[("fs", &[]), ("old", &[])]).await;
    let runtime = Runtime::start().await;
    let gate = Arc::new(TurnGate::default());
    let own = Tool::new("gate")
        .with_parameters(json!({"type": "object"}))
        .with_handler(gate.clone());
    let (session, _) = runtime.session(vec![own.clone()]).await;
    let following = copilot::follow(&portway, &session, vec![own], ToolOptions::default());
    until(&following, "mcp_old_echo", true).await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { say(&session, "call gate {}").await }
    });
    let reached = tokio::time::timeout(PATIENCE, gate.reached.notified()).await;
    reached.expect("the turn is open");

    let added = json!({"name": "new", "command": fixture()});
    app.post("/api/mcp/servers", added).await.expect(201);
    app.delete("old").await.expect(204);
    until(&following, "mcp_new_echo", true).await;
    until(&following, "mcp_old_echo", false).await;
    gate.open.notify_one();
    assert_eq!(turn.await.unwrap(), "it says: through");
    // Asked within the turn, after both changes.
    let offered = runtime.model.offered();
    for name in ["mcp_new_echo", "mcp_old_echo"] {
        assert!(offered.iter().any(|one| one == name), "{name}: {offered:?}");
    }
    let start = Instant::now();
    while runtime
        .model
        .offered()
        .iter()
        .any(|name| name == "mcp_old_echo")
    {
        assert!(start.elapsed() < PATIENCE, "it stays for ever");
        say(&session, "nothing").await;
    }
    assert!(
        runtime
            .model
            .offered()
            .iter()
            .any(|name| name == "mcp_new_echo")
    );
    runtime.end().await;
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_an_entrys_key_gives_its_tools_and_they_are_followed() {
    let (app, _) = portway(&[("fs", &[])]).await;
    let record = |name: &str, tool: &str| json!({"name": name, "server": "fs", "tool": tool});
    let mut ids = Vec::new();
    for (name, tool) in [("say", "echo"), ("sum", "add")] {
        let made = app.post("/api/v1/tools", record(name, tool)).await;
        ids.push(made.expect(201)["id"].clone());
    }
    let bindings = json!([{"tool_id": ids[0], "status": true}]);
    let entry = json!({"name": "e", "bindings": bindings});
    let made = app.post("/api/v1/mcp_v2/with_bindings", entry).await;
    let made = made.expect(201);
    let key = made["api_key"].as_str().unwrap();
    assert_ne!(key, TOKEN);

    let portway = RemotePortway::new(&app.url, key).unwrap();
    let options = ToolOptions::default();
    let runtime = Runtime::start().await;
    let tools = copilot::tools(&portway, &options).await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["say"]);
    let (session, _) = runtime.session(tools).await;
    let following = copilot::follow(&portway, &session, Vec::new(), options);
    assert_eq!(
        say(&session, "call say {\"text\":\"1\"}").await,
        "it says: 1"
    );

    let path = format!("/api/v1/mcp_v2/{}/bindings", made["id"]);
    let binding = json!({"tool_id": ids[1], "status": true});
    app.post(&path, binding).await.expect(201);
    until(&following, "sum", true).await;
    let said = say(&session, "call sum {\"a\":1,\"b\":2}").await;
    assert!(said.contains('3'), "{said}");
    runtime.end().await;
    assert_eq!(app.stop().await, Some(0));
}
