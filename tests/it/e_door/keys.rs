//! Keys on the shared endpoint.

use serde_json::json;

use super::{StoreBeforeStart, StoredEntry, keyed, tools, up, with_x};
use crate::app::{App, TOKEN};
use crate::e_records::{Storage, on_each_store};
use crate::mcp_front::{FrontRequest, ask, call, legacy, modern, post, said};

on_each_store!(
    e8_a_key_gives_its_entry_and_the_token_everything,
    e8_a_key_is_for_its_endpoint_alone,
    t_d2_a_session_is_for_the_key_that_opened_it,
    e8_without_auth_a_key_still_means_its_entry,
);

async fn two(storage: Storage) -> (App, StoredEntry, StoredEntry) {
    let setup = with_x(storage);
    let before = StoreBeforeStart::of(&setup).await;
    let first = before.entry("a", &["echo"]).await;
    let second = before.entry("b", &["count"]).await;
    drop(before);
    (up(setup).await, first, second)
}

fn list(app: &App) -> FrontRequest<'_> {
    modern(app, "/mcp", "tools/list", json!({})).without("authorization")
}

async fn e8_a_key_gives_its_entry_and_the_token_everything(storage: Storage) {
    let (app, first, second) = two(storage).await;
    let key = |key: &str| list(&app).header("x-api-key", key);
    let bearer = |key: &str| list(&app).header("authorization", &format!("Bearer {key}"));
    assert_eq!(tools(key(&first.key)).await, ["echo"]);
    assert_eq!(tools(bearer(&first.key)).await, ["echo"]);
    assert_eq!(tools(key(&second.key)).await, ["count"]);
    assert!(tools(key(TOKEN)).await.len() > 10);
    assert!(tools(bearer(TOKEN)).await.len() > 10);
    let both = |a: &str, b: &str| key(a).header("authorization", &format!("Bearer {b}"));
    assert_eq!(tools(both(&first.key, &first.key)).await, ["echo"]);
    let odd = [
        both(&first.key, &second.key),
        both(&first.key, TOKEN),
        both(TOKEN, &first.key),
        both(TOKEN, "wrong"),
        key(&first.key).also("x-api-key", &first.key),
        key("pwk_unknown"),
        key(""),
        bearer(&format!("{}x", first.key)),
        list(&app),
    ];
    for ask in odd {
        let talk = ask.send().await;
        assert_eq!(talk.status, 401);
        assert_eq!(talk.json().await["error"]["code"], "UNAUTHORIZED");
    }
    let hi = modern(
        &app,
        "/mcp",
        "tools/call",
        call("echo", json!({"text": "hi"})),
    );
    let hi = hi.without("authorization").header("x-api-key", &first.key);
    assert_eq!(said(&hi.send().await.answer().await), "hi");
}

async fn e8_a_key_is_for_its_endpoint_alone(storage: Storage) {
    let (app, first, _) = two(storage).await;
    let bearer = format!("Bearer {}", first.key);
    for (method, path) in [
        ("GET", "/api/mcp/servers"),
        ("GET", "/api/mcp/servers/x"),
        ("DELETE", "/api/mcp/servers/x"),
        ("GET", "/servers/x/sse"),
        ("GET", "/api/v1/mcp_v2"),
        ("GET", "/nothing"),
    ] {
        let talk = ask(&app, method, path).header("authorization", &bearer);
        let talk = talk.send().await;
        assert_eq!(talk.status, 403, "{method} {path}");
        assert_eq!(talk.json().await["error"]["code"], "FORBIDDEN");
    }
    let other = modern(&app, "/servers/x/mcp", "tools/list", json!({}));
    let other = other
        .without("authorization")
        .header("x-api-key", &first.key);
    assert_eq!(other.send().await.status, 403);
}

async fn t_d2_a_session_is_for_the_key_that_opened_it(storage: Storage) {
    let (app, first, second) = two(storage).await;
    let client = legacy(&app, &first.path(), "2025-11-25", json!({})).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for method in ["POST", "GET", "DELETE"] {
        let with = |path: &str| match method {
            "POST" => post(&app, path, &ping),
            method => ask(&app, if method == "GET" { "GET" } else { "DELETE" }, path),
        };
        let shared = keyed(with("/mcp"), &second.key, &client.session)
            .send()
            .await;
        assert_eq!(shared.status, 404, "{method}");
        let other = with(&second.path()).header("mcp-session-id", &client.session);
        assert_eq!(other.send().await.status, 404, "{method}");
    }
    let own = keyed(post(&app, "/mcp", &ping), &first.key, &client.session)
        .send()
        .await;
    assert_eq!(own.status, 200);
}

async fn e8_without_auth_a_key_still_means_its_entry(storage: Storage) {
    let setup = with_x(storage).arg("--no-auth");
    let before = StoreBeforeStart::of(&setup).await;
    let entry = before.entry("a", &["echo"]).await;
    let off = before.entry("off", &["count"]).await;
    before.disable(&off).await;
    drop(before);
    let app = up(setup).await;
    assert!(tools(list(&app)).await.len() > 10);
    assert_eq!(
        tools(list(&app).header("x-api-key", &entry.key)).await,
        ["echo"]
    );
    let withdrawn = list(&app).header("x-api-key", &off.key).send().await;
    assert_eq!(withdrawn.status, 401);
    let path = off.path();
    let at_its_address = modern(&app, &path, "tools/list", json!({})).send().await;
    assert_eq!(at_its_address.status, 404);
}
