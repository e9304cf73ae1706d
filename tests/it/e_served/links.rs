use serde_json::{Value, json};

use super::*;
use crate::e_records::{ENTRIES, on_each_store};

on_each_store!(
    e12_a_link_in_a_result_is_read_through_the_entry_that_gave_it,
    e12_resources_and_prompts_are_given_where_switched_on,
);

async fn read(agent: &Agent<'_>, uri: &str) -> Value {
    agent.ask("resources/read", json!({ "uri": uri })).await
}

async fn e12_a_link_in_a_result_is_read_through_the_entry_that_gave_it(storage: Storage) {
    for era in ["legacy", "modern"] {
        let app = with_fixtures(storage, &[("x", &["--era", era])]).await;
        let tool = app.tool_of("links", "x", "content").await;
        let made = app.new_entry("one", &[tool]).await;
        let other = app.new_entry("other", &[tool]).await;
        for way in WAYS {
            let agent = Agent::new(&app, text(&made["api_key"]), way).await;
            let answer = agent.call("links", json!({})).await;
            let blocks = answer["result"]["content"].as_array();
            let blocks = blocks.unwrap_or_else(|| panic!("{answer:#}"));
            let link = blocks.iter().find(|block| block["type"] == "resource_link");
            let uri = text(&link.unwrap()["uri"]);
            let good = read(&agent, uri).await;
            assert_eq!(good["result"]["contents"][0]["uri"], uri, "{good:#}");
            let listed = agent.ask("resources/list", json!({})).await;
            assert_eq!(listed["result"]["resources"], json!([]), "{way:?}");
            // Through any door of the same entry, and of no other.
            for way in WAYS {
                let same = Agent::new(&app, text(&made["api_key"]), way).await;
                assert!(read(&same, uri).await["result"].is_object(), "{way:?}");
                let other = Agent::new(&app, text(&other["api_key"]), way).await;
                let refused = read(&other, uri).await;
                assert!(refused["error"].is_object(), "{way:?}: {refused}");
            }
            for guess in ["fixture://text", "portway://x/fixture://text"] {
                let refused = read(&agent, guess).await;
                assert!(refused["error"].is_object(), "{guess}: {refused}");
            }
        }
    }
}

async fn e12_resources_and_prompts_are_given_where_switched_on(storage: Storage) {
    let app = with_fixtures(storage, &[("x", &[]), ("y", &[])]).await;
    let made = app.new_entry("e", &[]).await;
    let (place, key) = (format!("{ENTRIES}/{}", made["id"]), text(&made["api_key"]));
    for way in WAYS {
        let none = json!({"exposes": {}});
        app.patched(&place, none).await.expect(200);
        let agent = Agent::new(&app, key, way).await;
        let refused = read(&agent, "portway://x/fixture://text").await;
        assert!(refused["error"].is_object(), "{way:?}: {refused}");
        let refused = agent.ask("prompts/list", json!({})).await;
        assert!(refused["error"].is_object(), "{way:?}: {refused}");

        let some = json!({"exposes": {"resources": ["x"], "prompts": ["y"]}});
        app.patched(&place, some).await.expect(200);
        // What a session may do, its greeting says.
        let agent = Agent::new(&app, key, way).await;
        let listed = agent.ask("resources/list", json!({})).await;
        let resources = listed["result"]["resources"].as_array().unwrap();
        assert!(!resources.is_empty());
        let of_x = |resource: &Value| text(&resource["uri"]).starts_with("portway://x/");
        assert!(resources.iter().all(of_x), "{resources:#?}");
        let good = read(&agent, "portway://x/fixture://text").await;
        assert!(good["result"].is_object(), "{way:?}: {good}");
        let refused = read(&agent, "portway://y/fixture://text").await;
        assert!(refused["error"].is_object(), "{way:?}: {refused}");
        let listed = agent.ask("prompts/list", json!({})).await;
        let prompts = listed["result"]["prompts"].as_array().unwrap();
        assert!(!prompts.is_empty());
        let of_y = |prompt: &Value| text(&prompt["name"]).starts_with("mcp_y_");
        assert!(prompts.iter().all(of_y), "{prompts:#?}");
    }
}
