//! SPEC D1: every discovered tool is registered, and leaves with its server.

use serde_json::{Value, json};

use crate::app::{App, fixtures, setup};

async fn tools(app: &App, server: &str) -> Vec<Value> {
    let path = format!("/api/mcp/servers/{server}/tools");
    app.get(&path).await.expect(200).as_array().unwrap().clone()
}

fn named<'t>(tools: &'t [Value], name: &str) -> &'t Value {
    let found = tools.iter().find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn d1_a_tool_is_known_as_server_and_tool_with_description_and_schema() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &["--era", "legacy"])]))
        .start()
        .await;
    for server in ["one", "two"] {
        let record = app.until_status(server, "connected").await;
        let tools = tools(&app, server).await;
        assert_eq!(record["toolCount"], tools.len());
        for tool in &tools {
            let key = format!("{server}:{}", tool["name"].as_str().unwrap());
            assert_eq!(tool["key"], key);
            assert!(tool["description"].is_string(), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        }
        let echo = named(&tools, "echo");
        assert_eq!(echo["description"], "Repeats a text");
        assert_eq!(
            echo["inputSchema"],
            json!({
                "type": "object",
                "properties": {"text": {"type": "string", "description": "What to say"}},
                "required": ["text"],
            })
        );
        // And whatever else the server said of it.
        assert_eq!(echo["annotations"]["readOnlyHint"], true);
        assert_eq!(echo["_meta"]["example.org/kind"], "fixture");
        assert!(named(&tools, "add")["outputSchema"].is_object());
    }
}

#[tokio::test]
async fn d1_tools_leave_with_their_server_and_come_back_with_it() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .start()
        .await;
    app.until_status("one", "connected").await;
    app.until_status("two", "connected").await;
    let before = tools(&app, "one").await;
    app.act("one", "stop").await;
    assert!(tools(&app, "one").await.is_empty());
    assert_eq!(app.server("one").await["toolCount"], 0);
    assert_eq!(tools(&app, "two").await.len(), before.len());
    app.act("one", "start").await;
    assert_eq!(tools(&app, "one").await, before);
    app.delete("one").await;
    app.get("/api/mcp/servers/one/tools").await.expect(404);
}

#[tokio::test]
async fn d1_a_crashed_server_takes_its_tools_along() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--crash-after", "200"])]))
        .start()
        .await;
    app.until("one", |record| record["error"].is_string()).await;
    let record = app.server("one").await;
    // Unless it is back already.
    if record["status"] != "connected" {
        assert_eq!(record["toolCount"], 0, "{record:#}");
    }
}
