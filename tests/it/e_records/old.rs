//! The API from before entries, beside v2.

use serde_json::{Value, json};

use super::*;

on_each_store!(
    e9_the_old_api_keeps_working_beside_v2,
    e9_old_fields_come_back_as_they_came,
    e9_an_old_record_is_there_by_key_and_by_id,
    f3_an_id_is_a_number_and_a_text_and_a_status_a_boolean_or_a_number,
);

async fn f3_an_id_is_a_number_and_a_text_and_a_status_a_boolean_or_a_number(storage: Storage) {
    let app = storage.start().await;
    for (given, switched_on) in [(json!(true), true), (json!(0), false)] {
        let body = json!({"name": "one", "status": given});
        let entry = app.post(ENTRIES, body.clone()).await.expect(201);
        let id = number(&entry["id"]);
        assert_eq!(entry["mcp_instance_id"], id.to_string());
        assert_eq!(entry["status"], switched_on);
        let old = app.post(OLD, body).await.expect(201);
        assert!(old["mcp_instance_id"].is_string(), "{old}");
        assert_eq!(old["status"], i64::from(switched_on));
    }
}

async fn e9_an_old_record_is_there_by_key_and_by_id(storage: Storage) {
    let app = storage.start().await;
    let body = json!({"name": "old", "user_id": 7, "api_key": "legacy-key-1", "status": 0});
    let made = app.post(OLD, body).await.expect(201);
    assert_eq!(
        (&made["user_id"], &made["api_key"]),
        (&json!("7"), &json!("legacy-key-1"))
    );
    let (by_key, by_id) = (format!("{OLD}legacy-key-1"), format!("{OLD}{}", made["id"]));
    let shown = app.get(&by_key).await.expect(200);
    assert_eq!(app.get(&by_id).await.expect(200), shown);
    let changed = app.put(&by_id, json!({"name": "new", "status": 1})).await;
    let changed = changed.expect(200);
    assert_eq!(
        (&changed["name"], &changed["status"]),
        (&json!("new"), &json!(1))
    );
    assert_eq!(app.get(&by_key).await.expect(200), changed);
    app.post(OLD, json!({"name": "another"})).await.expect(201);
    assert_eq!(app.total(&format!("{OLD}?user_id=7")).await, 1);
    assert_eq!(app.total(OLD).await, 2);
    assert_eq!(app.deleted(&by_id).await.status, 204);
    for gone in [by_key, by_id, format!("{OLD}999999")] {
        refused(app.get(&gone).await, 404, "NOT_FOUND");
        refused(app.deleted(&gone).await, 404, "NOT_FOUND");
    }
}

async fn e9_the_old_api_keeps_working_beside_v2(storage: Storage) {
    let app = storage.start().await;
    let v2 = app.new_entry("v2", &[]).await;
    let answer = app.post(OLD, json!({"name": "old"})).await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert!(!answer.headers.contains_key("location"));
    let mut made = answer.expect(201);
    let key = text(&made["api_key"]).to_owned();
    assert_eq!(made["status"], 1);
    assert_eq!(made["user_id"], "admin");
    assert_eq!(made["mcp_instance_id"], made["id"].to_string());
    made.as_object_mut().unwrap().remove("api_key");
    let place = format!("{OLD}{key}");
    assert_eq!(app.get(&place).await.expect(200), made);
    for list in [OLD, "/api/v1/mcp"] {
        let listed = app.get(list).await.expect(200);
        assert_eq!(listed, json!({"items": [made.clone()], "total": 1}));
    }
    let second = app.post("/api/v1/mcp", json!({"name": "two", "status": false}));
    assert_eq!(second.await.expect(201)["status"], 0);

    for (status, is) in [(json!(0), 0), (json!(true), 1), (json!(false), 0)] {
        let changed = app.put(&place, json!({"status": status})).await;
        assert_eq!(changed.expect(200)["status"], is);
    }
    // Each kind has its own: neither API finds the other's.
    assert_eq!(app.total(ENTRIES).await, 1);
    let foreign = format!("{OLD}{}", text(&v2["api_key"]));
    refused(app.get(&foreign).await, 404, "NOT_FOUND");
    refused(
        app.put(&foreign, json!({"name": "x"})).await,
        404,
        "NOT_FOUND",
    );
    refused(app.deleted(&foreign).await, 404, "NOT_FOUND");

    let app = app.again().await;
    assert_eq!(app.get(&place).await.expect(200)["status"], 0);
    assert_eq!(app.deleted(&place).await.status, 204);
    refused(app.deleted(&place).await, 404, "NOT_FOUND");
    refused(app.get(&place).await, 404, "NOT_FOUND");
    assert_eq!(app.total(OLD).await, 1);
    assert_eq!(app.total(ENTRIES).await, 1);
}

async fn e9_old_fields_come_back_as_they_came(storage: Storage) {
    let app = storage.start().await;
    let extra = json!({
        "table_id": 42, "json_path": "$.a[*].b", "preview_keys": ["x", null, 1.5],
        "tools_definition": {"query": {"name": "查询", "deep": {"a": [true, {}]}}},
        "register_tools": ["query", "files:read"], "url": "kept", "nothing": null,
    });
    let mut body = extra.clone();
    body["name"] = json!("old");
    let made = app.post(OLD, body).await.expect(201);
    let place = format!("{OLD}{}", text(&made["api_key"]));
    let same = |answer: &Value, extra: &Value| {
        for (name, value) in extra.as_object().unwrap() {
            assert_eq!(&answer[name], value, "{name}");
        }
    };
    same(&made, &extra);
    same(&app.get(&place).await.expect(200), &extra);

    // What is not mentioned stays.
    let changed = app
        .put(&place, json!({"name": "new", "table_id": 43}))
        .await;
    let changed = changed.expect(200);
    let mut extra = extra;
    extra["table_id"] = json!(43);
    same(&changed, &extra);
    assert_eq!(changed["name"], "new");
    let switched = app.put(&place, json!({"status": 0})).await.expect(200);
    same(&switched, &extra);

    // Who sends back what they read changes nothing.
    let app = app.again().await;
    let shown = app.get(&place).await.expect(200);
    same(&shown, &extra);
    assert_eq!(app.put(&place, shown.clone()).await.expect(200), shown);
}
