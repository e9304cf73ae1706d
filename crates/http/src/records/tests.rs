//! Tests of the ownership of records, and of a store that fails: they need a
//! principal or a fault of their own.

use std::convert::Infallible;

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::*;
use crate::Principal;
use config::Secret;
use fleet::Publisher;
use gateway::{Seal, Sessions, UserServers};
use store::{StoreError, StoreErrorKind, ToolId, UniqueField};

struct RecordsFixture {
    router: axum::Router,
    store: Arc<Store>,
    _directory: tempfile::TempDir,
}

fn desk() -> RecordsFixture {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<Store> = Arc::new(Store::open_files(directory.path()).unwrap().store);
    let secret = Secret::new("a secret of thirty-two characters");
    let seal = Arc::new(Seal::new(&secret));
    let gateway = Gateway::new(
        Publisher::new().1,
        store.clone(),
        UserServers::new(
            Some(&["s".into(), "fs".into()]),
            watch::channel(Arc::default()).1,
        ),
        None,
        Sessions::new(seal.clone()),
        seal,
        CancellationToken::new(),
    );
    RecordsFixture {
        router: crate::api::records(RecordsApi {
            gateway: Arc::new(gateway),
            store: store.clone(),
            keys: Arc::new(KeyIssuer::new(&secret)),
            // The sender is dropped: the initial value can still be read.
            desired: watch::channel(Arc::default()).1,
        }),
        store,
        _directory: directory,
    }
}

fn user(name: &str) -> Principal {
    Principal::User(name.into())
}

impl RecordsFixture {
    async fn ask(&self, who: &Principal, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.ask_once(who, method, path, body, None).await
    }

    async fn ask_once(
        &self,
        who: &Principal,
        method: &str,
        path: &str,
        body: &Value,
        once: Option<&str>,
    ) -> (u16, Value) {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .extension(who.clone());
        if let Some(key) = once {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        let answer: Result<_, Infallible> = self.router.clone().call(request).await;
        let (head, body) = answer.unwrap().into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        (head.status.as_u16(), body)
    }

    async fn make(&self, who: &Principal, path: &str, body: Value) -> Value {
        let (status, made) = self.ask(who, "POST", path, &body).await;
        assert_eq!(status, 201, "{made}");
        made
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "server": "s", "tool": "x", "allow_missing": true})
}

const BOUND: &str = "/api/v1/mcp_v2/with_bindings";

#[tokio::test]
async fn e2_anothers_records_are_not_there() {
    let desk = desk();
    let (ann, bob) = (user("ann"), user("bob"));
    let its = desk.make(&ann, "/api/v1/tools", tool("t")).await;
    let id = its["id"].as_i64().unwrap();
    assert_eq!(its["user_id"], "ann");
    let body = json!({"name": "e", "bindings": [{"tool_id": id}]});
    let entry = desk.make(&ann, BOUND, body).await;
    let old = desk.make(&ann, "/api/v1/mcp/", json!({"name": "o"})).await;
    let key = old["api_key"].as_str().unwrap();
    let one = entry["id"].as_i64().unwrap();
    let own = desk.make(&bob, "/api/v1/tools", tool("b")).await;
    let bind = json!({"tool_id": own["id"]});

    let (status, nothing) = (json!({"status": 0}), Value::Null);
    let table = |tool: i64, entry: i64, key: &str| {
        let entry = format!("/api/v1/mcp_v2/{entry}");
        let tool_path = format!("/api/v1/tools/{tool}");
        let old = format!("/api/v1/mcp/{key}");
        [
            ("GET", tool_path.clone(), nothing.clone()),
            ("PATCH", tool_path.clone(), json!({"name": "n"})),
            ("DELETE", tool_path, nothing.clone()),
            ("GET", entry.clone(), nothing.clone()),
            ("PATCH", entry.clone(), status.clone()),
            ("DELETE", entry.clone(), nothing.clone()),
            ("POST", format!("{entry}/rotate_key"), json!({})),
            ("GET", format!("{entry}/tools"), nothing.clone()),
            ("GET", format!("{entry}/bindings"), nothing.clone()),
            ("POST", format!("{entry}/bindings"), bind.clone()),
            ("PATCH", format!("{entry}/bindings/{tool}"), status.clone()),
            (
                "DELETE",
                format!("{entry}/bindings/{tool}"),
                nothing.clone(),
            ),
            ("GET", old.clone(), nothing.clone()),
            ("PUT", old.clone(), json!({"name": "n"})),
            ("DELETE", old, nothing.clone()),
        ]
    };
    let foreign = table(id, one, key);
    let missing = table(777, 777, "pwk_777");
    for ((method, path, body), (_, other, _)) in foreign.iter().zip(&missing) {
        let (status, its) = desk.ask(&bob, method, path, body).await;
        assert_eq!(status, 404, "{method} {path}: {its}");
        let (_, none) = desk.ask(&bob, method, other, body).await;
        let numbers = |text: &str| text.replace("777", "1");
        assert_eq!(
            its.to_string(),
            numbers(&none.to_string()),
            "{method} {path}"
        );
    }
    for path in ["/api/v1/mcp_v2", "/api/v1/mcp"] {
        let (_, listed) = desk.ask(&bob, "GET", path, &nothing).await;
        assert_eq!(listed, json!({"items": [], "total": 0}));
    }
    let (_, listed) = desk.ask(&bob, "GET", "/api/v1/tools", &nothing).await;
    assert_eq!(listed["total"], 1);
    // The admin sees them all; their owner finds them unchanged.
    let (_, all) = desk
        .ask(&Principal::Admin, "GET", "/api/v1/tools", &nothing)
        .await;
    assert_eq!(all["total"], 2);
    let path = format!("/api/v1/mcp_v2/{one}/tools");
    let (_, tools) = desk.ask(&ann, "GET", &path, &nothing).await;
    assert_eq!(tools["items"][0]["name"], "t");
}

