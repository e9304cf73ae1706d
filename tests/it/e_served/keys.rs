//! `GET /api/v1/mcp/{api_key}/tools`: open to whoever has the key.

use serde_json::json;

use super::*;
use crate::e_door::entries::raw;
use crate::e_records::{ENTRIES, on_each_store};

on_each_store!(
    e11_a_key_that_opens_nothing_is_the_same_404,
    e11_is_never_kept_by_a_cache
);

fn at(key: &str) -> String {
    format!("/api/v1/mcp/{key}/tools")
}

async fn e11_a_key_that_opens_nothing_is_the_same_404(storage: Storage) {
    let app = storage.start().await;
    let tool = app.new_tool("t").await;
    let mut keys = Vec::new();
    for (name, change) in [
        ("off", json!({"status": false})),
        ("old", json!({"expires_at": "2020-01-01T00:00:00Z"})),
    ] {
        let made = app.new_entry(name, &[tool]).await;
        let place = format!("{ENTRIES}/{}", made["id"]);
        app.patched(&place, change).await.expect(200);
        keys.push(text(&made["api_key"]).to_owned());
    }
    let gone = app.new_entry("gone", &[tool]).await;
    let place = format!("{ENTRIES}/{}", gone["id"]);
    assert_eq!(app.deleted(&place).await.status, 204);
    keys.push(text(&gone["api_key"]).to_owned());
    let rotated = app.new_entry("rotated", &[tool]).await;
    let rotate = format!("{ENTRIES}/{}/rotate_key", rotated["id"]);
    app.send("POST", &rotate, None).await.expect(200);
    keys.push(text(&rotated["api_key"]).to_owned());
    keys.push("pwk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned());
    keys.extend(["x", "0", "%00", "%ff", "%ff%00", "%zz", "%", "a%2Fb"].map(String::from));
    keys.push("x".repeat(2000));
    for query in ["", "?include_disabled=true"] {
        let first = raw(&app, "GET", &format!("{}{query}", at(&keys[0])), "").await;
        assert!(first.starts_with("HTTP/1.1 404 "), "{first}");
        assert!(first.contains(r#""code":"NOT_FOUND""#), "{first}");
        assert!(first.contains("cache-control: no-store"), "{first}");
        for key in &keys {
            let answer = raw(&app, "GET", &format!("{}{query}", at(key)), "").await;
            assert_eq!(answer, first, "{key}");
        }
    }
}

async fn e11_is_never_kept_by_a_cache(storage: Storage) {
    let app = storage.start().await;
    let tool = app.new_tool("t").await;
    let made = app.new_entry("e", &[tool]).await;
    let path = at(text(&made["api_key"]));
    for (query, status) in [
        ("", 200),
        ("?include_disabled=true", 200),
        ("?include_disabled=x", 422),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = app
                .request(method, &format!("{path}{query}"), None, &[])
                .await;
            assert_eq!(answer.status, status, "{method} {query}");
            assert_eq!(
                answer.headers["cache-control"], "no-store",
                "{method} {query}"
            );
        }
    }
}
