//! SPEC E2: what can be bound, what is not there, and the servers that users
//! may bind.

use serde_json::json;

use super::owners::{SECRET, users};
use super::*;
use crate::app::fixtures;
use crate::e_records::{BOUND, ENTRIES, each, on_each_store, refused};
use crate::mcp_front::until;

on_each_store!(
    e2_what_is_not_there_is_refused_with_the_nearest_names,
    e2_users_see_and_bind_only_what_is_open_to_them,
);

const CATALOG: &str = "/api/v1/catalog";

#[track_caller]
fn problem(answer: HttpAnswer) -> (String, String) {
    let body = refused(answer, 422, "VALIDATION_ERROR");
    let details = &body["details"][0];
    let (field, message) = (text(&details["field"]), text(&details["message"]));
    (field.to_owned(), message.to_owned())
}

async fn e2_what_is_not_there_is_refused_with_the_nearest_names(storage: Storage) {
    let app = with_fixtures(storage, &[("files", &[]), ("github", &[])]).await;
    let record = |server: &str, tool: &str| json!({"name": "t", "server": server, "tool": tool});
    for (server, tool, field, near) in [
        ("fils", "echo", "server", "\"files\""),
        ("GitHub", "echo", "server", "\"github\""),
        ("files", "ecko", "tool", "\"echo\""),
        ("nothing like it", "echo", "server", "there is no server"),
    ] {
        let (wrong, message) = problem(app.post(TOOLS, record(server, tool)).await);
        assert_eq!(wrong, field, "{message}");
        assert!(
            message.contains(near) && message.contains("allow_missing"),
            "{message}"
        );
    }
    assert_eq!(app.total(TOOLS).await, 0);
    let good = app.post(TOOLS, record("files", "echo")).await.expect(201);
    assert_eq!(good["missing"], Value::Null);
    let place = format!("{TOOLS}/{}", good["id"]);
    let (wrong, _) = problem(app.patched(&place, json!({"tool": "ecko"})).await);
    assert_eq!(wrong, "tool");
    let later = json!({"tool": "ecko", "allow_missing": true});
    let later = app.patched(&place, later).await.expect(200);
    assert_eq!(later["missing"], "tool");
    let back = app.patched(&place, json!({"tool": "echo"})).await;
    assert_eq!(back.expect(200)["missing"], Value::Null);

    let exposing = |server: &str| json!({"name": "e", "exposes": {"resources": ["files", server]}});
    let (wrong, message) = problem(app.post(ENTRIES, exposing("fils")).await);
    assert_eq!(wrong, "exposes.resources[1]");
    assert!(message.contains("\"files\""), "{message}");
    let mut missing = exposing("fils");
    missing["allow_missing"] = json!(true);
    app.post(ENTRIES, missing).await.expect(201);
    let made = app.post(ENTRIES, exposing("github")).await.expect(201);
    let entry = format!("{ENTRIES}/{}", made["id"]);
    let change = json!({"exposes": {"prompts": ["fils"]}});
    assert_eq!(
        problem(app.patched(&entry, change).await).0,
        "exposes.prompts[0]"
    );

    // A target that goes is marked, in every answer that has the record.
    let bindings = format!("{entry}/bindings");
    let bound = app.post(&bindings, json!({"tool_id": good["id"]})).await;
    assert_eq!(bound.expect(201)["missing"], Value::Null);
    app.act("files", "stop").await;
    let stopped = app.get(&place).await.expect(200);
    assert_eq!(stopped["missing"], Value::Null, "it may come back");
    let (_, message) = problem(app.post(TOOLS, record("files", "echo")).await);
    assert!(message.contains("is not connected"), "{message}");
    let renamed = json!({"mcpServers": {"github": {"command": crate::app::fixture()}}});
    std::fs::write(app.path(".mcp.json"), renamed.to_string()).unwrap();
    let gone = || async { app.get(&place).await.expect(200)["missing"] == "server" };
    until("the server is gone", gone).await;
    let listed = app.get(TOOLS).await.expect(200);
    assert_eq!(each(&listed, "missing"), ["server"]);
}