#[tokio::test]
async fn e5_anothers_tool_cannot_be_bound_at_any_place() {
    let desk = desk();
    let (ann, bob) = (user("ann"), user("bob"));
    let foreign = desk.make(&bob, "/api/v1/tools", tool("theirs")).await;
    let mut own = Vec::new();
    for name in ["a", "b", "c"] {
        own.push(json!({"tool_id": desk.make(&ann, "/api/v1/tools", tool(name)).await["id"]}));
    }
    for at in 0..=own.len() {
        let mut bindings = own.clone();
        bindings.insert(at, json!({"tool_id": foreign["id"]}));
        let body = json!({"name": "e", "bindings": bindings});
        let (status, answer) = desk.ask(&ann, "POST", BOUND, &body).await;
        assert_eq!(status, 404, "{answer}");
        assert_eq!(answer["error"]["code"], "NOT_FOUND");
        assert_eq!(answer["error"]["details"]["tool_id"], foreign["id"]);
        let page = Page { skip: 0, limit: 1 };
        let whose = store::OwnerScope::Everyone;
        assert_eq!(desk.store.entries(&whose, page).await.unwrap().total, 0);
    }
}

#[tokio::test]
async fn k6_an_idempotency_key_belongs_to_its_owner() {
    let desk = desk();
    let body = json!({"name": "e"});
    let path = "/api/v1/mcp_v2";
    let (_, first) = desk
        .ask_once(&user("ann"), "POST", path, &body, Some("k"))
        .await;
    let (status, other) = desk
        .ask_once(&user("bob"), "POST", path, &body, Some("k"))
        .await;
    assert_eq!(status, 201);
    assert_ne!(first["id"], other["id"]);
    assert_ne!(first["api_key"], other["api_key"]);
    let (_, again) = desk
        .ask_once(&user("ann"), "POST", path, &body, Some("k"))
        .await;
    assert_eq!(first, again);
}

#[tokio::test]
async fn f5_what_the_store_refuses_has_its_status() {
    let table = [
        (StoreErrorKind::Unavailable("away".into()), 503, "away"),
        (StoreErrorKind::Full, 507, "no space"),
        (StoreErrorKind::NoSuchTool(ToolId(7)), 404, "tool 7"),
        (StoreErrorKind::SameName("twin".into()), 422, "\"twin\""),
        (StoreErrorKind::OnceReused, 422, "Idempotency-Key"),
        (
            StoreErrorKind::Quota {
                what: "entries",
                limit: 200,
            },
            409,
            "200 entries (PORTWAY_USER_ENTRIES)",
        ),
        (StoreErrorKind::Conflict(UniqueField::Key), 409, "the key"),
        (
            StoreErrorKind::Refused {
                rule: "the constraint \"one_each\"".into(),
                clash: true,
            },
            409,
            "one_each",
        ),
        (
            StoreErrorKind::Refused {
                rule: "the column \"region\"".into(),
                clash: false,
            },
            422,
            "region",
        ),
    ];
    for (kind, status, words) in table {
        let error = StoreError {
            operation: "create MCP instance".into(),
            kind,
        };
        let error = ApiError::from(error);
        assert_eq!(error.code().status(), status, "{error:?}");
        assert!(error.message().contains(words), "{error:?}");
        let response = axum::response::IntoResponse::into_response(error);
        let later = response.headers().contains_key(http::header::RETRY_AFTER);
        assert_eq!(later, status == 503);
    }
    let damaged = StoreError {
        operation: "create MCP instance".into(),
        kind: StoreErrorKind::Corrupt("SELECT secret".into()),
    };
    let error = ApiError::from(damaged);
    assert_eq!(error.code().status(), 500);
    assert!(!error.message().contains("SELECT"));
}

