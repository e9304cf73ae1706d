use futures_util::future::join_all;
use store::{ExposedServers, NewBinding};

use super::*;
use crate::app::fixture;

#[tokio::test]
async fn e3_visible_is_granted_is_callable_for_20_entries_and_50_tools() {
    let house = EntryGateway::of(json!({
        "x": {"command": fixture(), "args": ["--tools", "25"]},
        "y": {"command": fixture(), "args": ["--tools", "25"]},
    }))
    .await;
    let name = |tool: usize| format!("t{tool:02}");
    let all: Vec<(String, &str, String)> = (0..50)
        .map(|tool| {
            let server = if tool < 25 { "x" } else { "y" };
            (name(tool), server, format!("extra_{:04}", tool % 25))
        })
        .collect();
    // A pattern in which no two entries have the same tools.
    let has = |entry: usize, tool: usize| (tool * 7 + entry * 3).is_multiple_of(entry + 2);
    for entry in 0..20 {
        let granted: Vec<ToolFields<'_>> = (0..50)
            .filter(|tool| has(entry, *tool))
            .map(|tool| (all[tool].0.as_str(), all[tool].1, all[tool].2.as_str()))
            .collect();
        let made = house.entry(&granted, ExposedServers::default()).await;
        let caller = house.caller(&made);
        let names: Vec<&str> = granted.iter().map(|tool| tool.0).collect();
        assert_eq!(house.names(&caller).await, names, "entry {entry}");
        let calls = (0..50).map(|tool| {
            let (house, caller, tool) = (&house, &caller, name(tool));
            async move { house.call(caller, &tool, json!({})).await }
        });
        for (tool, answer) in join_all(calls).await.into_iter().enumerate() {
            match has(entry, tool) {
                true => assert!(answer["result"].is_object(), "{entry} {tool}: {answer}"),
                false => assert_eq!(text(&answer), format!("Unknown tool: t{tool:02}")),
            }
        }
        for foreign in ["extra_0000", "mcp_x_extra_0000", "x:extra_0000", ""] {
            let answer = house.call(&caller, foreign, json!({})).await;
            assert_eq!(text(&answer), format!("Unknown tool: {foreign}"));
        }
    }
    house.rooms.close().await;
}

#[tokio::test]
async fn e3_a_binding_that_is_off_is_neither_listed_nor_callable() {
    let house = EntryGateway::of(json!({"x": {"command": fixture()}})).await;
    let tools = [("say", "x", "echo"), ("sum", "x", "add")];
    let made = house.entry(&tools, ExposedServers::default()).await;
    let set = async |enabled| {
        let binding = NewBinding {
            tool: made.tools[0],
            enabled,
        };
        let store = &house.rooms.store;
        store.update_binding(&ALL, made.id, binding).await.unwrap();
    };
    for enabled in [true, false, true] {
        set(enabled).await;
        let caller = house.caller(&made);
        let shown = house.names(&caller).await.contains(&"say".to_owned());
        assert_eq!(shown, enabled);
        let answer = house.call(&caller, "say", json!({"text": "hello"})).await;
        let expected = if enabled {
            "hello"
        } else {
            "Unknown tool: say"
        };
        assert_eq!(text(&answer), expected);
    }
    house.rooms.close().await;
}

#[tokio::test]
async fn c7_isolation_principal_is_one_process_for_each_entry() {
    let server = json!({"command": fixture(), "isolation": "principal", "containment": "group"});
    let house = EntryGateway::of(json!({ "x": server })).await;
    let tools = [("who", "x", "pid")];
    let one = house.entry(&tools, ExposedServers::default()).await;
    let two = house.entry(&tools, ExposedServers::default()).await;
    let (one, two) = (house.caller(&one), house.caller(&two));
    let pid = async |caller: &Caller| {
        let answer = house.call(caller, "who", json!({})).await;
        text(&answer).to_owned()
    };
    let (first, second) = (pid(&one).await, pid(&two).await);
    assert_ne!(first, second);
    assert_eq!(pid(&one).await, first);
    assert_eq!(pid(&two).await, second);
    house.rooms.close().await;
}

