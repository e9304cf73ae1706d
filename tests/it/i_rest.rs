//! SPEC I1, G1: resources and prompts over REST, tools beside their servers,
//! and addresses with a slash at their end.

use serde_json::{Value, json};

use crate::app::{App, TOKEN, fixtures, setup};

async fn portway() -> App {
    let servers = fixtures(&[("one", &[]), ("two", &[])]);
    let app = setup().mcp(servers).start().await;
    for server in ["one", "two"] {
        app.until_status(server, "connected").await;
    }
    app
}

/// An entry with these `exposes`: its key.
async fn entry(app: &App, exposes: Value) -> String {
    let body = json!({"name": "e", "exposes": exposes});
    let made = app.post("/api/v1/mcp_v2", body).await.expect(201);
    made["api_key"].as_str().unwrap().to_owned()
}

async fn with_key(
    app: &App,
    key: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let body = body.map(|body| body.to_string());
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    let answer = app.request(method, path, body, &headers).await;
    (answer.status, answer.body)
}

fn all(list: &Value, field: &str) -> Vec<String> {
    let texts = list.as_array().unwrap().iter();
    let texts = texts.map(|one| one[field].as_str().unwrap_or_default().to_owned());
    texts.collect()
}

#[tokio::test]
async fn i1_resources_are_listed_and_read_over_rest() {
    let app = portway().await;
    let list = app.get("/api/mcp/resources").await.expect(200);
    let uris = all(&list, "uri");
    let uri = "portway://two/fixture://text";
    assert!(uris.iter().any(|one| one == uri), "{uris:?}");
    let own = app.get("/api/mcp/servers/two/resources").await.expect(200);
    assert!(all(&own, "uri").iter().any(|one| one == "fixture://text"));

    let read = app
        .get(&format!("/api/mcp/resources/read?uri={uri}"))
        .await
        .expect(200);
    assert_eq!(read["contents"][0]["uri"], uri);
    assert!(read.get("resultType").is_none(), "{read}");
    let body = json!({"uri": uri});
    let posted = app.post("/api/mcp/resources/read", body).await.expect(200);
    assert_eq!(posted, read);
    let path = "/api/mcp/servers/two/resources/read";
    let there = app
        .get(&format!("{path}?uri=fixture://text"))
        .await
        .expect(200);
    assert_eq!(there["contents"][0]["uri"], "fixture://text");
    let there = app
        .post(path, json!({"uri": "fixture://text"}))
        .await
        .expect(200);
    assert_eq!(there["contents"][0]["text"], read["contents"][0]["text"]);

    for path in [
        "/api/mcp/resources/templates",
        "/api/mcp/servers/two/resources/templates",
    ] {
        let templates = app.get(path).await.expect(200);
        assert!(!all(&templates, "uriTemplate").is_empty(), "{templates}");
    }
}

#[tokio::test]
async fn i1_prompts_are_listed_and_got_over_rest() {
    let app = portway().await;
    let prompts = app.get("/api/mcp/prompts").await.expect(200);
    let names = all(&prompts, "name");
    let own = app.get("/api/mcp/servers/two/prompts").await.expect(200);
    let own = own[0].clone();
    let name = format!("mcp_two_{}", own["name"].as_str().unwrap());
    assert!(names.contains(&name), "{names:?}");
    let arguments: serde_json::Map<String, Value> = own["arguments"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (one["name"].as_str().unwrap().to_owned(), json!("x")))
        .collect();
    let body = json!({"name": name, "arguments": arguments});
    let got = app.post("/api/mcp/prompts/get", body).await.expect(200);
    assert!(got["messages"].is_array(), "{got}");
    let body = json!({"name": own["name"], "arguments": arguments});
    let path = "/api/mcp/servers/two/prompts/get";
    assert_eq!(app.post(path, body).await.expect(200), got);
}

#[tokio::test]
async fn i1_what_is_wrong_is_named() {
    let app = portway().await;
    let code = |body: &Value| body["error"]["code"].as_str().unwrap().to_owned();
    for path in [
        "/api/mcp/resources/read",
        "/api/mcp/servers/one/resources/read",
    ] {
        let missing = app.get(path).await.expect(422);
        assert_eq!(missing["error"]["details"][0]["field"], "uri");
        let odd = app.post(path, json!({"url": "x"})).await.expect(422);
        assert_eq!(odd["error"]["details"][0]["field"], "url");
        let unknown = app.post(path, json!({"uri": "portway://none/x"})).await;
        assert_eq!(code(&unknown.expect(404)), "NOT_FOUND");
    }
    let path = "/api/mcp/prompts/get";
    let none = app.post(path, json!({"name": "none"})).await.expect(404);
    assert_eq!(code(&none), "NOT_FOUND");
    let odd = json!({"name": "x", "arguments": {"a": 1}});
    let odd = app.post(path, odd).await.expect(422);
    assert_eq!(odd["error"]["details"][0]["field"], "arguments.a");
    let nobody = "/api/mcp/servers/none/prompts/get";
    app.post(nobody, json!({"name": "x"})).await.expect(404);
    app.act("one", "stop").await;
    let away = json!({"uri": "fixture://text"});
    let away = app.post("/api/mcp/servers/one/resources/read", away).await;
    assert_eq!(code(&away.expect(503)), "UNAVAILABLE");
    app.get("/api/mcp/resources?filter=none").await.expect(404);
}