#[tokio::test]
async fn e9_owner_and_key_are_the_admins_to_choose() {
    let desk = desk();
    let (old, ann) = ("/api/v1/mcp/", user("ann"));
    let chosen = json!({"name": "o", "user_id": 7, "api_key": "legacy-key-1"});
    let made = desk.make(&Principal::Admin, old, chosen.clone()).await;
    assert_eq!(
        (&made["user_id"], &made["api_key"]),
        (&json!("7"), &json!("legacy-key-1"))
    );
    let (status, taken) = desk.ask(&Principal::Admin, "POST", old, &chosen).await;
    assert_eq!(status, 409, "{taken}");
    // A client that repeats a create gets the key again.
    let once = json!({"name": "p", "api_key": "legacy-key-2"});
    for _ in 0..2 {
        let asked = desk.ask_once(&Principal::Admin, "POST", old, &once, Some("k"));
        let (status, made) = asked.await;
        assert_eq!((status, &made["api_key"]), (201, &json!("legacy-key-2")));
    }

    let own = desk
        .make(&ann, old, json!({"name": "a", "user_id": "ann"}))
        .await;
    assert_eq!(own["user_id"], "ann");
    let place = format!("{old}{}", own["id"]);
    let key = own["api_key"].as_str().unwrap();
    let refused = [
        (
            "POST",
            old,
            json!({"name": "b", "user_id": "bob"}),
            "user_id",
        ),
        (
            "POST",
            old,
            json!({"name": "b", "api_key": "legacy-key-3"}),
            "api_key",
        ),
        ("PUT", &place, json!({"user_id": "bob"}), "user_id"),
        ("PUT", &place, json!({"api_key": "legacy-key-3"}), "api_key"),
    ];
    for (method, path, body, field) in refused {
        let (status, refused) = desk.ask(&ann, method, path, &body).await;
        assert_eq!(status, 422, "{refused}");
        assert_eq!(refused["error"]["details"][0]["field"], field);
    }
    let same = json!({"user_id": "ann", "api_key": key, "status": 0});
    let (status, changed) = desk.ask(&ann, "PUT", &place, &same).await;
    assert_eq!((status, &changed["status"]), (200, &json!(0)), "{changed}");
    let given = json!({"user_id": "bob", "api_key": "legacy-key-3"});
    let (status, changed) = desk.ask(&Principal::Admin, "PUT", &place, &given).await;
    assert_eq!(
        (status, &changed["user_id"]),
        (200, &json!("bob")),
        "{changed}"
    );
    for path in [place, format!("{old}{key}"), format!("{old}legacy-key-3")] {
        let (status, _) = desk.ask(&ann, "GET", &path, &Value::Null).await;
        assert_eq!(status, 404);
    }
    let path = format!("{old}legacy-key-3");
    let (status, _) = desk.ask(&user("bob"), "GET", &path, &Value::Null).await;
    assert_eq!(status, 200);
    for bad in [
        json!("short"),
        json!("1234567890"),
        json!("with space"),
        json!(7),
    ] {
        let body = json!({"name": "b", "api_key": bad});
        let (status, refused) = desk.ask(&Principal::Admin, "POST", old, &body).await;
        assert_eq!(status, 422, "{refused}");
    }
}

#[tokio::test]
async fn f4_the_admin_lists_the_records_of_one_user() {
    let desk = desk();
    let (ann, bob) = (user("ann"), user("bob"));
    for who in [&ann, &bob] {
        desk.make(who, "/api/v1/tools", tool("t")).await;
        for path in ["/api/v1/mcp_v2", "/api/v1/mcp"] {
            desk.make(who, path, json!({"name": "n"})).await;
        }
    }
    for path in [
        "/api/v1/tools", "/api/v1/mcp_v2", "/api/v1/mcp", "/api/v1/mcp/",
    ] {
        let of = |user: &str| format!("{path}?user_id={user}&limit=5");
        let list = async |who: &Principal, path: &str| {
            let (status, body) = desk.ask(who, "GET", path, &Value::Null).await;
            (
                status,
                body["total"].as_i64(),
                body["items"][0]["user_id"].clone(),
            )
        };
        assert_eq!(list(&Principal::Admin, path).await.1, Some(2));
        for who in [&Principal::Admin, &ann] {
            let found = list(who, &of("ann")).await;
            assert_eq!(found, (200, Some(1), json!("ann")), "{path}");
        }
        assert_eq!(list(&Principal::Admin, &of("nobody")).await.1, Some(0));
        assert_eq!(list(&ann, &of("bob")).await.0, 403);
    }
}

#[tokio::test]
async fn d9_no_user_makes_a_tool_of_portways_own() {
    let desk = desk();
    let body = json!({"name": "all", "server": "portway", "tool": "list_servers",
        "allow_missing": true});
    let (status, refused) = desk.ask(&user("ann"), "POST", "/api/v1/tools", &body).await;
    assert_eq!(status, 422, "{refused}");
    assert_eq!(refused["error"]["details"][0]["field"], "server");
    let (status, _) = desk
        .ask(&Principal::Admin, "POST", "/api/v1/tools", &body)
        .await;
    assert_eq!(status, 201);
    // No principal can change a user's tool into it.
    let other = json!({"name": "other", "server": "fs", "tool": "read", "allow_missing": true});
    let (status, made) = desk
        .ask(&user("ann"), "POST", "/api/v1/tools", &other)
        .await;
    assert_eq!(status, 201, "{made}");
    let place = format!("/api/v1/tools/{}", made["id"]);
    for who in [user("ann"), Principal::Admin] {
        let change = json!({"server": "portway"});
        let (status, refused) = desk.ask(&who, "PATCH", &place, &change).await;
        assert_eq!(status, 422, "{refused}");
    }
}
