//! All servers together on `/mcp`: names, resources, filters, and servers
//! that are away.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, fixture, fixtures, pid, setup};
use crate::mcp_front::{call, legacy, modern, old_sse, post, said};

const ALL: &str = "/mcp";

async fn portway(servers: &[(&str, &[&str])]) -> App {
    let app = setup().mcp(fixtures(servers)).start().await;
    for (name, _) in servers {
        app.until_status(name, "connected").await;
    }
    app
}

async fn ask(app: &App, path: &str, method: &str, params: Value) -> Value {
    modern(app, path, method, params)
        .send()
        .await
        .answer()
        .await
}

async fn names(app: &App, path: &str) -> Vec<String> {
    let list = ask(app, path, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{list:#}"));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// Polls a list of tools until it is as `fits` says.
async fn until(app: &App, path: &str, fits: impl Fn(&[String]) -> bool) {
    let start = Instant::now();
    loop {
        let names = names(app, path).await;
        if fits(&names) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{path} stays {names:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn d2_tools_of_all_servers_are_called_by_names_that_tell_them_apart() {
    let servers: &[(&str, &[&str])] = &[
        ("new", &["--era", "modern"]),
        ("old", &["--era", "legacy"]),
        ("old_one", &["--era", "legacy"]),
    ];
    let app = portway(servers).await;
    let names = names(&app, ALL).await;
    assert!(names.is_sorted(), "{names:?}");
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for name in &names {
        assert!(name.len() <= 64 && name.chars().all(fits), "{name}");
    }
    let session = legacy(&app, ALL, "2025-06-18", json!({})).await;
    for name in ["mcp_new_echo", "mcp_old_echo", "mcp_old_one_echo"] {
        let text = json!({"text": name});
        let answer = ask(&app, ALL, "tools/call", call(name, text.clone())).await;
        assert_eq!(said(&answer), name);
        let answer = session.tool(1, name, text).send().await.answer().await;
        assert_eq!(said(&answer), name);
    }
    let unknown = ask(&app, ALL, "tools/call", call("echo", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
}

#[tokio::test]
async fn i1_resources_of_all_servers_are_read_by_one_uri() {
    let app = portway(&[("new", &["--era", "modern"]), ("old", &["--era", "legacy"])]).await;
    for server in ["new", "old"] {
        let uri = format!("portway://{server}/fixture://text");
        let list = ask(&app, ALL, "resources/list", json!({})).await;
        let listed = list["result"]["resources"].as_array().unwrap();
        assert!(
            listed.iter().any(|resource| resource["uri"] == uri),
            "{list:#}"
        );
        let read = ask(&app, ALL, "resources/read", json!({"uri": uri})).await;
        assert_eq!(
            read["result"]["contents"],
            json!([{"uri": uri, "mimeType": "text/plain", "text": "a fixed text"}])
        );
        let name = format!("mcp_{server}_content");
        let called = ask(&app, ALL, "tools/call", call(&name, json!({}))).await;
        let blocks = &called["result"]["content"];
        assert_eq!(blocks[3]["uri"], uri, "{called:#}");
        let embedded = format!("portway://{server}/fixture://embedded");
        assert_eq!(blocks[4]["resource"]["uri"], embedded);
        // What a template makes, no list shows.
        let uri = format!("portway://{server}/fixture://item/7");
        let read = ask(&app, ALL, "resources/read", json!({"uri": uri})).await;
        assert_eq!(read["result"]["contents"][0]["text"], r#"{"id":"7"}"#);
        let template = format!("portway://{server}/fixture://item/{{id}}");
        let params = json!({"ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": "id", "value": "1"}});
        let completed = ask(&app, ALL, "completion/complete", params).await;
        assert_eq!(
            completed["result"]["completion"]["values"][0], "1",
            "{completed:#}"
        );
        let name = format!("mcp_{server}_greet");
        let prompt = ask(&app, ALL, "prompts/get", json!({ "name": name })).await;
        assert_eq!(
            prompt["result"]["messages"][0]["content"]["text"],
            "Say hello."
        );
    }
    let lost = json!({"uri": "portway://nobody/fixture://text"});
    let lost = ask(&app, ALL, "resources/read", lost).await;
    assert_eq!(lost["error"]["code"], -32602, "{lost:#}");
    assert_eq!(
        lost["error"]["data"]["uri"],
        "portway://nobody/fixture://text"
    );
}

#[tokio::test]
async fn d7_a_named_filter_narrows_what_is_listed_and_called() {
    let filters = json!({"filters": {
        "sums": {"allow": ["*:add", "one:echo"], "deny": ["two:*"]},
        "bad": {"allow": ["one"]},
    }});
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .file(".portway.json", filters.to_string())
        .start()
        .await;
    for name in ["one", "two"] {
        app.until_status(name, "connected").await;
    }
    let sums = "/mcp?filter=sums";
    assert_eq!(names(&app, sums).await, ["mcp_one_add", "mcp_one_echo"]);
    let denied = ask(&app, sums, "tools/call", call("mcp_two_add", json!({}))).await;
    assert_eq!(denied["error"]["code"], -32602, "{denied:#}");
    let hidden = json!({"uri": "portway://two/fixture://text"});
    let hidden = ask(&app, sums, "resources/read", hidden).await;
    assert!(hidden["error"].is_object(), "{hidden:#}");
    for (name, status) in [("none", 404), ("bad", 409)] {
        let path = format!("/mcp?filter={name}");
        let talk = modern(&app, &path, "tools/list", json!({})).send().await;
        assert_eq!(talk.status, status);
        let body = talk.text().await;
        assert!(body.contains(name), "{body}");
    }
    let narrower = json!({"filters": {"sums": {"allow": ["one:add"]}}, "default": "sums"});
    std::fs::write(app.path(".portway.json"), narrower.to_string()).unwrap();
    until(&app, ALL, |names| names == ["mcp_one_add"]).await;
    assert_eq!(names(&app, sums).await, ["mcp_one_add"]);
    // What cannot be read opens nothing.
    std::fs::write(app.path(".portway.json"), "{").unwrap();
    tokio::time::timeout(PATIENCE, async {
        while !app.log().contains(".portway.json cannot be used") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(names(&app, ALL).await, ["mcp_one_add"]);
    assert!(names(&app, "/servers/two/mcp").await.len() > 10);
}

#[tokio::test]
async fn d7_a_named_filter_narrows_a_servers_own_endpoint() {
    let filters = json!({"filters": {
        "sums": {"allow": ["*:add"]},
        "others": {"deny": ["one:*"]},
    }});
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .file(".portway.json", filters.to_string())
        .start()
        .await;
    app.until_status("one", "connected").await;
    let all = "/servers/one/mcp";
    let echo = || call("echo", json!({"text": "hi"}));
    assert!(names(&app, all).await.contains(&"echo".to_owned()));
    for base in [all, "/api/mcp/servers/one/mcp"] {
        let sums = format!("{base}?filter=sums");
        assert_eq!(names(&app, &sums).await, ["add"]);
        let denied = ask(&app, &sums, "tools/call", echo()).await;
        assert_eq!(denied["error"]["code"], -32602, "{denied:#}");
        let text = json!({"uri": "fixture://text"});
        let read = ask(&app, &sums, "resources/read", text.clone()).await;
        assert!(read["result"].is_object(), "{read:#}");
        // Nothing of the server is left.
        let others = format!("{base}?filter=others");
        assert!(names(&app, &others).await.is_empty());
        for (method, params) in [("tools/call", echo()), ("resources/read", text)] {
            let denied = ask(&app, &others, method, params).await;
            assert!(denied["error"].is_object(), "{denied:#}");
        }
        let none = format!("{base}?filter=none");
        let talk = modern(&app, &none, "tools/list", json!({})).send().await;
        assert_eq!(talk.status, 404);
    }
    // A session goes on as it began.
    let sums = format!("{all}?filter=sums");
    let client = legacy(&app, &sums, "2025-11-25", json!({})).await;
    let denied = client.tool(1, "echo", json!({"text": "hi"})).send().await;
    assert_eq!(denied.answer().await["error"]["code"], -32602);
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let wider = post(&app, all, ping).header("mcp-session-id", &client.session);
    assert_eq!(wider.send().await.status, 404);
    let mut old = old_sse::connect(&app, "/servers/one/sse?filter=sums").await;
    old.hello("2024-11-05", json!({})).await;
    let denied = old.request(1, "tools/call", echo()).await;
    assert_eq!(denied["error"]["code"], -32602, "{denied:#}");
}

#[tokio::test]
async fn d7_an_edited_filter_is_told_to_those_who_listen() {
    let app = portway(&[("one", &[])]).await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut listen = modern(&app, ALL, "subscriptions/listen", params)
        .send()
        .await;
    listen.message().await.expect("an acknowledgement");
    let filters = json!({"filters": {"a": {"deny": ["*:add"]}}, "default": "a"});
    std::fs::write(app.path(".portway.json"), filters.to_string()).unwrap();
    // That the server came up may be told first.
    loop {
        let (_, told) = listen.message().await.expect("a change");
        assert_eq!(told["method"], "notifications/tools/list_changed");
        if !names(&app, ALL).await.contains(&"mcp_one_add".to_owned()) {
            break;
        }
    }
}

#[tokio::test]
async fn d1_a_server_that_is_away_delays_no_list_and_its_tools_are_marked() {
    let start = setup();
    let program = start.path().join("server");
    std::os::unix::fs::symlink(fixture(), &program).unwrap();
    let definition = json!({"mcpServers": {
        "gone": {"command": program, "args": ["--era", "legacy"]},
        "here": {"command": fixture()},
    }});
    let app = start.mcp(definition).env("PORTWAY_SELF_CONTROL", "off");
    let app = app.start().await;
    for name in ["gone", "here"] {
        app.until_status(name, "connected").await;
    }
    let before = names(&app, ALL).await;
    // Its next start says nothing for ever.
    let silent = app.path("silent");
    std::fs::write(&silent, "#!/bin/sh\nexec sleep 600\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&silent, mode).unwrap();
    std::fs::rename(&silent, &program).unwrap();
    let victim = pid(&app.server("gone").await);
    kill(Pid::from_raw(victim as i32), Signal::SIGKILL).unwrap();
    app.until("gone", |record| record["status"] != "connected")
        .await;

    let list = ask(&app, ALL, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    for tool in tools {
        let away = tool["name"].as_str().unwrap().starts_with("mcp_gone_");
        assert_eq!(tool["_meta"]["portway/stale"] == true, away, "{tool}");
    }
    assert_eq!(names(&app, ALL).await, before);
    assert_eq!(list["result"]["ttlMs"], 0);
    let record = app.server("gone").await;
    assert_eq!(record["toolCount"], 0, "{record:#}");
    app.act("gone", "stop").await;
    let late = ask(&app, ALL, "tools/call", call("mcp_gone_echo", json!({}))).await;
    let text = late["error"]["message"].as_str().unwrap();
    assert!(text.contains("\"gone\" is not connected"), "{text}");
    until(&app, ALL, |names| {
        !names.is_empty() && names.iter().all(|name| name.starts_with("mcp_here_"))
    })
    .await;
}

#[tokio::test]
async fn k4_a_client_that_comes_early_is_greeted_when_its_server_is_there() {
    let slow = format!("sleep 1.5; exec {}", fixture());
    let definition = json!({"mcpServers": {
        "slow": {"command": "sh", "args": ["-c", slow]},
        "bad": {"command": fixture(), "args": ["--exit", "3"]},
    }});
    let app = setup().mcp(definition).start().await;
    let path = "/servers/slow/mcp";
    let session = legacy(&app, path, "2025-11-25", json!({})).await;
    let able = &session.hello["result"]["capabilities"];
    assert!(able["tools"].is_object(), "{}", session.hello);
    let greeting = ask(&app, "/servers/bad/mcp", "server/discover", json!({})).await;
    let text = greeting["error"]["message"].as_str().unwrap();
    assert!(text.contains("\"bad\" is not connected"), "{text}");
}
