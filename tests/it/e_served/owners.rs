//! Users of a project over REST: each has records of their own, and another's
//! are not there for them.

use serde_json::json;

use super::*;
use crate::e_door::users::project::{now, sign_with};
use crate::e_records::{BOUND, ENTRIES, OLD, each, on_each_store, refused};

on_each_store!(
    e2_what_is_anothers_is_404,
    e5_a_tool_of_anothers_cannot_be_bound,
    e2_lists_show_what_is_ones_own,
    t_a_user_has_a_quota_of_everything_and_the_admin_has_none,
);

pub(super) const SECRET: &str = "the-legacy-secret-of-a-project-0123";

pub(super) struct User<'a> {
    app: &'a App,
    id: &'static str,
    bearer: String,
}

impl User<'_> {
    pub(super) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> HttpAnswer {
        let headers = [("authorization", self.bearer.as_str())];
        let body = body.map(|body| body.to_string());
        self.app.request(method, path, body, &headers).await
    }

    pub(super) async fn made(&self, path: &str, body: Value) -> Value {
        self.send("POST", path, Some(body)).await.expect(201)
    }

    async fn tool(&self, name: &str) -> i64 {
        let body = json!({"name": name, "server": "x", "tool": "echo", "allow_missing": true});
        number(&self.made(TOOLS, body).await["id"])
    }

    async fn entry(&self, name: &str, tool: i64) -> Value {
        let body = json!({"name": name, "bindings": [{"tool_id": tool}]});
        self.made(BOUND, body).await
    }
}

async fn start(storage: Storage) -> App {
    let setup = storage
        .setup()
        .env("SUPABASE_JWT_SECRET", SECRET)
        .env("SUPABASE_USER_SERVERS", "x");
    setup.start().await
}

pub(super) fn users(app: &App) -> [User<'_>; 2] {
    let user = |id: &'static str| {
        let claims = json!({"aud": "authenticated", "role": "authenticated",
            "sub": id, "exp": now() + 600});
        let token = sign_with(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims);
        let bearer = format!("Bearer {token}");
        User { app, id, bearer }
    };
    [
        user("0b7f6e52-9a4c-4a5b-8f5e-1f0e6a3c2d11"),
        user("1c8f6e52-9a4c-4a5b-8f5e-1f0e6a3c2d22"),
    ]
}

async fn e2_what_is_anothers_is_404(storage: Storage) {
    let app = start(storage).await;
    let [ann, bob] = users(&app);
    let tool = ann.tool("read").await;
    let entry = ann.entry("hers", tool).await;
    let old = ann.made(OLD, json!({"name": "old"})).await;
    let own = bob.tool("own").await;
    let place = format!("{ENTRIES}/{}", entry["id"]);
    let record = format!("{TOOLS}/{tool}");
    let instance = format!("{OLD}{}", text(&old["api_key"]));
    let off = || Some(json!({"status": false}));
    for (method, path, body) in [
        ("GET", record.clone(), None),
        ("PATCH", record.clone(), Some(json!({"name": "his"}))),
        ("DELETE", record.clone(), None),
        ("GET", place.clone(), None),
        ("PATCH", place.clone(), off()),
        ("DELETE", place.clone(), None),
        ("POST", format!("{place}/rotate_key"), None),
        ("GET", format!("{place}/tools"), None),
        ("GET", format!("{place}/bindings"), None),
        (
            "POST",
            format!("{place}/bindings"),
            Some(json!({"tool_id": own})),
        ),
        ("PATCH", format!("{place}/bindings/{tool}"), off()),
        ("DELETE", format!("{place}/bindings/{tool}"), None),
        ("GET", instance.clone(), None),
        ("PUT", instance.clone(), off()),
        ("DELETE", instance.clone(), None),
    ] {
        let answer = bob.send(method, &path, body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text);
        refused(answer, 404, "NOT_FOUND");
    }
    // She finds it all as she left it, and so does who holds the key.
    let hers = ann.send("GET", &place, None).await.expect(200);
    assert_eq!(
        (&hers["status"], &hers["user_id"]),
        (&json!(true), &json!(ann.id))
    );
    let by_key = format!("/api/v1/mcp/{}/tools", text(&entry["api_key"]));
    let tools = app.request("GET", &by_key, None, &[]).await.expect(200);
    assert_eq!(each(&tools, "name"), ["read"]);
    let still = ann.send("GET", &instance, None).await.expect(200);
    assert_eq!(still["name"], "old");
}

async fn e5_a_tool_of_anothers_cannot_be_bound(storage: Storage) {
    let app = start(storage).await;
    let [ann, bob] = users(&app);
    let (hers, his) = (ann.tool("hers").await, bob.tool("his").await);
    let entry = bob.entry("his", his).await;
    let place = format!("{ENTRIES}/{}/bindings", entry["id"]);
    // Hers at each place.
    for bindings in [
        json!([{"tool_id": hers}]),
        json!([{"tool_id": hers}, {"tool_id": his}]),
        json!([{"tool_id": his}, {"tool_id": hers, "status": false}]),
    ] {
        let body = json!({"name": "stolen", "bindings": bindings});
        let answer = bob.send("POST", BOUND, Some(body)).await;
        refused(answer, 404, "NOT_FOUND");
    }
    let body = Some(json!({"tool_id": hers}));
    refused(
        bob.send("POST", &place, body.clone()).await,
        404,
        "NOT_FOUND",
    );
    // Nor by the admin, for him: it would be his to use.
    refused(
        app.send("POST", &place, body.map(|b| b.to_string())).await,
        404,
        "NOT_FOUND",
    );
    let listed = bob.send("GET", ENTRIES, None).await.expect(200);
    assert_eq!(each(&listed, "name"), ["his"]);
    let bound = bob.send("GET", &place, None).await.expect(200);
    assert_eq!(each(&bound, "tool_id"), [his]);
}

