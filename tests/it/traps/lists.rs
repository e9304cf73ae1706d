//! Traps of lists: order, pages, freshness, and what is in them.

use serde_json::{Value, json};

use super::rig;
use crate::app::{App, example, fixtures, setup};
use crate::mcp_front::{X, ask, call, legacy, modern, portway, said, until};

const LISTS: [&str; 4] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

#[tokio::test]
async fn trap18_nothing_is_said_to_be_everybodys() {
    // A server that calls all it says public; not all may see it through us.
    let server = json!({"command": example("echo_raw"), "args": ["modern"]});
    let app = setup()
        .mcp(json!({"mcpServers": {"x": server}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    for path in [X, "/mcp"] {
        for method in ["server/discover", "tools/list"] {
            let talk = modern(&app, path, method, json!({})).send().await;
            assert_eq!(talk.header("cache-control"), "no-store", "{path} {method}");
            let answer = talk.answer().await;
            assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
            assert!(answer["result"]["ttlMs"].is_u64(), "{answer}");
        }
    }
    // Other credentials never get it from memory.
    let stranger = modern(&app, X, "tools/list", json!({})).header("authorization", "Bearer x");
    assert_eq!(stranger.send().await.status, 401);
}

async fn all_lists(app: &App) -> Vec<String> {
    let client = legacy(app, "/mcp", "2025-11-25", json!({})).await;
    let mut all = Vec::new();
    for method in LISTS {
        let new = modern(app, "/mcp", method, json!({})).send().await;
        all.push(new.text().await);
        let old = client.request(1, method, json!({})).send().await;
        all.push(old.answer().await.to_string());
    }
    all
}

#[tokio::test]
async fn trap19_lists_come_in_one_order() {
    let many: &[&str] = &["--tools", "40"];
    let servers = [("b", many), ("a", many), ("c-c", many), ("c", many)];
    let app = setup().mcp(fixtures(&servers)).start().await;
    for (name, _) in servers {
        app.until_status(name, "connected").await;
    }
    let first = all_lists(&app).await;
    let tools: Value = serde_json::from_str(&first[0]).unwrap();
    let tools = tools["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names: Vec<_> = tools.iter().map(name).collect();
    assert!(names.len() > 200 && names.is_sorted());
    for _ in 0..3 {
        assert_eq!(all_lists(&app).await, first);
    }
    // Nor does it depend on who was up first.
    app.act("a", "restart").await;
    app.until_status("a", "connected").await;
    assert_eq!(all_lists(&app).await, first);
    let app = app.again().await;
    for (name, _) in servers {
        app.until_status(name, "connected").await;
    }
    assert_eq!(all_lists(&app).await, first);
}

#[tokio::test]
async fn trap20_cursors_are_ours_and_empty_ones_are_no_start() {
    for era in ["legacy", "modern"] {
        // Its second page has the empty string for a cursor.
        let rig = rig(false, &["--era", era, "--page", "3"]).await;
        let app = &rig.app;
        let client = legacy(app, X, "2025-11-25", json!({})).await;
        for method in LISTS {
            let whole = modern(app, X, method, json!({})).send().await;
            let result = whole.answer().await["result"].take();
            assert_eq!(result.get("nextCursor"), None, "{method}");
            for cursor in ["", "page-1", "page-2", "AAAA"] {
                let params = json!({"cursor": cursor});
                let new = modern(app, X, method, params.clone()).send().await;
                assert_eq!(new.verdict().await, (200, Some(-32602)), "{cursor:?}");
                let old = client
                    .request(1, method, params)
                    .send()
                    .await
                    .answer()
                    .await;
                assert_eq!(old["error"]["code"], -32602, "{cursor:?}");
            }
        }
        let tools = modern(app, X, "tools/list", json!({})).send().await;
        let tools = tools.answer().await["result"]["tools"].take();
        assert!(tools.as_array().unwrap().len() > 20);
    }
}

#[tokio::test]
async fn trap20_a_changed_list_has_other_cursors() {
    let app = portway(&["--tools", "2500"]).await;
    let page = |params: Value| {
        let ask = modern(&app, X, "tools/list", params);
        async { ask.send().await.answer().await }
    };
    let first = page(json!({})).await["result"].take();
    let cursor = json!({"cursor": first["nextCursor"]});
    assert!(cursor["cursor"].is_string());
    let second = page(cursor.clone()).await["result"].take();
    let count = |page: &Value| page["tools"].as_array().unwrap().len();
    assert!(count(&first) + count(&second) > 2500);
    assert_eq!(second.get("nextCursor"), None);
    assert_eq!(first["cacheScope"], second["cacheScope"]);
    // It holds for another client too, in the other era.
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let same = client.request(1, "tools/list", cursor.clone()).send().await;
    let same = same.answer().await["result"].take();
    assert_eq!(count(&same), count(&second));

    let toggle = modern(&app, X, "tools/call", call("toggle_tool", json!({})));
    assert_eq!(said(&toggle.send().await.answer().await), "added");
    until("the old cursor is refused", || async {
        page(cursor.clone()).await["error"]["code"] == -32602
    })
    .await;
    // And with it goes all that was begun.
    let other = json!({"cursor": cursor["cursor"]});
    let lists = modern(&app, X, "prompts/list", other).send().await;
    assert_eq!(lists.verdict().await, (200, Some(-32602)));
    assert_eq!(ask(&app, "GET", "/healthz").send().await.status, 200);
}

/// A tool with all that a careless reader drops or rewrites; no line breaks in
/// what is sent.
const ODD: &str = r##"{"x-vendor":{"b":1.0,"a":1e5},"name":"odd","title":"Odd é \u00e9 \/",
"icons":[{"src":"data:image/png;base64,AA==","sizes":["48x48"],"theme":"dark","x":null}],
"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"n":{"type":"integer","maximum":123456789012345678901234567890}},
"properties":{"z":{"$ref":"#/$defs/n","x-odd":-0.0},"a":{"anyOf":[{"const":1.50},{"not":{}}]},
"":{"type":"string"}},"unevaluatedProperties":false,"dependentSchemas":{"z":true},"x-y":{}},
"outputSchema":{"type":"object","properties":{"s":{"enum":[1,1.0,"\u0031"]}}},
"annotations":{"readOnlyHint":true,"x-hint":[null]},
"_meta":{"org.example/a":{"k":[1E+2]},"ui":{"resourceUri":"ui://x/y"}},
"extensions":{"org.example/e":{}}}"##;

#[tokio::test]
async fn trap25_tools_keep_what_we_do_not_know() {
    let odd: String = ODD.lines().collect();
    for era in ["legacy", "modern"] {
        let server = json!({"command": example("echo_raw"), "args": [era, "tools.json"]});
        let app = setup()
            .file("tools.json", format!("[{odd}]"))
            .mcp(json!({"mcpServers": {"x": server}}))
            .start()
            .await;
        app.until_status("x", "connected").await;
        let client = legacy(&app, X, "2025-11-25", json!({})).await;
        let new = modern(&app, X, "tools/list", json!({})).send().await;
        let old = client.request(1, "tools/list", json!({})).send().await;
        let all = modern(&app, "/mcp", "tools/list", json!({})).send().await;
        for (whose, text) in [("modern", new.text().await), ("legacy", old.text().await)] {
            assert!(text.contains(&odd), "{era} server, {whose} client: {text}");
        }
        // Where all servers are together, the name alone is another.
        let renamed = odd.replace(r#""name":"odd""#, r#""name":"mcp_x_odd""#);
        let text = all.text().await;
        assert!(text.contains(&renamed), "{text}");
    }
}
