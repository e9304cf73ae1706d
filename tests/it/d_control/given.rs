//! Who gets the tools through an entry: only whom the admin gave them to.

use serde_json::{Value, json};

use super::AdminClient;
use crate::app::{App, fixture, fixtures};
use crate::e_door::users::project::{now, sign_with};
use crate::e_records::{BOUND, Storage, TOOLS, number, on_each_store, text};
use crate::mcp_front::{call, until};

on_each_store!(
    d9_an_entry_has_only_what_was_bound_on_purpose,
    d9_a_user_never_gets_them,
);

const SECRET: &str = "the-legacy-secret-of-a-project-0123";

async fn tool(app: &App, name: &str, server: &str, tool: &str) -> i64 {
    let body = json!({"name": name, "server": server, "tool": tool});
    number(&app.post(TOOLS, body).await.expect(201)["id"])
}

fn path(entry: &Value) -> String {
    format!("/api/v1/mcp_v2/server/{}", text(&entry["api_key"]))
}

async fn d9_an_entry_has_only_what_was_bound_on_purpose(storage: Storage) {
    let setup = storage.setup().mcp(fixtures(&[("one", &[])]));
    let app = setup.start().await;
    app.until_status("one", "connected").await;
    let echo = tool(&app, "echo", "one", "echo").await;
    let plain = app.new_entry("plain", &[echo]).await;
    let plain = path(&plain);
    for client in AdminClient::both(&app, &plain).await {
        assert_eq!(client.names().await, ["echo"]);
        for name in [
            "mcp_portway_list_servers",
            "list_servers",
            "portway:list_servers",
        ] {
            let refused = client.ask("tools/call", call(name, json!({}))).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
        }
    }
    let look = tool(&app, "look", "portway", "list_servers").await;
    let halt = tool(&app, "halt", "portway", "stop_server").await;
    let made = app.new_entry("operator", &[look, halt]).await;
    let operator = path(&made);
    for client in AdminClient::both(&app, &operator).await {
        assert_eq!(client.names().await, ["halt", "look"]);
        let listed = client.did("look", json!({})).await;
        assert_eq!(listed["servers"][0]["name"], "one");
        let stopped = client.did("halt", json!({"server": "one"})).await;
        assert_eq!(stopped["state"], "stopped");
        app.act("one", "start").await;
        let refused = client.refused("halt", json!({"server": "no"})).await;
        assert!(refused.contains("no server is called"), "{refused}");
        // Not one of the others.
        for name in ["start_server", "mcp_portway_start_server", "list_servers"] {
            let refused = client.ask("tools/call", call(name, json!({}))).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
        }
    }
    // Taken back, it is gone with the next request.
    let binding = format!("/api/v1/mcp_v2/{}/bindings/{halt}", made["id"]);
    app.patched(&binding, json!({"status": false}))
        .await
        .expect(200);
    let client = AdminClient::Modern(&app, &operator);
    assert_eq!(client.names().await, ["look"]);
    let refused = client.ask("tools/call", call("halt", json!({"server": "one"})));
    assert_eq!(refused.await["error"]["code"], -32602);
    assert_eq!(app.server("one").await["state"], "running");
}

async fn d9_a_user_never_gets_them(storage: Storage) {
    let app = storage
        .setup()
        .mcp(fixtures(&[("one", &[])]))
        .env("SUPABASE_JWT_SECRET", SECRET)
        .env("SUPABASE_USER_SERVERS", "*")
        .start()
        .await;
    let claims = json!({"aud": "authenticated", "role": "authenticated",
        "sub": "0b7f6e52-9a4c-4a5b-8f5e-1f0e6a3c2d11", "exp": now() + 600});
    let token = sign_with(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims);
    let bearer = format!("Bearer {token}");
    let ask = |path: &'static str, body: Value| {
        let (app, bearer) = (&app, &bearer);
        async move {
            let headers = [("authorization", bearer.as_str())];
            app.request("POST", path, Some(body.to_string()), &headers)
                .await
        }
    };
    let wanted = json!({"name": "echo", "server": "portway", "tool": "list_servers",
        "allow_missing": true});
    let refused = ask(TOOLS, wanted.clone()).await.expect(422);
    assert_eq!(refused["error"]["code"], "VALIDATION_ERROR");
    let why = refused["error"]["message"].to_string();
    assert!(why.contains("server: is Portway itself"), "{why}");

    // A server that only has the name is theirs to use; when it goes, what
    // takes its place is not.
    let body = json!({"name": "portway", "command": fixture()});
    app.post("/api/mcp/servers", body).await.expect(201);
    app.until_status("portway", "connected").await;
    let record = ask(TOOLS, wanted).await.expect(201);
    let entry = json!({"name": "hers", "bindings": [{"tool_id": record["id"]}]});
    let entry = path(&ask(BOUND, entry).await.expect(201));
    app.delete("portway").await.expect(204);
    let admin = AdminClient::Modern(&app, "/mcp");
    let back = || async {
        admin
            .names()
            .await
            .iter()
            .any(|name| name == "mcp_portway_list_servers")
    };
    until("the admin has them again", back).await;
    for client in AdminClient::both(&app, &entry).await {
        assert!(client.names().await.is_empty());
        let refused = client.ask("tools/call", call("echo", json!({}))).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    }
}
