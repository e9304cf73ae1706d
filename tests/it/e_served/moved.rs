use serde_json::json;

use super::*;
use crate::e_records::{ENTRIES, on_each_store};

on_each_store!(a8_a_renamed_server_keeps_its_tools_in_entries_and_a9_a_deleted_one_does_not);

async fn a8_a_renamed_server_keeps_its_tools_in_entries_and_a9_a_deleted_one_does_not(
    storage: Storage,
) {
    let app = with_fixtures(storage, &[("x", &[]), ("y", &[])]).await;
    let tools = [
        app.tool_of("say", "x", "echo").await,
        app.tool_of("say_too", "y", "echo").await,
    ];
    let made = app.new_entry("e", &tools).await;
    let place = format!("{ENTRIES}/{}", made["id"]);
    let exposes = json!({"exposes": {"resources": ["x"]}});
    app.patched(&place, exposes).await.expect(200);
    let agent = Agent::new(&app, text(&made["api_key"]), WAYS[0]).await;

    app.patch("x", json!({"name": "z"})).await.expect(200);
    app.until_status("z", "connected").await;
    let said = agent.call("say", json!({"text": "still here"})).await;
    assert!(said.to_string().contains("still here"), "{said:#}");
    let entry = app.get(&place).await.expect(200);
    assert_eq!(entry["exposes"]["resources"], json!(["z"]));
    let shown = agent.ask("resources/list", json!({})).await;
    assert_ne!(shown["result"]["resources"], json!([]), "{shown:#}");

    assert_eq!(app.delete("z").await.status, 204);
    let gone = agent.call("say", json!({"text": "?"})).await;
    assert!(gone["error"].is_object(), "{gone:#}");
    let left = app.get(&format!("{place}/bindings")).await.expect(200);
    let left = left["items"].as_array().or(left.as_array()).cloned();
    assert_eq!(left.map(|left| left.len()), Some(1), "only that of y");
    let other = agent.call("say_too", json!({"text": "me too"})).await;
    assert!(other.to_string().contains("me too"), "{other:#}");
}
