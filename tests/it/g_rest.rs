//! SPEC G1, G3: the shape of every route and of every error.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::app::{App, HttpAnswer, PATIENCE, TOKEN, fixture, fixtures, setup};

const ROUTES: [(&str, &str); 11] = [
    ("GET", ""),
    ("PUT", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/start"),
    ("POST", "/stop"),
    ("POST", "/restart"),
    ("GET", "/tools"),
    ("GET", "/resources"),
    ("GET", "/prompts"),
    ("GET", "/logs"),
];

#[track_caller]
fn is_record(record: &Value) {
    let text = ["id", "name", "transport", "status", "state", "source"];
    for field in text {
        assert!(record[field].is_string(), "{field}: {record:#}");
    }
    assert!(record["toolCount"].is_u64(), "{record:#}");
    assert!(record["enabled"].is_boolean(), "{record:#}");
    assert!(record["since"].is_u64(), "{record:#}");
    assert!(record["config"].is_object(), "{record:#}");
    let error = &record["error"];
    assert!(error.is_null() || error.is_string(), "{record:#}");
    let words = ["disconnected", "connecting", "connected", "error"];
    assert!(words.contains(&record["status"].as_str().unwrap()));
    let words = ["stopped", "running", "error"];
    assert!(words.contains(&record["state"].as_str().unwrap()));
}

#[track_caller]
fn is_error(answer: &HttpAnswer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    let error = &answer.body["error"];
    assert_eq!(error["code"], code, "{}", answer.text);
    let message = error["message"].as_str();
    assert!(
        message.is_some_and(|text| !text.is_empty()),
        "{}",
        answer.text
    );
    assert_eq!(answer.body.as_object().unwrap().len(), 1, "{}", answer.text);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn g1_every_route_answers_in_its_shape_by_name_and_by_id() {
    let app = setup()
        .mcp(fixtures(&[("a server", &[]), ("two", &[])]))
        .start()
        .await;
    let up = app.until_status("a%20server", "connected").await;
    is_record(&up);
    for record in app.list().await {
        is_record(&record);
    }
    let id = up["id"].as_str().unwrap();
    let upper = id.to_uppercase();
    for server in ["a%20server", "a%20%73erver", id, &upper] {
        let base = format!("/api/mcp/servers/{server}");
        let record = app.get(&base).await.expect(200);
        assert_eq!((&record["id"], &record["name"]), (&up["id"], &up["name"]));
        let list = |what: &str| {
            let path = format!("{base}/{what}");
            let app = &app;
            async move { app.get(&path).await }
        };
        for tool in list("tools").await.expect(200).as_array().unwrap() {
            assert!(
                tool["name"].is_string() && tool["key"].is_string(),
                "{tool}"
            );
        }
        let resources = list("resources").await.expect(200);
        let uris = resources.as_array().unwrap().iter();
        assert!(
            uris.clone().any(|one| one["uri"].is_string()),
            "{resources:#}"
        );
        assert!(
            uris.clone().any(|one| one["uriTemplate"].is_string()),
            "{resources:#}"
        );
        for prompt in list("prompts").await.expect(200).as_array().unwrap() {
            assert!(prompt["name"].is_string(), "{prompt}");
        }
        assert!(list("logs").await.expect(200).is_array());
        for verb in ["stop", "start", "restart"] {
            is_record(&app.act(server, verb).await);
        }
        let timeout = json!({"timeout": 30000}).to_string();
        is_record(&app.send("PATCH", &base, Some(timeout)).await.expect(200));
        let whole = json!({"command": fixture()}).to_string();
        is_record(&app.send("PUT", &base, Some(whole)).await.expect(200));
        // What was shown can be sent back.
        let shown = app.get(&base).await.expect(200);
        let again = app.send("PUT", &base, Some(shown["config"].to_string()));
        assert_eq!(again.await.expect(200)["config"], shown["config"]);
        app.until_status(server, "connected").await;
    }
    assert_eq!(app.delete(id).await.status, 204);
}

#[tokio::test]
async fn g1_what_is_not_connected_offers_nothing_but_answers() {
    let app = setup()
        .mcp(json!({"mcpServers": {
            "off": {"command": fixture(), "disabled": true},
            "broken": {"command": 5},
            "bad/name": {"command": fixture()},
        }}))
        .start()
        .await;
    for name in ["off", "broken", "bad%2Fname"] {
        let base = format!("/api/mcp/servers/{name}");
        for what in ["tools", "resources", "prompts"] {
            let list = app.get(&format!("{base}/{what}")).await.expect(200);
            assert_eq!(list, json!([]), "{name} {what}");
        }
        app.get(&format!("{base}/logs")).await.expect(200);
    }
    // A definition that cannot be used is shown with what is wrong, and can
    // neither be started nor half-changed.
    for (name, field) in [("broken", "command"), ("bad%2Fname", "name")] {
        let record = app.until_status(name, "error").await;
        assert_eq!(record["problems"][0]["field"], field, "{record:#}");
        assert!(
            record["error"].as_str().unwrap().contains(field),
            "{record:#}"
        );
        assert_eq!(app.act(name, "start").await["status"], "error");
        let refused = app.patch(name, json!({"timeout": 1})).await;
        match field {
            // Where only the name is wrong, a new one would repair it.
            "name" => is_error(&refused, 422, "VALIDATION_ERROR"),
            _ => is_error(&refused, 409, "CONFLICT"),
        }
        assert_eq!(app.delete(name).await.status, 204, "{name}");
    }
    assert_eq!(app.list().await.len(), 1);
}

#[tokio::test]
async fn g3_what_is_not_there_is_404_on_every_route() {
    let app = setup().start().await;
    let id = "0c629874-d319-41f2-9582-e95f6f639a27";
    for server in ["none", id, "..%2f..%2fetc", "%00", "a%2fb", "%E4%BD%A0"] {
        for (method, suffix) in ROUTES {
            let path = format!("/api/mcp/servers/{server}{suffix}");
            let body = matches!(method, "PUT" | "PATCH").then(|| json!({"command": "x"}));
            let answer = app
                .send(method, &path, body.map(|body| body.to_string()))
                .await;
            is_error(&answer, 404, "NOT_FOUND");
        }
    }
    for path in [
        "/api",
        "/api/mcp",
        "/api/mcp/serverss",
        "/api/mcp/servers//",
        "/x",
    ] {
        is_error(&app.get(path).await, 404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn g3_every_refusal_has_the_same_shape() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let one = "/api/mcp/servers/one";
    let token = format!("Bearer {TOKEN}");
    let auth = ("authorization", token.as_str());

    is_error(&app.get("/api/mcp/servers/%ff").await, 400, "BAD_REQUEST");
    is_error(
        &app.request("GET", one, None, &[]).await,
        401,
        "UNAUTHORIZED",
    );
    let wrong = ("authorization", "Bearer not-the-token");
    is_error(
        &app.request("GET", one, None, &[wrong]).await,
        401,
        "UNAUTHORIZED",
    );
    let evil = app
        .request("GET", one, None, &[auth, ("host", "evil.example")])
        .await;
    is_error(&evil, 403, "FORBIDDEN");
    let evil = app
        .request("GET", one, None, &[auth, ("origin", "http://evil.example")])
        .await;
    is_error(&evil, 403, "FORBIDDEN");
    for (method, path) in [
        ("POST", one),
        ("GET", "/api/mcp/servers/one/start"),
        ("DELETE", "/api/mcp/servers"),
        ("PATCH", "/api/mcp/servers/one/tools"),
    ] {
        is_error(
            &app.send(method, path, None).await,
            405,
            "METHOD_NOT_ALLOWED",
        );
    }
    let taken = json!({"name": "one", "command": "x"});
    is_error(&app.post("/api/mcp/servers", taken).await, 409, "CONFLICT");
    let large = json!({"name": "x", "command": "x".repeat(5 << 20)});
    is_error(
        &app.post("/api/mcp/servers", large).await,
        413,
        "PAYLOAD_TOO_LARGE",
    );
    is_error(&plain_text(&app).await, 415, "UNSUPPORTED_MEDIA_TYPE");
    let wrong = app.post("/api/mcp/servers", json!({"name": "x"})).await;
    is_error(&wrong, 422, "VALIDATION_ERROR");
    let query = app.get("/api/mcp/servers/one/logs?limit=many").await;
    is_error(&query, 422, "VALIDATION_ERROR");
    assert_eq!(query.body["error"]["details"][0]["field"], "limit");
}

/// A body that claims to be something else.
async fn plain_text(app: &App) -> HttpAnswer {
    let token = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", token.as_str()),
        ("content-type", "text/plain"),
    ];
    // With a body the client adds the JSON type as well; two are none.
    app.request("POST", "/api/mcp/servers", Some("{}".into()), &headers)
        .await
}

#[tokio::test]
async fn g1_changes_side_by_side_all_count() {
    let app = setup().file(".mcp.json", "{}").start().await;
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let post = |name: &String| {
        let body = json!({"name": name, "command": fixture(), "autoStart": false});
        let app = &app;
        async move { app.post("/api/mcp/servers", body).await.expect(201) }
    };
    futures_util::future::join_all(names.iter().map(post)).await;
    assert_eq!(app.list().await.len(), 20);
    let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["mcpServers"].as_object().unwrap().len(), 20);
    let delete = |name: &String| {
        let (app, name) = (&app, name.clone());
        async move { assert_eq!(app.delete(&name).await.status, 204) }
    };
    futures_util::future::join_all(names.iter().map(delete)).await;
    assert!(app.list().await.is_empty());
}

/// Only the end of a body in chunks tells that it is too large.
#[tokio::test]
async fn g3_a_body_in_chunks_that_is_too_large_is_refused_like_any_other() {
    let app = setup().env("PORTWAY_MAX_BODY", "64KiB").start().await;
    let chunk = format!("{:x}\r\n{}\r\n", 70_000, "x".repeat(70_000));
    for (method, path) in [
        ("POST", "/api/mcp/servers"),
        ("PUT", "/api/mcp/servers/x"),
        ("PATCH", "/api/mcp/servers/x"),
        ("POST", "/api/mcp/plan"),
        ("POST", "/api/v1/tools"),
    ] {
        let address = app.url.strip_prefix("http://").unwrap();
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\nconnection: close\r\n\
             transfer-encoding: chunked\r\n\r\n"
        );
        let sent = format!("{head}{chunk}0\r\n\r\n");
        socket.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(PATIENCE, socket.read_to_string(&mut answer)).await;
        read.expect("an answer").unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 413 "),
            "{method} {path}: {answer}"
        );
        assert!(
            answer.contains("PAYLOAD_TOO_LARGE"),
            "{method} {path}: {answer}"
        );
    }
}
