//! Where the tools are, and where not.

use serde_json::{Value, json};

use super::{AdminClient, OWN, portway};
use crate::app::{eventually, fixture, fixtures, setup};
use crate::mcp_front::{call, modern, until};

const TOOLS: [&str; 10] = [
    "list_servers", "get_server", "add_server", "update_server", "remove_server", "start_server",
    "stop_server", "restart_server", "server_logs", "list_tools",
];

fn of_portway(names: &[String]) -> Vec<&str> {
    let own = names
        .iter()
        .filter_map(|name| name.strip_prefix("mcp_portway_"));
    own.collect()
}

#[tokio::test]
async fn d9_the_admin_sees_them_beside_the_others_and_alone() {
    let app = portway(&[("one", &[])]).await;
    let mut sorted = TOOLS;
    sorted.sort_unstable();
    for admin in AdminClient::both(&app, "/mcp").await {
        let names = admin.names().await;
        assert_eq!(of_portway(&names), sorted);
        assert!(names.iter().any(|name| name == "mcp_one_echo"));
    }
    for admin in AdminClient::both(&app, OWN).await {
        assert_eq!(admin.names().await, TOOLS);
        if let AdminClient::Legacy(session) = &admin {
            let hello = &session.hello["result"];
            assert_eq!(hello["serverInfo"]["name"], "portway");
            assert_eq!(
                hello["capabilities"],
                json!({"tools": {"listChanged": true}})
            );
        }
        let none = admin.ask("resources/list", json!({})).await;
        assert_eq!(none["error"]["code"], -32601, "{none:#}");
    }
    // It is no server to manage.
    assert_eq!(app.list().await.len(), 1);
    app.get("/api/mcp/servers/portway").await.expect(404);
    app.get("/api/mcp/servers/portway/tools").await.expect(404);
}

#[tokio::test]
async fn d9_annotations_say_what_a_call_may_do() {
    let app = portway(&[]).await;
    let list = AdminClient::Modern(&app, OWN)
        .ask("tools/list", json!({}))
        .await;
    let reads = (true, false, true, false);
    for (tool, manner) in [
        ("list_servers", reads),
        ("get_server", reads),
        ("server_logs", reads),
        ("list_tools", reads),
        ("add_server", (false, true, false, true)),
        ("update_server", (false, true, true, true)),
        ("remove_server", (false, true, true, false)),
        ("start_server", (false, false, true, true)),
        ("stop_server", (false, true, true, false)),
        ("restart_server", (false, true, false, true)),
    ] {
        let listed = list["result"]["tools"].as_array().unwrap();
        let listed = listed.iter().find(|listed| listed["name"] == tool).unwrap();
        let hint = |name: &str| listed["annotations"][name].as_bool().unwrap();
        let hints = (
            hint("readOnlyHint"),
            hint("destructiveHint"),
            hint("idempotentHint"),
            hint("openWorldHint"),
        );
        assert_eq!(hints, manner, "{tool}");
        for member in ["title", "description"] {
            assert!(listed[member].is_string(), "{listed:#}");
        }
        let properties = listed["inputSchema"]["properties"].as_object().unwrap();
        for (name, schema) in properties {
            assert!(schema["description"].is_string(), "{tool} {name}: {schema}");
        }
    }
    let add = &list["result"]["tools"][2]["description"];
    assert!(add.as_str().unwrap().contains("command is run"), "{add}");
}

#[tokio::test]
async fn d9_filters_narrow_them_as_any_other() {
    let filters = json!({"filters": {
        "look": {"allow": ["portway:list_*", "one:echo"]},
        "no": {"deny": ["portway:*"]},
    }});
    let app = setup()
        .mcp(fixtures(&[("one", &[])]))
        .file(".portway.json", filters.to_string())
        .start()
        .await;
    app.until_status("one", "connected").await;
    let look = AdminClient::Modern(&app, "/mcp?filter=look");
    let wanted = [
        "mcp_one_echo",
        "mcp_portway_list_servers",
        "mcp_portway_list_tools",
    ];
    assert_eq!(look.names().await, wanted);
    look.did("mcp_portway_list_servers", json!({})).await;
    for path in ["/mcp?filter=look", "/mcp?filter=no"] {
        let remove = call("mcp_portway_remove_server", json!({"server": "one"}));
        let refused = AdminClient::Modern(&app, path)
            .ask("tools/call", remove)
            .await;
        assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    }
    let no = AdminClient::Modern(&app, "/mcp?filter=no").names().await;
    assert!(of_portway(&no).is_empty() && no.len() > 10, "{no:?}");
}