async fn e2_users_see_and_bind_only_what_is_open_to_them(storage: Storage) {
    let open = |servers: &[&str]| json!({"userServers": servers}).to_string();
    let app = storage
        .setup()
        .mcp(fixtures(&[("files", &[]), ("secret", &[])]))
        .env("SUPABASE_JWT_SECRET", SECRET)
        // The file decides where it says anything.
        .env("SUPABASE_USER_SERVERS", "secret")
        .file(".portway.json", open(&["fil*"]))
        .start()
        .await;
    for name in ["files", "secret"] {
        app.until_status(name, "connected").await;
    }
    let [ann, _] = users(&app);
    let seen = ann.send("GET", CATALOG, None).await.expect(200);
    assert!(!seen.to_string().contains("secret"), "{seen}");
    let servers = json!([{"name": "files", "connected": true, "tools": seen["total"]}]);
    assert_eq!(seen["servers"], servers);
    let path = format!("{CATALOG}?server=files&search=files:echo&limit=1");
    let echo = ann.send("GET", &path, None).await.expect(200);
    assert_eq!(echo["items"][0]["key"], "files:echo");
    assert!(echo["items"][0]["description"].is_string(), "{echo}");
    assert_eq!(echo["items"][0]["inputSchema"]["type"], "object");
    let second = format!("{CATALOG}?skip=1&limit=1");
    let second = ann.send("GET", &second, None).await.expect(200);
    assert_eq!(second["items"][0], seen["items"][1]);
    assert_eq!(second["total"], seen["total"]);
    let all = app.get(CATALOG).await.expect(200);
    assert_eq!(all["servers"].as_array().unwrap().len(), 3, "with portway");

    let record = |server: &str| json!({"name": "say", "server": server, "tool": "echo", "allow_missing": true});
    for server in ["secret", "none"] {
        let answer = ann.send("POST", TOOLS, Some(record(server))).await;
        let (field, message) = problem(answer);
        assert_eq!(field, "server");
        let words = format!("{server:?} is not among the servers that users may bind");
        assert!(message.starts_with(&words), "{message}");
    }
    let exposing = json!({"name": "e", "exposes": {"resources": ["secret"]}});
    problem(ann.send("POST", ENTRIES, Some(exposing)).await);

    let tool = ann.made(TOOLS, record("files")).await;
    let entry = json!({"name": "hers", "bindings": [{"tool_id": tool["id"]}],
        "exposes": {"resources": ["files"]}});
    let entry = ann.made(BOUND, entry).await;
    let own = app.tool_of("say", "secret", "echo").await;
    let admins = app.new_entry("admin's", &[own]).await;
    for way in WAYS {
        let agent = Agent::new(&app, text(&entry["api_key"]), way).await;
        assert_eq!(agent.names().await, ["say"]);
        let answer = agent.call("say", json!({"text": "hello"})).await;
        assert_eq!(told(&answer), "hello");
    }

    // Taken off the list, the server serves no user's entry any more.
    std::fs::write(app.path(".portway.json"), open(&["other"])).unwrap();
    let agent = Agent::new(&app, text(&entry["api_key"]), WAYS[0]).await;
    until("the server is closed", || async {
        agent.names().await.is_empty()
    })
    .await;
    for way in WAYS {
        let agent = Agent::new(&app, text(&entry["api_key"]), way).await;
        let answer = agent.call("say", json!({"text": "hello"})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer:#}");
        let list = agent.ask("resources/list", json!({})).await;
        assert_eq!(list["result"]["resources"], json!([]), "{list:#}");
        let read = json!({"uri": "portway://files/fixture://text"});
        let read = agent.ask("resources/read", read).await;
        assert!(read["error"].is_object(), "{read:#}");
        // The admin's entries go on.
        let agent = Agent::new(&app, text(&admins["api_key"]), way).await;
        assert_eq!(told(&agent.call("say", json!({"text": "on"})).await), "on");
    }
    let place = format!("{TOOLS}/{}", tool["id"]);
    let marked = ann.send("GET", &place, None).await.expect(200);
    assert_eq!(marked["missing"], "closed");
    let again = json!({"name": "more", "bindings": [{"tool_id": tool["id"]}]});
    let (field, _) = problem(ann.send("POST", BOUND, Some(again)).await);
    assert_eq!(field, "bindings[0].tool_id");
}
