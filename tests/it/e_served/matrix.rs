use futures_util::future::join_all;
use serde_json::json;

use super::*;
use crate::e_records::{BOUND, ENTRIES, on_each_store};

on_each_store!(
    e3_visible_is_bound_is_callable_for_20_keys_and_50_tools,
    e3_a_binding_that_is_off_is_neither_listed_nor_callable,
);

const KEYS: usize = 20;
const TOOLS: usize = 50;

fn name(tool: usize) -> String {
    format!("t{tool:02}")
}

/// A pattern in which no two entries have the same tools.
fn has(entry: usize, tool: usize) -> bool {
    (tool * 7 + entry * 3).is_multiple_of(entry + 2)
}

/// Bindings that are there, but off.
fn is_off(entry: usize, tool: usize) -> bool {
    !has(entry, tool) && tool.is_multiple_of(5)
}

/// The key of an entry whose tools have come to it in every way there is.
async fn granted(app: &App, entry: usize, ids: &[i64]) -> String {
    let wanted = (0..TOOLS).filter(|tool| has(entry, *tool) || is_off(entry, *tool));
    let wanted: Vec<usize> = wanted.collect();
    let bind = |tool: &usize| json!({"tool_id": ids[*tool], "status": has(entry, *tool)});
    let (first, later) = wanted.split_at(wanted.len() / 2);
    let first: Vec<_> = first.iter().map(bind).collect();
    let body = json!({"name": format!("entry {entry}"), "bindings": first});
    let made = app.post(BOUND, body).await.expect(201);
    let path = format!("{ENTRIES}/{}/bindings", made["id"]);
    for tool in later {
        app.post(&path, bind(tool)).await.expect(201);
    }
    text(&made["api_key"]).to_owned()
}

async fn e3_visible_is_bound_is_callable_for_20_keys_and_50_tools(storage: Storage) {
    let many: &[&str] = &["--tools", "25"];
    let app = with_fixtures(storage, &[("x", many), ("y", many)]).await;
    let mut ids = Vec::new();
    for tool in 0..TOOLS {
        let server = if tool < 25 { "x" } else { "y" };
        let there = format!("extra_{:04}", tool % 25);
        ids.push(app.tool_of(&name(tool), server, &there).await);
    }
    for entry in 0..KEYS {
        let key = granted(&app, entry, &ids).await;
        let bound: Vec<String> = (0..TOOLS)
            .filter(|tool| has(entry, *tool))
            .map(name)
            .collect();
        for way in WAYS {
            let agent = Agent::new(&app, &key, way).await;
            assert_eq!(agent.names().await, bound, "{way:?} {entry}");
            let agent = &agent;
            let calls = (0..TOOLS).map(async |tool| agent.call(&name(tool), json!({})).await);
            for (tool, answer) in join_all(calls).await.into_iter().enumerate() {
                let what = format!("{way:?} {entry} {tool}: {answer}");
                match has(entry, tool) {
                    true => assert!(answer["result"].is_object(), "{what}"),
                    false => assert_eq!(told(&answer), format!("Unknown tool: {}", name(tool))),
                }
            }
            for foreign in ["extra_0000", "mcp_x_extra_0000", "x:extra_0000"] {
                let answer = agent.call(foreign, json!({})).await;
                assert_eq!(told(&answer), format!("Unknown tool: {foreign}"));
            }
        }
    }
}

async fn e3_a_binding_that_is_off_is_neither_listed_nor_callable(storage: Storage) {
    let app = with_fixtures(storage, &[("x", &[])]).await;
    let say = app.tool_of("say", "x", "echo").await;
    let sum = app.tool_of("sum", "x", "add").await;
    let made = app.new_entry("e", &[say, sum]).await;
    let key = text(&made["api_key"]);
    let binding = format!("{ENTRIES}/{}/bindings/{say}", made["id"]);
    for way in WAYS {
        let agent = Agent::new(&app, key, way).await;
        for on in [true, false, true] {
            let switched = app.patched(&binding, json!({"status": on})).await;
            switched.expect(200);
            let (names, answer) = match on {
                true => (vec!["say", "sum"], "hello"),
                false => (vec!["sum"], "Unknown tool: say"),
            };
            assert_eq!(agent.names().await, names, "{way:?}");
            let said = agent.call("say", json!({"text": "hello"})).await;
            assert_eq!(told(&said), answer, "{way:?}");
        }
    }
}
