//! What servers say about their use, for clients of several.

use serde_json::{Value, json};

use super::{legacy, modern};
use crate::app::{App, fixtures, setup};

/// The instructions at an endpoint, which both eras are told alike.
async fn told(app: &App, path: &str) -> Option<String> {
    let client = legacy(app, path, "2025-11-25", json!({})).await;
    let text = |result: &Value| result["instructions"].as_str().map(str::to_owned);
    let initialized = text(&client.hello["result"]);
    let discover = modern(app, path, "server/discover", json!({})).send().await;
    assert_eq!(text(&discover.answer().await["result"]), initialized);
    initialized
}

#[tokio::test]
async fn i2_instructions_are_joined_under_the_names_of_their_servers() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .start()
        .await;
    let one = app.until_status("one", "connected").await;
    app.until_status("two", "connected").await;
    let own = one["instructions"].as_str().unwrap();
    let all = told(&app, "/mcp").await.unwrap();
    for server in ["one", "two"] {
        assert!(
            all.contains(&format!("# Server {server}\n> {own}")),
            "{all}"
        );
    }

    // An entry's client is told what the servers of its own tools say.
    let tool = json!({"name": "say", "server": "two", "tool": "echo"});
    let tool = app.post("/api/v1/tools", tool).await.expect(201);
    let bound = json!({"name": "e", "bindings": [{"tool_id": tool["id"], "status": true}]});
    let entry = app
        .post("/api/v1/mcp_v2/with_bindings", bound)
        .await
        .expect(201);
    let path = format!(
        "/api/v1/mcp_v2/server/{}",
        entry["api_key"].as_str().unwrap()
    );
    assert_eq!(
        told(&app, &path).await.unwrap(),
        format!("# Server two\n> {own}")
    );
    let bare = app
        .post("/api/v1/mcp_v2", json!({"name": "b"}))
        .await
        .expect(201);
    let bare = format!(
        "/api/v1/mcp_v2/server/{}",
        bare["api_key"].as_str().unwrap()
    );
    assert_eq!(told(&app, &bare).await, None);

    app.act("two", "stop").await;
    let all = told(&app, "/mcp").await.unwrap();
    assert!(
        all.contains("# Server one") && !all.contains("# Server two"),
        "{all}"
    );
    assert_eq!(told(&app, &path).await, None);
}