#[tokio::test]
async fn i1_the_key_of_an_entry_shows_what_it_exposes() {
    let app = portway().await;
    let key = entry(&app, json!({"resources": ["one"], "prompts": ["two"]})).await;
    let get = |path: &'static str| with_key(&app, &key, "GET", path, None);
    let (status, resources) = get("/api/mcp/resources").await;
    assert_eq!(status, 200, "{resources}");
    let uris = all(&resources, "uri");
    assert!(!uris.is_empty() && uris.iter().all(|uri| !uri.starts_with("portway://two/")));
    let headers = [("x-api-key", key.as_str())];
    let same = app
        .request("GET", "/api/mcp/resources", None, &headers)
        .await;
    assert_eq!(same.expect(200), resources);
    let (_, prompts) = get("/api/mcp/prompts").await;
    let names = all(&prompts, "name");
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("mcp_two_")));
    let (status, read) = get("/api/mcp/resources/read?uri=portway://one/fixture://text").await;
    assert_eq!(
        (status, &read["contents"][0]["uri"]),
        (200, &json!("portway://one/fixture://text"))
    );
    let (status, _) = get("/api/mcp/resources/read?uri=portway://two/fixture://text").await;
    assert_eq!(status, 404);
    let (status, _) = get("/api/mcp/servers/one/resources").await;
    assert_eq!(status, 403);
    let (status, _) = get("/api/mcp/servers/one/resources/read?uri=fixture://text").await;
    assert_eq!(status, 403);

    // The admin may look at an entry as its key does.
    let path = "/api/mcp/resources?entry=e";
    assert_eq!(app.get(path).await.expect(200), resources);
    let bare = entry(&app, json!({})).await;
    for path in [
        "/api/mcp/resources",
        "/api/mcp/resources/templates",
        "/api/mcp/prompts",
    ] {
        assert_eq!(
            with_key(&app, &bare, "GET", path, None).await,
            (200, json!([]))
        );
    }
    let body = Some(json!({"name": "mcp_two_greet"}));
    let (status, _) = with_key(&app, &bare, "POST", "/api/mcp/prompts/get", body).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn g1_servers_can_be_listed_with_their_tools() {
    let app = portway().await;
    let plain = app.get("/api/mcp/servers").await.expect(200);
    assert!(plain[0].get("tools").is_none());
    let with = app.get("/api/mcp/servers?include=tools").await.expect(200);
    for server in with.as_array().unwrap() {
        let name = server["name"].as_str().unwrap();
        let tools = app.get(&format!("/api/mcp/servers/{name}/tools")).await;
        assert_eq!(server["tools"], tools.expect(200));
        let count = server["tools"].as_array().unwrap().len();
        assert_eq!(server["toolCount"], count);
    }
    let odd = app.get("/api/mcp/servers?include=logs").await.expect(422);
    assert_eq!(odd["error"]["details"][0]["field"], "include");
}

#[tokio::test]
async fn g1_a_slash_at_the_end_makes_no_difference() {
    let app = portway().await;
    let with = app.get("/api/mcp/servers/?include=tools").await.expect(200);
    assert!(with[0]["tools"].is_array());
    let body = json!({"name": "made", "command": crate::app::fixture(), "autoStart": false});
    app.post("/api/mcp/servers/", body).await.expect(201);
    app.get("/api/mcp/servers/made/").await.expect(200);
    let key = entry(&app, json!({})).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for path in [
        "/mcp/",
        "/servers/one/mcp/",
        &format!("/api/v1/mcp_v2/server/{key}/"),
    ] {
        let answer = app.post(path, list.clone()).await.expect(200);
        assert!(answer["result"]["tools"].is_array(), "{path}: {answer}");
    }
    // It is the same path to the guard.
    let nobody = app.request("GET", "/api/mcp/servers/", None, &[]).await;
    assert_eq!(nobody.status, 401);
    let (status, _) = with_key(&app, &key, "GET", "/api/mcp/servers/", None).await;
    assert_eq!(status, 403);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let twice = app
        .request("GET", "/api/mcp/servers//", None, &headers)
        .await;
    assert_eq!(twice.status, 404);
}
