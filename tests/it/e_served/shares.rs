//! A user with many entries is one user: what they hold leaves others theirs.

use futures_util::future::join_all;

use super::owners::{SECRET, User, users};
use super::*;
use crate::app::{eventually, fixture, setup};
use crate::e_records::ENTRIES;
use crate::mcp_front::{X, call, modern, said};

/// The slots that one user may have of one server.
const SLOTS: usize = 64;

async fn key_of(user: &User<'_>, name: String) -> String {
    let body = json!({"name": name, "filter": {"allow": ["x:*"]}});
    text(&user.made(ENTRIES, body).await["api_key"]).to_owned()
}

async fn portway(definition: Value, more: &[(&str, &str)]) -> App {
    let mut setup = setup()
        .env("SUPABASE_JWT_SECRET", SECRET)
        .env("SUPABASE_USER_SERVERS", "x")
        .mcp(json!({"mcpServers": {"x": definition}}));
    for (name, value) in more {
        setup = setup.env(name, value);
    }
    let app = setup.start().await;
    app.until_status("x", "connected").await;
    app
}

async fn called(app: &App, path: &str, able: Value, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": able});
    let call = modern(app, path, "tools/call", params).send().await;
    call.answer().await
}

fn elicits() -> Value {
    call("mcp_x_elicit", json!({"message": "q"}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_c7_one_users_questions_take_no_slot_from_others() {
    let definition = json!({"command": fixture(), "args": ["--era", "legacy"],
        "isolation": "principal"});
    let app = portway(definition, &[]).await;
    let [greedy, modest] = users(&app);
    let keys = (0..SLOTS / 4 + 2).map(|at| key_of(&greedy, format!("key {at}")));
    let mut paths = Vec::new();
    for key in join_all(keys).await {
        paths.push(format!("/api/v1/mcp_v2/server/{key}"));
    }
    let others = key_of(&modest, "other".to_owned()).await;
    let others = format!("/api/v1/mcp_v2/server/{others}");
    let able = json!({"elicitation": {}});
    let open = called(&app, &others, able.clone(), elicits()).await;
    let kinds = [
        able.clone(),
        json!({"elicitation": {}, "sampling": {}}),
        json!({"elicitation": {}, "roots": {}}),
        json!({"elicitation": {}, "roots": {}, "sampling": {}}),
    ];
    let mut full = 0;
    for (at, path) in paths.iter().enumerate() {
        if at == SLOTS / 4 {
            full = app.children().len();
        }
        let asked = kinds
            .iter()
            .map(|able| called(&app, path, able.clone(), elicits()));
        for answer in join_all(asked).await {
            // Their own oldest questions give way.
            assert!(answer["result"]["inputRequests"].is_object(), "{answer:#}");
        }
    }
    let few = || app.children().len() <= full;
    eventually("one user has no more than their share", few).await;
    let mut params = elicits();
    params["requestState"] = open["result"]["requestState"].clone();
    for key in open["result"]["inputRequests"].as_object().unwrap().keys() {
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        params["inputResponses"][key] = answer;
    }
    let answer = called(&app, &others, able.clone(), params).await;
    assert!(said(&answer).contains("Ada"), "{answer:#}");
    let echo = call("echo", json!({"text": "hi"}));
    assert_eq!(said(&called(&app, X, able, echo).await), "hi");
}

#[tokio::test]
async fn t_k3_one_users_streams_leave_others_their_connections() {
    let limit = [("PORTWAY_MAX_CONNECTIONS", "8")];
    let app = portway(json!({"command": fixture()}), &limit).await;
    let [greedy, modest] = users(&app);
    let mut keys = Vec::new();
    for at in 0..3 {
        keys.push(key_of(&greedy, format!("key {at}")).await);
    }
    let others = key_of(&modest, "other".to_owned()).await;
    let mut streams = Vec::new();
    for at in 0..4 {
        streams.push(hung_up::listen(&app, &keys[at % 3]).await);
    }
    let status = async |key: &str| {
        let path = format!("/api/v1/mcp_v2/server/{key}");
        let list = modern(&app, &path, "tools/list", json!({}));
        list.send().await.status
    };
    for key in &keys {
        assert_eq!(status(key).await, 503, "half of all is theirs, together");
    }
    assert_eq!(status(&others).await, 200);
    let catalog = greedy.send("GET", "/api/v1/catalog", None).await;
    assert_eq!(catalog.status, 503, "by their token, too");
    let catalog = modest.send("GET", "/api/v1/catalog", None).await;
    assert_eq!(catalog.status, 200);
}
