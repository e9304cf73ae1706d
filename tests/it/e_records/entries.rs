use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use store::Timestamp;

use super::*;

on_each_store!(
    e1_an_entry_is_made_shown_changed_and_deleted,
    e10_a_key_is_shown_once_and_rotated,
    e12_what_an_entry_exposes_is_kept,
    e10_when_a_key_expires_can_be_set_and_taken_back,
);

/// So many seconds from now.
fn later(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    let millis = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(millis.as_millis() as u64).to_string()
}

async fn e1_an_entry_is_made_shown_changed_and_deleted(storage: Storage) {
    let app = storage.start().await;
    let answer = app.post(ENTRIES, json!({"name": "日常 agent, 1"})).await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    let place = answer.headers["location"].to_str().unwrap().to_owned();
    let mut made = answer.expect(201);
    let id = number(&made["id"]);
    assert_eq!(place, format!("{ENTRIES}/{id}"));
    let key = text(&made["api_key"]).to_owned();
    assert_eq!(
        made["url"],
        format!("/api/v1/mcp_v2/server/{key}"),
        "{made}"
    );
    assert_eq!(made["mcp_instance_id"], id.to_string());
    assert_eq!(made["name"], "日常 agent, 1");
    assert_eq!(made["user_id"], "admin");
    assert_eq!(made["status"], true);
    assert_eq!(made["exposes"], json!({"resources": [], "prompts": []}));
    assert!(key.ends_with(text(&made["key"]["hint"])));
    assert_eq!(made["key"]["expires_at"], Value::Null);
    assert_eq!(made["key"]["last_used_at"], Value::Null);

    for once in ["api_key", "url"] {
        made.as_object_mut().unwrap().remove(once);
    }
    assert_eq!(app.get(&place).await.expect(200), made);
    let listed = app.get(ENTRIES).await.expect(200);
    assert_eq!(listed, json!({"items": [made.clone()], "total": 1}));

    for (change, status) in [
        (json!(0), false),
        (json!(true), true),
        (json!(false), false),
    ] {
        let changed = app.patched(&place, json!({"status": change})).await;
        assert_eq!(changed.expect(200)["status"], status);
    }
    let named = app.patched(&place, json!({"name": "b"})).await.expect(200);
    assert_eq!(
        (&named["name"], &named["status"]),
        (&json!("b"), &json!(false))
    );
    assert_eq!(named["created_at"], made["created_at"]);
    assert_eq!(named["key"], made["key"]);

    let app = app.again().await;
    assert_eq!(app.get(&place).await.expect(200), named);
    assert_eq!(app.deleted(&place).await.status, 204);
    refused(app.get(&place).await, 404, "NOT_FOUND");
    refused(app.deleted(&place).await, 404, "NOT_FOUND");
    // A number is not used again.
    let next = app.post(ENTRIES, json!({"name": "c", "status": 0})).await;
    let next = next.expect(201);
    assert!(number(&next["id"]) > id);
    assert_eq!(next["status"], false);
}

async fn e10_a_key_is_shown_once_and_rotated(storage: Storage) {
    let app = storage.start().await;
    let tool = app.new_tool("t").await;
    let made = app.new_entry("e", &[tool]).await;
    let (id, old) = (number(&made["id"]), text(&made["api_key"]));
    assert_eq!(old.len(), "pwk_".len() + 43, "256 bits in base64");
    let path = format!("{ENTRIES}/{id}/rotate_key");
    let answer = app.send("POST", &path, None).await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    let rotated = answer.expect(200);
    let new = text(&rotated["api_key"]);
    assert_ne!(new, old);
    assert_eq!(rotated["url"], format!("/api/v1/mcp_v2/server/{new}"));
    assert_eq!(rotated["id"], id);
    assert!(new.ends_with(text(&rotated["key"]["hint"])));
    refused(by_key(&app, old).await, 404, "NOT_FOUND");
    assert_eq!(each(&by_key(&app, new).await.expect(200), "name"), ["t"]);

    let body = json!({"expires_at": later(3600)});
    let again = app.post(&path, body.clone()).await.expect(200);
    assert_eq!(again["key"]["expires_at"], body["expires_at"]);
    assert_ne!(again["api_key"], rotated["api_key"]);
    let never = app.post(&path, json!({"expires_at": null})).await;
    assert_eq!(never.expect(200)["key"]["expires_at"], Value::Null);
}

async fn by_key(app: &App, key: &str) -> HttpAnswer {
    let path = format!("/api/v1/mcp/{key}/tools");
    app.request("GET", &path, None, &[]).await
}

async fn e12_what_an_entry_exposes_is_kept(storage: Storage) {
    let app = storage.start().await;
    let exposes = json!({"resources": ["files", "my docs"], "prompts": ["files"]});
    let body = json!({"name": "e", "exposes": exposes, "allow_missing": true});
    let made = app.post(ENTRIES, body).await.expect(201);
    assert_eq!(made["exposes"], exposes);
    let place = format!("{ENTRIES}/{}", made["id"]);
    let half = json!({"exposes": {"prompts": ["x", "x"]}, "allow_missing": true});
    let half = app.patched(&place, half).await.expect(200);
    assert_eq!(half["exposes"], json!({"resources": [], "prompts": ["x"]}));
    let none = app.patched(&place, json!({"exposes": null})).await;
    assert_eq!(
        none.expect(200)["exposes"],
        json!({"resources": [], "prompts": []})
    );
}

async fn e10_when_a_key_expires_can_be_set_and_taken_back(storage: Storage) {
    let app = storage.start().await;
    let at = later(3600);
    let made = app.post(ENTRIES, json!({"name": "e", "expires_at": at}));
    let made = made.await.expect(201);
    assert_eq!(made["key"]["expires_at"], at);
    let key = text(&made["api_key"]);
    by_key(&app, key).await.expect(200);
    let place = format!("{ENTRIES}/{}", made["id"]);
    let past = json!({"expires_at": "2020-01-01T00:00:00Z"});
    app.patched(&place, past).await.expect(200);
    refused(by_key(&app, key).await, 404, "NOT_FOUND");
    let never = app.patched(&place, json!({"expires_at": null})).await;
    assert_eq!(never.expect(200)["key"]["expires_at"], Value::Null);
    by_key(&app, key).await.expect(200);
}