async fn e2_lists_show_what_is_ones_own(storage: Storage) {
    let app = start(storage).await;
    let [ann, bob] = users(&app);
    for (user, name) in [(&ann, "a"), (&bob, "b"), (&ann, "c")] {
        let tool = user.tool(name).await;
        user.entry(name, tool).await;
        user.made(OLD, json!({"name": name})).await;
    }
    for path in [TOOLS, ENTRIES, OLD] {
        for (user, names) in [(&ann, &["a", "c"][..]), (&bob, &["b"][..])] {
            let listed = user.send("GET", path, None).await.expect(200);
            assert_eq!(each(&listed, "name"), names, "{path}");
            assert_eq!(listed["total"], names.len(), "{path}");
            assert!(each(&listed, "user_id").iter().all(|id| *id == user.id));
        }
        assert_eq!(app.total(path).await, 3, "{path}");
    }
    // The same words from another are another's.
    let once = async |user: &User<'_>| {
        let headers = [
            ("authorization", user.bearer.as_str()),
            ("idempotency-key", "k"),
        ];
        let body = Some(r#"{"name":"once"}"#.to_owned());
        app.request("POST", ENTRIES, body, &headers)
            .await
            .expect(201)
    };
    let (hers, his) = (once(&ann).await, once(&bob).await);
    assert_ne!(hers["id"], his["id"]);
    assert_ne!(hers["api_key"], his["api_key"]);
    assert_eq!(once(&ann).await["api_key"], hers["api_key"]);
}

async fn t_a_user_has_a_quota_of_everything_and_the_admin_has_none(storage: Storage) {
    let settings = [
        ("SUPABASE_JWT_SECRET", SECRET),
        ("SUPABASE_USER_SERVERS", "x"),
        ("PORTWAY_USER_RECORDS", "3"),
        ("PORTWAY_USER_ENTRIES", "2"),
        ("PORTWAY_USER_BINDINGS", "3"),
        ("PORTWAY_USER_BYTES", "1KiB"),
    ];
    let setup = settings
        .iter()
        .fold(storage.setup(), |s, (name, value)| s.env(name, value));
    let app = setup.start().await;
    let [ann, bob] = users(&app);
    let refused = |answer: HttpAnswer, quota: &str, limit: u64| {
        let error = &answer.expect(409)["error"];
        assert_eq!(error["code"], "QUOTA_EXCEEDED");
        assert_eq!(error["details"], json!({"quota": quota, "limit": limit}));
        let message = text(&error["message"]);
        let setting = format!("PORTWAY_USER_{}", quota.to_uppercase());
        assert!(message.contains(&setting), "{message}");
        assert!(message.contains(&limit.to_string()), "{message}");
    };
    let tool =
        |name: &str| json!({"name": name, "server": "x", "tool": "echo", "allow_missing": true});
    let ids = [ann.tool("a").await, ann.tool("b").await];
    let old = ann.made(OLD, json!({"name": "old"})).await;
    let post = async |who: &User<'_>, path: &str, body| who.send("POST", path, Some(body)).await;
    refused(post(&ann, TOOLS, tool("c")).await, "records", 3);
    refused(
        post(&ann, OLD, json!({"name": "older"})).await,
        "records",
        3,
    );
    let both = json!([{"tool_id": ids[0]}, {"tool_id": ids[1], "status": 0}]);
    let full = json!({"name": "one", "bindings": both});
    ann.made(BOUND, full.clone()).await;
    refused(post(&ann, BOUND, full).await, "bindings", 3);
    let two = ann
        .made(BOUND, json!({"name": "two", "bindings": []}))
        .await;
    refused(
        post(&ann, ENTRIES, json!({"name": "three"})).await,
        "entries",
        2,
    );
    let place = format!("{ENTRIES}/{}/bindings", two["id"]);
    refused(
        post(&ann, &place, json!({"bindings": both})).await,
        "bindings",
        3,
    );
    let record = format!("{TOOLS}/{}", ids[0]);
    let long = || Some(json!({"description": "x".repeat(1024)}));
    refused(ann.send("PATCH", &record, long()).await, "bytes", 1024);
    // Nothing of it was kept, and what shrinks is let through.
    let listed = ann.send("GET", ENTRIES, None).await.expect(200);
    assert_eq!(listed["total"], 2);
    let short = Some(json!({"description": "short"}));
    ann.send("PATCH", &record, short).await.expect(200);
    let instance = format!("{OLD}{}", text(&old["api_key"]));
    ann.send("DELETE", &instance, None).await;
    ann.made(TOOLS, tool("c")).await;

    // Another user has a quota of their own; the admin has none.
    bob.tool("a").await;
    for name in ["a", "b", "c", "d"] {
        app.post(TOOLS, tool(name)).await.expect(201);
    }
    app.send("PATCH", &record, long().map(|body| body.to_string()))
        .await
        .expect(200);
}