#[tokio::test]
async fn e12_a_link_in_a_result_can_be_read_by_whom_it_was_given() {
    for era in ["legacy", "modern"] {
        let house =
            EntryGateway::of(json!({"x": {"command": fixture(), "args": ["--era", era]}})).await;
        let tools = [("links", "x", "content")];
        let made = house.entry(&tools, ExposedServers::default()).await;
        let caller = house.caller(&made);
        let answer = house.call(&caller, "links", json!({})).await;
        let blocks = answer["result"]["content"].as_array().unwrap();
        let link = blocks.iter().find(|block| block["type"] == "resource_link");
        let uri = link.unwrap()["uri"].as_str().unwrap().to_owned();
        assert!(uri.starts_with("portway://!"), "{uri}");
        let read = async |caller: &Caller, uri: &str| {
            house
                .ask(caller, "resources/read", json!({ "uri": uri }))
                .await
        };
        let good = read(&caller, &uri).await;
        assert_eq!(good["result"]["contents"][0]["uri"], *uri, "{good:#}");
        // Nothing is listed, and nothing else can be read.
        let listed = house.ask(&caller, "resources/list", json!({})).await;
        assert_eq!(listed["result"]["resources"], json!([]));
        let other = house.entry(&tools, ExposedServers::default()).await;
        let other = house.caller(&other);
        assert!(read(&other, &uri).await["error"].is_object());
        for guess in [
            uri.replace("fixture://text", "fixture://blob"),
            "fixture://text".to_owned(),
            "portway://x/fixture://text".to_owned(),
        ] {
            let refused = read(&caller, &guess).await;
            assert!(refused["error"].is_object(), "{era} {guess}: {refused}");
        }
        for (method, params) in [
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "mcp_x_greet"})),
            ("completion/complete", json!({})),
        ] {
            let refused = house.ask(&caller, method, params).await;
            assert_eq!(refused["error"]["code"], -32601, "{method}");
        }
        // With the tool goes what it linked to.
        let gone = house.rooms.store.unbind(&ALL, made.id, made.tools[0]).await;
        assert!(gone.unwrap());
        let caller = house.caller(&made);
        assert!(read(&caller, &uri).await["error"].is_object());
        house.rooms.close().await;
    }
}

#[tokio::test]
async fn e12_resources_and_prompts_are_given_where_switched_on() {
    let house =
        EntryGateway::of(json!({"x": {"command": fixture()}, "y": {"command": fixture()}})).await;
    let made = house.entry(&[], exposes(&["x"], &["y"])).await;
    let caller = house.caller(&made);
    let listed = house.ask(&caller, "resources/list", json!({})).await;
    let resources = listed["result"]["resources"].as_array().unwrap();
    assert!(!resources.is_empty());
    for resource in resources {
        let uri = resource["uri"].as_str().unwrap();
        assert!(uri.starts_with("portway://x/"), "{uri}");
    }
    let read = async |uri: &str| {
        house
            .ask(&caller, "resources/read", json!({ "uri": uri }))
            .await
    };
    assert!(read("portway://x/fixture://text").await["result"].is_object());
    assert!(read("portway://y/fixture://text").await["error"].is_object());
    let listed = house.ask(&caller, "prompts/list", json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    assert!(!prompts.is_empty());
    for prompt in prompts {
        assert!(prompt["name"].as_str().unwrap().starts_with("mcp_y_"));
    }
    let hello = house.ask(&caller, "server/discover", json!({})).await;
    let able = &hello["result"]["capabilities"];
    assert_eq!(able["resources"]["subscribe"], true);
    assert!(able["prompts"].is_object() && able["completions"].is_object());
    house.rooms.close().await;
}