#[tokio::test]
async fn d9_switched_off_they_are_nowhere() {
    let app = setup()
        .mcp(fixtures(&[("one", &[])]))
        .env("PORTWAY_SELF_CONTROL", "off")
        .start()
        .await;
    app.until_status("one", "connected").await;
    for admin in AdminClient::both(&app, "/mcp").await {
        assert!(of_portway(&admin.names().await).is_empty());
        let call = call("mcp_portway_list_servers", json!({}));
        let refused = admin.ask("tools/call", call).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    }
    let alone = modern(&app, OWN, "tools/list", json!({})).send().await;
    assert_eq!(alone.status, 404);
    // Nor by a binding.
    let tool = json!({"name": "servers", "server": "portway", "tool": "list_servers",
        "allow_missing": true});
    let tool = app.post("/api/v1/tools", tool).await.expect(201);
    let entry = json!({"name": "e", "bindings": [{"tool_id": tool["id"]}]});
    let entry = app.post("/api/v1/mcp_v2/with_bindings", entry).await;
    let key = entry.expect(201)["api_key"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/mcp_v2/server/{key}");
    let entry = AdminClient::Modern(&app, &path);
    assert!(entry.names().await.is_empty());
    let refused = entry.ask("tools/call", call("servers", json!({}))).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
}

#[tokio::test]
async fn d9_a_server_called_portway_takes_the_name() {
    let app = portway(&[("one", &[])]).await;
    let admin = AdminClient::Modern(&app, "/mcp");
    let wish = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(&app, OWN, "subscriptions/listen", wish).send();
    let mut listen = listen.await;
    listen.message().await.expect("an acknowledgement");

    let body = json!({"name": "portway", "command": fixture(), "autoStart": false});
    app.post("/api/mcp/servers", body).await.expect(201);
    let (_, told) = listen.message().await.expect("a change");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    // Already while it does not run.
    assert!(of_portway(&admin.names().await).is_empty());
    app.act("portway", "start").await;
    let names = admin.names().await;
    let theirs = of_portway(&names);
    assert!(theirs.contains(&"echo") && !theirs.contains(&"list_servers"));
    let alone = AdminClient::Modern(&app, OWN).names().await;
    assert!(alone.contains(&"echo".to_owned()), "{alone:?}");
    assert_eq!(app.list().await.len(), 2);
    let said = "is called \"portway\"";
    eventually("the log says so", || app.log().contains(said)).await;

    app.delete("portway").await.expect(204);
    let back = || async { of_portway(&admin.names().await).contains(&"list_servers") };
    until("they are back", back).await;
    app.post(
        "/api/mcp/servers",
        json!({"name": "portway", "command": fixture()}),
    )
    .await
    .expect(201);
    app.until_status("portway", "connected").await;
    assert_eq!(app.log().matches(said).count(), 1, "once is enough");

    // And from the first moment on, where a file has it.
    let app = app.again().await;
    let session = crate::mcp_front::legacy(&app, OWN, "2025-11-25", json!({})).await;
    assert_ne!(session.hello["result"]["serverInfo"]["name"], "portway");
}

#[tokio::test]
async fn d9_calls_are_counted_as_those_of_a_server() {
    let app = portway(&[]).await;
    let admin = AdminClient::Modern(&app, "/mcp");
    admin.did("mcp_portway_list_servers", json!({})).await;
    admin
        .refused("mcp_portway_get_server", json!({"server": "no"}))
        .await;
    let seen = || async {
        let report = app.get("/api/mcp/activity").await.expect(200);
        let recent = report["recent"].as_array().unwrap().clone();
        let is = |call: &Value, tool: &str, outcome: &str| {
            call["server"] == "portway" && call["tool"] == tool && call["outcome"] == outcome
        };
        recent.iter().any(|call| is(call, "list_servers", "ok"))
            && recent
                .iter()
                .any(|call| is(call, "get_server", "tool_error"))
    };
    until("both calls are in the book", seen).await;
}

#[tokio::test]
async fn d9_they_are_in_every_format_of_the_tools_api() {
    let app = portway(&[("one", &[])]).await;
    for format in ["mcp", "openai", "anthropic", "copilot"] {
        let listed = app.get(&format!("/api/mcp/tools?format={format}")).await;
        let listed = listed.expect(200).to_string();
        assert!(listed.contains("\"mcp_portway_add_server\""), "{format}");
    }
    for name in ["mcp_portway_list_servers", "portway:list_servers"] {
        let path = format!("/api/mcp/tools/{name}/call");
        let called = app.post(&path, json!({"arguments": {}})).await.expect(200);
        let servers = &called["structuredContent"]["servers"];
        assert_eq!(servers[0]["name"], "one", "{called:#}");
    }
}
