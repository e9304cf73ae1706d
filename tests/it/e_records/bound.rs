//! Entries with bindings: made together, changed alone.

use serde_json::json;

use super::*;

on_each_store!(
    e4_entry_and_bindings_are_made_together,
    e5_a_failure_at_any_binding_keeps_nothing,
    e3_bindings_are_listed_switched_and_removed,
    e5_a_binding_that_cannot_be_is_refused_later_too,
    e2_a_deleted_tool_leaves_its_entries,
);

async fn e4_entry_and_bindings_are_made_together(storage: Storage) {
    let app = storage.start().await;
    let mut tools = Vec::new();
    for name in ["a", "b", "c", "d"] {
        tools.push(app.new_tool(name).await);
    }
    let bindings = json!([
        {"tool_id": tools[0], "status": true},
        {"tool_id": tools[1].to_string(), "status": 0},
        {"tool_id": tools[2], "status": 1},
        {"tool_id": tools[3]},
    ]);
    let body = json!({"name": "e", "status": 1, "bindings": bindings});
    let made = app.post(BOUND, body).await.expect(201);
    assert!(text(&made["api_key"]).starts_with("pwk_"));
    let path = format!("{ENTRIES}/{}/bindings", made["id"]);
    let bound = app.get(&path).await.expect(200);
    assert_eq!(each(&bound, "tool_id"), tools);
    assert_eq!(each(&bound, "name"), ["a", "b", "c", "d"]);
    assert_eq!(each(&bound, "status"), [true, false, true, true]);
    assert_eq!(bound["total"], 4);

    let twice = json!([
        {"tool_id": tools[0], "status": true},
        {"tool_id": tools[0], "status": false},
    ]);
    let body = json!({"name": "e", "bindings": twice});
    let made = app.post(BOUND, body).await.expect(201);
    let path = format!("{ENTRIES}/{}/bindings", made["id"]);
    let bound = app.get(&path).await.expect(200);
    assert_eq!(each(&bound, "status"), [false]);
    let empty = app.post(BOUND, json!({"name": "e", "bindings": []})).await;
    empty.expect(201);
}

async fn e5_a_failure_at_any_binding_keeps_nothing(storage: Storage) {
    let app = storage.start().await;
    let mut tools = Vec::new();
    for name in ["a", "b", "c", "d"] {
        tools.push(app.new_tool(name).await);
    }
    let twin = app.new_tool("a").await;
    let good = |id: &i64| json!({"tool_id": id, "status": true});
    for at in 0..=tools.len() {
        for (bad, status, code, names) in [
            (json!({"tool_id": 999}), 404, "NOT_FOUND", "999"),
            (json!({"tool_id": "998"}), 404, "NOT_FOUND", "998"),
            (json!({"tool_id": twin}), 422, "VALIDATION_ERROR", "\"a\""),
            (json!({"tool_id": "x"}), 422, "VALIDATION_ERROR", "tool_id"),
            (json!({"status": 1}), 422, "VALIDATION_ERROR", "tool_id"),
            (
                json!({"tool_id": tools[0], "status": 2}),
                422,
                "VALIDATION_ERROR",
                "status",
            ),
        ] {
            let mut bindings: Vec<_> = tools.iter().map(good).collect();
            bindings.insert(at, bad.clone());
            let body = json!({"name": "e", "bindings": bindings});
            let error = refused(app.post(BOUND, body.clone()).await, status, code);
            assert!(text(&error["message"]).contains(names), "{error}");
            let once = app.post_once(BOUND, "once", &body.to_string()).await;
            refused(once, status, code);
            assert_eq!(app.total(ENTRIES).await, 0, "{bad} at {at}");
        }
    }
    let app = app.again().await;
    assert_eq!(app.total(ENTRIES).await, 0);
    assert_eq!(app.total(TOOLS).await, 5);
    // What failed has not used the key up.
    let bindings: Vec<_> = tools.iter().map(good).collect();
    let body = json!({"name": "e", "bindings": bindings}).to_string();
    app.post_once(BOUND, "once", &body).await.expect(201);
    assert_eq!(app.total(ENTRIES).await, 1);
}

