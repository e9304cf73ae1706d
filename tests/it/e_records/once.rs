//! `Idempotency-Key`: sent twice, made once.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::*;
use crate::app::fixtures;
use crate::mcp_front::until;

on_each_store!(
    k6_a_create_sent_twice_makes_one_thing,
    k6_creates_that_come_at_once_make_one_thing,
    k6_an_idempotency_key_means_one_request,
    k6_what_was_changed_since_is_answered_as_it_is,
    k6_a_replay_is_answered_though_its_target_has_gone,
);

/// The creates, each with a body.
async fn creates(app: &App) -> Vec<(&'static str, String)> {
    let tool = app.new_tool("bound").await;
    vec![
        (
            TOOLS,
            r#"{"name":"t","server":"s","tool":"x","allow_missing":true}"#.to_owned(),
        ),
        (ENTRIES, r#"{"name":"e"}"#.to_owned()),
        (
            BOUND,
            json!({"name": "b", "bindings": [{"tool_id": tool}]}).to_string(),
        ),
        (OLD, r#"{"name":"o","table_id":7}"#.to_owned()),
    ]
}

fn replayed(answer: &HttpAnswer) -> bool {
    match answer.headers.get("idempotency-replayed") {
        Some(value) => value == "true",
        None => false,
    }
}

async fn totals(app: &App) -> [i64; 3] {
    [
        app.total(TOOLS).await,
        app.total(ENTRIES).await,
        app.total(OLD).await,
    ]
}

async fn k6_a_create_sent_twice_makes_one_thing(storage: Storage) {
    let app = storage.start().await;
    let creates = creates(&app).await;
    let mut first = Vec::new();
    for (path, body) in &creates {
        // The same key at another address is another key.
        let answer = app.post_once(path, "retry-1", body).await;
        assert!(!replayed(&answer), "{path}");
        first.push(answer.expect(201));
    }
    let made = totals(&app).await;
    assert_eq!(made, [2, 2, 1]);
    let app = app.again().await;
    for ((path, body), first) in creates.iter().zip(&first) {
        let answer = app.post_once(path, "retry-1", body).await;
        assert!(replayed(&answer), "{path}");
        // The key as well, although it is nowhere to be read.
        assert_eq!(answer.expect(201), *first, "{path}");
    }
    assert_eq!(totals(&app).await, made);
    for ((path, body), first) in creates.iter().zip(&first) {
        let other = app.post_once(path, "retry-2", body).await;
        assert!(!replayed(&other));
        let other = other.expect(201);
        assert_ne!(other["id"], first["id"]);
        if *path != TOOLS {
            assert_ne!(other["api_key"], first["api_key"]);
        }
    }
}

async fn k6_creates_that_come_at_once_make_one_thing(storage: Storage) {
    let app = storage.start().await;
    for (path, body) in &creates(&app).await {
        let before = app.total(if *path == BOUND { ENTRIES } else { path }).await;
        let asked = (0..16).map(|_| app.post_once(path, "at once", body));
        // A space is no visible character.
        for answer in join_all(asked).await {
            assert_eq!(wrong_fields(answer), ["Idempotency-Key"]);
        }
        let asked = (0..16).map(|_| app.post_once(path, "at-once", body));
        let answers = join_all(asked).await;
        let new = answers.iter().filter(|answer| !replayed(answer)).count();
        assert_eq!(new, 1, "{path}");
        let bodies: Vec<Value> = answers.into_iter().map(|a| a.expect(201)).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:#?}");
        let after = app.total(if *path == BOUND { ENTRIES } else { path }).await;
        assert_eq!(after, before + 1, "{path}");
    }
}

async fn k6_an_idempotency_key_means_one_request(storage: Storage) {
    let app = storage.start().await;
    for (path, body) in &creates(&app).await {
        app.post_once(path, "k", body).await.expect(201);
        let other = body.replacen('{', "{\"status\":1,", 1);
        let other = match *path {
            TOOLS => body.replace("\"t\"", "\"u\""),
            _ => other,
        };
        let answer = app.post_once(path, "k", &other).await;
        assert_eq!(wrong_fields(answer), ["Idempotency-Key"], "{path}");
    }
    let made = totals(&app).await;
    let longest = "x".repeat(255);
    let body = r#"{"name":"e"}"#;
    app.post_once(ENTRIES, &longest, body).await.expect(201);
    for bad in ["", "ü", "a b", &"x".repeat(256)] {
        let answer = app.post_once(ENTRIES, bad, body).await;
        assert_eq!(wrong_fields(answer), ["Idempotency-Key"], "{bad}");
    }
    let bearer = format!("Bearer {TOKEN}");
    let twice = [
        ("authorization", bearer.as_str()),
        ("idempotency-key", "a"),
        ("idempotency-key", "a"),
    ];
    let answer = app.request("POST", ENTRIES, Some(body.into()), &twice);
    assert_eq!(wrong_fields(answer.await), ["Idempotency-Key"]);
    assert_eq!(totals(&app).await, [made[0], made[1] + 1, made[2]]);
}

async fn k6_what_was_changed_since_is_answered_as_it_is(storage: Storage) {
    let app = storage.start().await;
    let body = r#"{"name":"e"}"#;
    let first = app.post_once(ENTRIES, "k", body).await.expect(201);
    let place = format!("{ENTRIES}/{}", first["id"]);
    let rotate = format!("{place}/rotate_key");
    let rotated = app.send("POST", &rotate, None).await.expect(200);
    let again = app.post_once(ENTRIES, "k", body).await;
    assert!(replayed(&again));
    // Neither key: the first opens nothing, and the second was shown already.
    assert!(!again.text.contains(text(&first["api_key"])));
    assert!(!again.text.contains(text(&rotated["api_key"])));
    let again = again.expect(201);
    assert_eq!(again["id"], first["id"]);
    assert!(again.get("api_key").is_none() && again.get("url").is_none());
    assert_eq!(app.deleted(&place).await.status, 204);
    let gone = app.post_once(ENTRIES, "k", body).await;
    let error = refused(gone, 404, "NOT_FOUND");
    assert!(text(&error["message"]).contains("deleted"), "{error}");
    assert_eq!(app.total(ENTRIES).await, 0);
}

/// What would be refused now was not when it was made.
async fn k6_a_replay_is_answered_though_its_target_has_gone(storage: Storage) {
    let setup = storage.setup();
    let app = setup.mcp(fixtures(&[("x", &[]), ("y", &[])])).start().await;
    for name in ["x", "y"] {
        app.until_status(name, "connected").await;
    }
    let tool = app.tool_of("bound", "x", "echo").await;
    let soon = SystemTime::now() + Duration::from_secs(2);
    let soon = soon.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let soon = store::Timestamp::from_millis(soon).to_string();
    let creates = [
        (TOOLS, json!({"name": "t", "server": "x", "tool": "echo"})),
        (
            ENTRIES,
            json!({"name": "e", "exposes": {"resources": ["y"], "prompts": []}}),
        ),
        (
            BOUND,
            json!({"name": "b", "bindings": [{"tool_id": tool}], "expires_at": soon}),
        ),
    ];
    let mut first = Vec::new();
    for (path, body) in &creates {
        let answer = app.post_once(path, "first", &body.to_string()).await;
        first.push(answer.expect(201));
    }
    app.act("x", "stop").await;
    assert_eq!(app.delete("y").await.status, 204);
    for ((path, body), first) in creates.iter().zip(&first) {
        let body = body.to_string();
        let refused = || async { app.post(path, body.parse().unwrap()).await.status == 422 };
        until(path, refused).await;
        let answer = app.post_once(path, "first", &body).await;
        assert!(replayed(&answer), "{path}: {}", answer.text);
        assert_eq!(answer.expect(201)["id"], first["id"]);
        let answer = app.post_once(path, "second", &body).await;
        assert_eq!(answer.status, 422, "{path}");
    }
}
