//! SPEC D2: names for models, in every list that has them, and what happens
//! to them when servers come and go.

use serde_json::{Value, json};

use crate::app::{App, fixture, fixtures, setup};
use crate::g_events::ConsoleEvents;
use crate::mcp_front::{call, modern, said, until};

const ALL: &str = "/mcp";

async fn ask(app: &App, method: &str, params: Value) -> Value {
    let asked = modern(app, ALL, method, params).send().await;
    asked.answer().await
}

async fn names(app: &App) -> Vec<String> {
    let list = ask(app, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{list:#}"));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

async fn has(app: &App, name: &str) -> bool {
    names(app).await.iter().any(|one| one == name)
}

#[tokio::test]
async fn d2_names_are_readable_in_every_list() {
    let servers: &[(&str, &[&str])] =
        &[("my_srv", &[]), ("文件系统服务", &[]), ("数据库服务", &[])];
    let app = setup().mcp(fixtures(servers)).start().await;
    let wanted = [
        ("my_srv", "mcp_my_srv_echo"),
        ("文件系统服务", "mcp_wen_jian_xi_tong_fu_wu_echo"),
        ("数据库服务", "mcp_shu_ju_ku_fu_wu_echo"),
    ];
    for (server, name) in wanted {
        until(name, || has(&app, name)).await;
        let answer = ask(&app, "tools/call", call(name, json!({"text": server}))).await;
        assert_eq!(said(&answer), server);
    }
    for format in ["mcp", "openai", "anthropic", "copilot"] {
        let path = format!("/api/mcp/tools?format={format}");
        let list = app.get(&path).await.expect(200).to_string();
        for (_, name) in wanted {
            assert!(list.contains(&format!("\"{name}\"")), "{format}");
        }
    }
}

#[tokio::test]
async fn d2_a_name_that_changes_because_of_another_server_is_told() {
    let app = setup().mcp(fixtures(&[("a.b", &[])])).start().await;
    app.until_status("a.b", "connected").await;
    let plain = "mcp_a_b_echo";
    until("the plain name", || has(&app, plain)).await;
    let mut events = ConsoleEvents::open(&app, None).await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(&app, ALL, "subscriptions/listen", params);
    let mut listen = listen.send().await;
    listen.message().await.expect("an acknowledgement");

    // It comes first by the order of names, and keeps the plain ones.
    let other = json!({"name": "a b", "command": fixture()});
    app.post("/api/mcp/servers", other).await.expect(201);
    let renamed = events.until(|event| event.name == "renamed").await.data;
    assert_eq!(renamed["server"], "a.b");
    let all = renamed["names"].as_array().unwrap();
    let echo = |all: &[Value]| {
        all.iter()
            .find(|one| one["name"] == "echo")
            .cloned()
            .unwrap()
    };
    let echo_renamed = echo(all);
    assert_eq!(echo_renamed["from"], plain);
    assert_eq!(echo_renamed["because"], "a b:echo");
    let qualified = echo_renamed["to"].as_str().unwrap().to_owned();
    assert!(qualified.starts_with("mcp_a_b_echo_"), "{qualified}");
    let (_, told) = listen.message().await.expect("a change");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert!(has(&app, plain).await && has(&app, &qualified).await);
    assert!(app.log().contains("is now named mcp_a_b_"), "{}", app.log());

    // With the other gone, a client may still have the longer name.
    app.delete("a%20b").await.expect(204);
    let renamed = events.until(|event| event.name == "renamed").await.data;
    let echo_renamed = echo(renamed["names"].as_array().unwrap());
    assert_eq!(echo_renamed["from"], qualified.as_str());
    assert_eq!(echo_renamed["to"], plain);
    until("the plain name alone", || async {
        !has(&app, &qualified).await
    })
    .await;
    for name in [plain, &qualified] {
        let answer = ask(&app, "tools/call", call(name, json!({"text": name}))).await;
        assert_eq!(said(&answer), name);
        let path = format!("/api/mcp/tools/{name}/call");
        let answer = app
            .post(&path, json!({"arguments": {"text": name}}))
            .await
            .expect(200);
        assert!(answer.to_string().contains(name), "{answer}");
    }
}