async fn e3_bindings_are_listed_switched_and_removed(storage: Storage) {
    let app = storage.start().await;
    let (a, b) = (app.new_tool("a").await, app.new_tool("b").await);
    let c = app.new_tool("c").await;
    let entry = number(&app.new_entry("e", &[]).await["id"]);
    let path = format!("{ENTRIES}/{entry}/bindings");
    let one = app.post(&path, json!({"tool_id": a, "status": 0})).await;
    let one = one.expect(201);
    assert_eq!(
        (&one["tool_id"], &one["status"]),
        (&json!(a), &json!(false))
    );
    assert_eq!(one["server"], "fixture");
    let two = json!({"bindings": [{"tool_id": b}, {"tool_id": a.to_string(), "status": true}]});
    let two = app.post(&path, two).await.expect(201);
    assert_eq!(each(&two, "tool_id"), [a, b]);
    assert_eq!(each(&two, "status"), [true, true]);
    assert_eq!(two["total"], 2);
    let none = app.post(&path, json!({"bindings": []})).await;
    assert_eq!(none.expect(201), json!({"items": [], "total": 0}));

    let of_a = format!("{path}/{a}");
    for (status, is) in [(json!(0), false), (json!(1), true), (json!(false), false)] {
        let changed = app.patched(&of_a, json!({"status": status})).await;
        assert_eq!(changed.expect(200)["status"], is);
    }
    // One that is there, not one that is made by it.
    let of_c = format!("{path}/{c}");
    let missing = app.patched(&of_c, json!({"status": 1})).await;
    refused(missing, 404, "NOT_FOUND");
    assert_eq!(app.deleted(&of_a).await.status, 204);
    refused(app.deleted(&of_a).await, 404, "NOT_FOUND");
    let app = app.again().await;
    assert_eq!(each(&app.get(&path).await.expect(200), "tool_id"), [b]);
    // The tool itself is untouched.
    app.get(&format!("{TOOLS}/{a}")).await.expect(200);
}

async fn e5_a_binding_that_cannot_be_is_refused_later_too(storage: Storage) {
    let app = storage.start().await;
    let (a, b) = (app.new_tool("a").await, app.new_tool("b").await);
    let twin = app.new_tool("a").await;
    let entry = number(&app.new_entry("e", &[a]).await["id"]);
    let path = format!("{ENTRIES}/{entry}/bindings");
    for (bad, status, code, names) in [
        (json!({"tool_id": 999}), 404, "NOT_FOUND", "999"),
        (json!({"tool_id": twin}), 422, "VALIDATION_ERROR", "\"a\""),
        // Switched off, it could be switched on.
        (
            json!({"tool_id": twin, "status": 0}),
            422,
            "VALIDATION_ERROR",
            "\"a\"",
        ),
    ] {
        let error = refused(app.post(&path, bad.clone()).await, status, code);
        assert!(text(&error["message"]).contains(names), "{error}");
        let after_a_good_one = json!({"bindings": [{"tool_id": b}, bad]});
        refused(app.post(&path, after_a_good_one).await, status, code);
        assert_eq!(each(&app.get(&path).await.expect(200), "tool_id"), [a]);
    }
}

async fn e2_a_deleted_tool_leaves_its_entries(storage: Storage) {
    let app = storage.start().await;
    let (a, b) = (app.new_tool("a").await, app.new_tool("b").await);
    let entry = app.new_entry("e", &[a, b]).await;
    let deleted = app.deleted(&format!("{TOOLS}/{a}")).await;
    assert_eq!(deleted.status, 204);
    let path = format!("{ENTRIES}/{}/tools", entry["id"]);
    assert_eq!(each(&app.get(&path).await.expect(200), "name"), ["b"]);
}
