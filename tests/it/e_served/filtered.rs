//! SPEC D7: entries that carry patterns, over REST and MCP, on each store.

use serde_json::json;

use super::owners::{SECRET, users};
use super::*;
use crate::app::{fixture, fixtures};
use crate::e_records::{ENTRIES, each, on_each_store, refused};
use crate::mcp_front::until;

on_each_store!(
    d7_an_entry_gives_what_its_patterns_match,
    d7_a_filter_in_the_address_only_narrows,
    d7_a_users_patterns_match_only_what_is_open_to_users,
);

async fn d7_an_entry_gives_what_its_patterns_match(storage: Storage) {
    let app = with_fixtures(storage, &[("one", &[]), ("two", &[])]).await;
    let add = app.tool_of("sum", "one", "add").await;
    let body = json!({"name": "agent", "bindings": [{"tool_id": add}],
        "filter": {"allow": ["*:add", "one:echo"], "deny": ["nothing:*"]}});
    let entry = app.post(crate::e_records::BOUND, body).await.expect(201);
    let place = format!("{ENTRIES}/{}", entry["id"]);
    let key = text(&entry["api_key"]).to_owned();
    let shown = app.get(&place).await.expect(200);
    let allow = json!({"allow": ["*:add", "one:echo"], "deny": ["nothing:*"]});
    assert_eq!(shown["filter"], allow);
    // The bound one under its own name, and only so.
    let wanted = ["mcp_one_echo", "mcp_two_add", "sum"];
    for way in WAYS {
        let agent = Agent::new(&app, &key, way).await;
        assert_eq!(agent.names().await, wanted);
        let answer = agent.call("mcp_one_echo", json!({"text": "hi"})).await;
        assert_eq!(told(&answer), "hi");
        let answer = agent.call("mcp_two_echo", json!({"text": "hi"})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer:#}");
    }
    for path in [format!("{place}/tools"), format!("/api/v1/mcp/{key}/tools")] {
        let tools = app.get(&path).await.expect(200);
        assert_eq!(each(&tools, "name"), ["sum", "mcp_one_echo", "mcp_two_add"]);
        assert_eq!(tools["items"][1]["tool_id"], Value::Null);
        assert_eq!(tools["items"][1]["tool"], "echo");
    }
    // A tool that comes later appears by itself.
    let agent = Agent::new(&app, &key, WAYS[0]).await;
    let three = json!({"name": "three", "command": fixture()});
    app.post("/api/mcp/servers", three).await.expect(201);
    let has = || async { agent.names().await.contains(&"mcp_three_add".to_owned()) };
    until("the new tool", has).await;
    // A binding that is switched off is not given by the patterns.
    let binding = format!("{place}/bindings/{add}");
    app.patched(&binding, json!({"status": false}))
        .await
        .expect(200);
    let names = agent.names().await;
    assert_eq!(names, ["mcp_one_echo", "mcp_three_add", "mcp_two_add"]);

    let narrower = json!({"filter": {"allow": ["*:add"], "deny": ["t*"]}});
    app.patched(&place, narrower).await.expect(200);
    assert!(agent.names().await.is_empty());
    let without = app.patched(&place, json!({"filter": null})).await;
    assert_eq!(without.expect(200)["filter"], Value::Null);
    app.patched(&binding, json!({"status": true}))
        .await
        .expect(200);
    assert_eq!(agent.names().await, ["sum"]);
    for (filter, field) in [
        (json!({}), "filter"),
        (json!([]), "filter"),
        (json!({"alow": ["*"]}), "filter.alow"),
        (json!({"allow": ["*", "fs"]}), "filter.allow[1]"),
        (json!({"deny": "*"}), "filter.deny"),
        (json!({"allow": vec!["*:x"; 101]}), "filter.allow"),
    ] {
        let answer = app.patched(&place, json!({ "filter": filter })).await;
        let body = refused(answer, 422, "VALIDATION_ERROR");
        assert_eq!(body["details"][0]["field"], field);
    }
    // Kept over a restart.
    let keep = json!({"filter": {"allow": ["two:echo"]}});
    app.patched(&place, keep).await.expect(200);
    let app = app.again().await;
    app.until_status("two", "connected").await;
    let agent = Agent::new(&app, &key, WAYS[0]).await;
    let both = || async { agent.names().await == ["mcp_two_echo", "sum"] };
    until("both", both).await;
}

async fn d7_a_filter_in_the_address_only_narrows(storage: Storage) {
    let filters = json!({"filters": {"all": {}, "sums": {"allow": ["*:add"]}}});
    let app = storage
        .setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .file(".portway.json", filters.to_string())
        .start()
        .await;
    for name in ["one", "two"] {
        app.until_status(name, "connected").await;
    }
    let body = json!({"name": "agent", "filter": {"allow": ["one:add", "one:echo"]}});
    let entry = app.post(ENTRIES, body).await.expect(201);
    let key = text(&entry["api_key"]);
    for way in WAYS {
        for (filter, wanted) in [
            ("sums", &["mcp_one_add"][..]),
            ("all", &["mcp_one_add", "mcp_one_echo"]),
        ] {
            let agent = Agent::filtered(&app, key, way, filter).await;
            assert_eq!(agent.names().await, wanted, "{way:?} {filter}");
            let answer = agent.call("mcp_one_echo", json!({"text": "hi"})).await;
            assert_eq!(answer["error"].is_object(), filter == "sums", "{answer:#}");
            let answer = agent.call("mcp_two_add", json!({"a": 1, "b": 2})).await;
            assert!(answer["error"].is_object(), "{answer:#}");
        }
    }
    let headers = [("x-api-key", key)];
    let path = |filter: &str| format!("/api/mcp/tools?filter={filter}");
    let list = app.request("GET", &path("sums"), None, &headers).await;
    let list = list.expect(200);
    assert_eq!(list["tools"].as_array().unwrap().len(), 1, "{list}");
    let none = app.request("GET", &path("none"), None, &headers).await;
    refused(none, 404, "NOT_FOUND");
}

async fn d7_a_users_patterns_match_only_what_is_open_to_users(storage: Storage) {
    let app = storage
        .setup()
        .mcp(fixtures(&[("open", &[]), ("secret", &[])]))
        .env("SUPABASE_JWT_SECRET", SECRET)
        .env("SUPABASE_USER_SERVERS", "open")
        .start()
        .await;
    for name in ["open", "secret"] {
        app.until_status(name, "connected").await;
    }
    let [ann, _] = users(&app);
    let new = |pattern: &str| json!({"name": "hers", "filter": {"allow": [pattern]}});
    let answer = ann.send("POST", ENTRIES, Some(new("secret:*"))).await;
    let body = refused(answer, 422, "VALIDATION_ERROR");
    assert_eq!(body["details"][0]["field"], "filter.allow[0]");
    let entry = ann.made(ENTRIES, new("*")).await;
    let own = app.post(ENTRIES, new("secret:echo")).await.expect(201);
    for way in WAYS {
        let agent = Agent::new(&app, text(&entry["api_key"]), way).await;
        let names = agent.names().await;
        assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("mcp_open_")));
        let answer = agent.call("mcp_secret_echo", json!({"text": "hi"})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer:#}");
        let agent = Agent::new(&app, text(&own["api_key"]), way).await;
        assert_eq!(agent.names().await, ["mcp_secret_echo"]);
    }
}
