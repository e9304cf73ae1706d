//! What a key opens over REST, and where it is never seen.

use serde_json::json;

use super::*;
use crate::app::eventually;

on_each_store!(
    e11_an_entrys_tools_are_listed_for_owner_and_key,
    e7_a_key_that_opens_nothing_is_404_alike,
    e10_a_key_is_in_no_other_answer_log_or_file,
);

async fn e11_an_entrys_tools_are_listed_for_owner_and_key(storage: Storage) {
    let app = storage.start().await;
    let (on, off) = (app.new_tool("on").await, app.new_tool("off").await);
    let bindings = json!([{"tool_id": on}, {"tool_id": off, "status": 0}]);
    let body = json!({"name": "e", "bindings": bindings});
    let made = app.post(BOUND, body).await.expect(201);
    let place = format!("{ENTRIES}/{}", made["id"]);
    let by_key = format!("{OLD}{}/tools", text(&made["api_key"]));
    for path in [format!("{place}/tools"), by_key.clone()] {
        let bearer = format!("Bearer {TOKEN}");
        let owner = [("authorization", bearer.as_str())];
        let headers = if path == by_key { &[][..] } else { &owner[..] };
        let get = async |query: &str| {
            let path = format!("{path}{query}");
            app.request("GET", &path, None, headers).await
        };
        for query in ["", "?include_disabled=false"] {
            let answer = get(query).await;
            assert_eq!(answer.headers["cache-control"], "no-store");
            let tools = answer.expect(200);
            assert_eq!(each(&tools, "name"), ["on"], "{path}{query}");
            assert_eq!(tools["total"], 1);
        }
        let all = get("?include_disabled=true").await.expect(200);
        assert_eq!(each(&all, "name"), ["on", "off"]);
        assert_eq!(each(&all, "status"), [true, false]);
        assert_eq!(each(&all, "tool_id"), [on, off]);
        let wrong = get("?include_disabled=maybe").await;
        assert_eq!(wrong_fields(wrong), ["include_disabled"]);
    }
    let used = app.get(&place).await.expect(200);
    assert!(used["key"]["last_used_at"].is_string(), "{used}");
    // The next request sees a change.
    let path = format!("{place}/bindings/{on}");
    app.patched(&path, json!({"status": false}))
        .await
        .expect(200);
    let tools = app.request("GET", &by_key, None, &[]).await.expect(200);
    assert_eq!(tools, json!({"items": [], "total": 0}));
}

async fn e7_a_key_that_opens_nothing_is_404_alike(storage: Storage) {
    let app = storage.start().await;
    let mut keys = vec!["pwk_unknown".to_owned(), "x".repeat(5000), "%C3%BC".into()];
    let off = app.post(ENTRIES, json!({"name": "off", "status": 0})).await;
    keys.push(text(&off.expect(201)["api_key"]).to_owned());
    let gone = app.new_entry("gone", &[]).await;
    app.deleted(&format!("{ENTRIES}/{}", gone["id"])).await;
    keys.push(text(&gone["api_key"]).to_owned());
    let old = app.post(OLD, json!({"name": "old"})).await.expect(201);
    keys.push(text(&old["api_key"]).to_owned());
    let mut answers = Vec::new();
    for key in keys {
        let path = format!("{OLD}{key}/tools");
        let answer = app.request("GET", &path, None, &[]).await;
        assert_eq!(answer.status, 404, "{}", answer.text);
        answers.push(answer.text);
    }
    assert!(
        answers.iter().all(|text| *text == answers[0]),
        "{answers:?}"
    );
}

async fn e10_a_key_is_in_no_other_answer_log_or_file(storage: Storage) {
    let app = storage.setup().env("RUST_LOG", "trace").start().await;
    let tool = app.new_tool("t").await;
    let made = app.new_entry("e", &[tool]).await;
    let place = format!("{ENTRIES}/{}", made["id"]);
    let old = app.post(OLD, json!({"name": "old"})).await.expect(201);
    let rotate = format!("{place}/rotate_key");
    let rotated = app.send("POST", &rotate, None).await.expect(200);
    let keys = [&made, &rotated, &old].map(|answer| text(&answer["api_key"]).to_owned());

    let (v2, v1) = (&keys[1], &keys[2]);
    let body = || Some(json!({"name": "n"}).to_string());
    let mut texts = Vec::new();
    for (method, path, body) in [
        ("GET", place.clone(), None),
        ("PATCH", place.clone(), body()),
        ("GET", ENTRIES.to_owned(), None),
        ("GET", format!("{place}/tools"), None),
        ("GET", format!("{place}/bindings"), None),
        ("GET", OLD.to_owned(), None),
        ("GET", format!("{OLD}{v1}"), None),
        ("PUT", format!("{OLD}{v1}"), body()),
        ("PUT", format!("{OLD}{v1}"), Some("{".into())),
        ("PATCH", format!("{OLD}{v1}"), body()),
        ("GET", format!("{OLD}{v2}/tools"), None),
        ("GET", format!("{OLD}{v2}"), None),
        ("GET", format!("{OLD}{v2}/toolz"), None),
        ("GET", format!("{ENTRIES}/{v2}"), None),
        ("GET", format!("{ENTRIES}/{v2}/tools"), None),
        ("DELETE", format!("{OLD}{v1}"), None),
    ] {
        texts.push(app.send(method, &path, body).await.text);
    }
    let last = "DELETE /api/v1/mcp/{api_key} 204";
    eventually("the last request is logged", || app.log().contains(last)).await;
    texts.extend([app.log(), app.said()]);
    for file in std::fs::read_dir(app.path("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for text in texts {
        for key in &keys {
            assert!(!text.contains(key.as_str()), "{key} in {text}");
            // Not even without its prefix.
            assert!(!text.contains(&key[4..]), "{key} in {text}");
        }
    }
}
