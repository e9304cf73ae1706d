//! SPEC B1 to B5: what the files may say, and what Portway makes of it.

use serde_json::{Value, json};

use crate::app::{App, eventually, fixture, fixtures, pid, setup};

fn servers(servers: Value) -> Value {
    json!({ "mcpServers": servers })
}

/// The environment of a running server, as the kernel knows it.
fn environment(record: &Value) -> Vec<String> {
    let raw = std::fs::read(format!("/proc/{}/environ", pid(record))).unwrap();
    let variables = raw.split(|byte| *byte == 0);
    variables
        .map(|one| String::from_utf8_lossy(one).into_owned())
        .collect()
}

async fn sources(app: &App) -> Vec<Value> {
    let sources = app.get("/api/mcp/sources").await.expect(200);
    sources.as_array().unwrap().clone()
}

#[tokio::test]
async fn b1_every_shape_of_a_server_is_read() {
    let url = "http://127.0.0.1:9/mcp";
    let app = setup().mcp(servers(json!({
        "bare": {"command": fixture()},
        "full": {"transport": "stdio", "command": fixture(), "args": ["--name", "full"],
                 "env": {"A": "b"}, "cwd": "inner", "timeout": 1234, "enabled": true},
        "typed": {"type": "stdio", "command": fixture(), "disabled": false},
        "http": {"type": "http", "url": url, "headers": {"X-A": "b"}, "enabled": false},
        "sse": {"transport": "sse", "url": url, "disabled": true},
        "url": {"url": url, "enabled": false},
        "both": {"type": "http", "transport": "http", "url": url, "disabled": true},
        "foreign": {"command": fixture(), "alwaysLoad": true, "gallery": {"x": 1}},
    })));
    std::fs::create_dir(app.path().join("inner")).unwrap();
    let app = app.start().await;
    for name in ["bare", "full", "typed", "foreign"] {
        let record = app.until_status(name, "connected").await;
        assert_eq!(record["transport"], "stdio", "{name}");
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", pid(&record))).unwrap();
        assert_eq!(cwd.ends_with("inner"), name == "full", "{name}: {cwd:?}");
    }
    let full = app.server("full").await;
    assert_eq!(full["config"]["timeout"], 1234);
    assert_eq!(full["serverInfo"]["name"], "full");
    assert!(environment(&full).contains(&"A=b".to_owned()));
    for (name, kind) in [
        ("http", "http"),
        ("sse", "sse"),
        ("url", "http"),
        ("both", "http"),
    ] {
        let record = app.server(name).await;
        assert_eq!(
            (&record["transport"], &record["enabled"], &record["state"]),
            (&json!(kind), &json!(false), &json!("stopped")),
            "{name}"
        );
        assert_eq!(record["config"]["url"], url);
    }
    assert!(!app.log().contains("ERROR"), "{}", app.log());
}

#[tokio::test]
async fn b1_what_is_written_carries_type_and_transport() {
    let app = setup().start().await;
    let stdio = json!({"name": "a", "command": fixture(), "enabled": false});
    app.post("/api/mcp/servers", stdio).await.expect(201);
    let remote = json!({"name": "b", "url": "http://127.0.0.1:9/mcp", "enabled": false});
    app.post("/api/mcp/servers", remote).await.expect(201);
    let file = std::fs::read(app.path(".mcp.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(
        file,
        servers(json!({
            "a": {"type": "stdio", "transport": "stdio", "command": fixture(), "enabled": false},
            "b": {"type": "http", "transport": "http", "url": "http://127.0.0.1:9/mcp",
                  "enabled": false},
        }))
    );
}

#[tokio::test]
async fn b5_the_shape_of_document_004_is_accepted_everywhere() {
    let local = json!({
        "type": "local", "command": [fixture(), "--name", "four"],
        "environment": {"A": "b"}, "enabled": true, "timeout": 4000,
    });
    let remote = json!({
        "type": "remote", "url": "http://127.0.0.1:9/mcp",
        "headers": {"Authorization": "Bearer abcdefgh"}, "enabled": false,
    });
    let file = servers(json!({"local": local, "remote": remote}));
    let home = json!({"mcpServers": {"kode": local}});
    let app = setup()
        .mcp(file.clone())
        .file(".kode.json", home.to_string())
        .start()
        .await;
    let mut registered = local.clone();
    registered["name"] = json!("api");
    app.post("/api/mcp/servers", registered).await.expect(201);
    for name in ["local", "kode", "api"] {
        let record = app.until_status(name, "connected").await;
        assert_eq!(record["config"]["args"], json!(["--name", "four"]));
        assert_eq!(record["config"]["timeout"], 4000);
        assert_eq!(record["serverInfo"]["name"], "four");
        assert!(environment(&record).contains(&"A=b".to_owned()));
    }
    let record = app.server("remote").await;
    assert_eq!(record["transport"], "http");
    assert_eq!(record["config"]["headers"]["Authorization"], "***");

    // Its shape stays its shape.
    app.patch("local", json!({"args": ["--name", "five"]}))
        .await
        .expect(200);
    let text = std::fs::read(app.path(".mcp.json")).unwrap();
    let changed: Value = serde_json::from_slice(&text).unwrap();
    let mut expected = local.clone();
    expected["command"] = json!([fixture(), "--name", "five"]);
    assert_eq!(changed["mcpServers"]["local"], expected);
    assert_eq!(changed["mcpServers"]["remote"], remote);
}

#[tokio::test]
async fn b2_references_are_filled_in_at_connect_time_and_shown_nowhere() {
    let canary = "canary-5f2e9c71";
    let app = setup()
        .env("CANARY", canary)
        .env("FIXTURE", &fixture())
        .mcp(servers(json!({
            "one": {"command": "${FIXTURE}", "args": ["--stderr", "I know ${CANARY}"],
                    "env": {"TOKEN": "${CANARY}", "NAME": "${UNSET:-anon}", "EMPTY": "${UNSET:-}",
                            "PLAIN": "$CANARY", "NESTED": "${UNSET:-${CANARY}}"}},
            "bad": {"command": "${CANARY}"},
            "far": {"url": "http://127.0.0.1:9/${CANARY}", "headers": {"X-Key": "${CANARY}"}},
        })))
        .start()
        .await;
    let one = app.until_status("one", "connected").await;
    let env = environment(&one);
    for variable in [
        format!("TOKEN={canary}"),
        "NAME=anon".into(),
        "EMPTY=".into(),
        "PLAIN=$CANARY".into(),
    ] {
        assert!(env.contains(&variable), "{variable}: {env:?}");
    }
    assert!(!env.contains(&format!("NESTED={canary}")), "{env:?}");
    assert_eq!(one["config"]["env"]["TOKEN"], "${CANARY}");
    assert_eq!(one["config"]["command"], "${FIXTURE}");
    app.until_status("bad", "error").await;
    app.until_status("far", "error").await;
    app.patch("one", json!({"timeout": 4000})).await.expect(200);
    app.post(
        "/api/mcp/plan",
        json!({"name": "one", "command": "${CANARY}"}),
    )
    .await
    .expect(200);

    let mut seen = vec![std::fs::read_to_string(app.path(".mcp.json")).unwrap()];
    for path in [
        "servers",
        "servers/one",
        "servers/one/logs",
        "servers/bad",
        "servers/bad/logs",
        "servers/far",
        "servers/far/logs",
        "sources",
    ] {
        seen.push(app.get(&format!("/api/mcp/{path}")).await.text);
    }
    seen.extend([app.log(), app.said()]);
    for text in &seen {
        assert!(!text.contains(canary), "{text}");
    }
    assert!(seen[0].contains("${CANARY}") && seen[3].contains("I know ***"));
}

#[tokio::test]
async fn b2_an_unset_variable_is_an_error_of_that_server_naming_it() {
    let app = setup()
        .mcp(servers(json!({
            "wants": {"command": fixture(), "env": {"TOKEN": "${MISSING_ONE}"},
                      "args": ["--name", "${MISSING_TWO}"]},
            "fine": {"command": fixture()},
        })))
        .start()
        .await;
    app.until_status("fine", "connected").await;
    let record = app.until_status("wants", "error").await;
    let error = record["error"].as_str().unwrap();
    for part in ["env.TOKEN", "MISSING_ONE", "args[1]", "MISSING_TWO"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let mend = json!({"env": {"TOKEN": "${MISSING_ONE:-x}"}, "args": []});
    app.patch("wants", mend).await.expect(200);
    app.until_status("wants", "connected").await;
}

#[tokio::test]
async fn b3_no_file_is_no_error() {
    let app = setup().start().await;
    assert!(app.list().await.is_empty());
    assert!(sources(&app).await.is_empty());
    assert!(!app.log().contains("ERROR") && !app.log().contains("WARN"));
}

#[tokio::test]
async fn b3_a_file_that_is_not_json_is_told_and_loaded_once_it_is() {
    let broken = "{\n  \"mcpServers\": {\n    \"one\": {\"command\": \n  }\n}\n";
    let app = setup().file(".mcp.json", broken).start().await;
    assert!(app.list().await.is_empty());
    let source = &sources(&app).await[0];
    let error = source["error"].as_str().unwrap();
    assert!(
        error.contains("not JSON") && error.contains("line 4"),
        "{error}"
    );
    eventually("it is told", || app.log().contains("cannot be used")).await;

    std::fs::write(app.path(".mcp.json"), fixtures(&[("one", &[])]).to_string()).unwrap();
    eventually("it can be used", || app.log().contains("can be used again")).await;
    app.until_status("one", "connected").await;
    assert_eq!(sources(&app).await[0]["error"], Value::Null);
}

#[tokio::test]
async fn b3_one_bad_server_costs_only_itself() {
    let text = format!(
        r#"{{
  "mcpServers": {{
    "good": {{"command": {0:?}}},
    "bad": {{
      "command": {0:?},
      "timeout": "soon"
    }},
    "a/b": {{"command": {0:?}}},
    "\u001b[31mred": {{"command": {0:?}, "env": {{"\u001b[32m": 7}}}},
    "late": {{"command": {0:?}}}
  }}
}}"#,
        fixture()
    );
    let app = setup().file(".mcp.json", text).start().await;
    for name in ["good", "late"] {
        app.until_status(name, "connected").await;
    }
    let bad = app.server("bad").await;
    assert_eq!(
        (&bad["status"], &bad["config"]),
        (&json!("error"), &Value::Null)
    );
    assert_eq!(
        (
            &bad["problems"][0]["field"],
            &bad["problems"][0]["line"],
            &bad["problems"][0]["server"]
        ),
        (&json!("timeout"), &json!(6), &json!("bad"))
    );
    assert!(bad["error"].as_str().unwrap().contains("timeout"));
    let list = app.list().await;
    let slash = list.iter().find(|record| record["name"] == "a/b").unwrap();
    assert_eq!(slash["problems"][0]["field"], "name");
    assert_eq!(slash["problems"][0]["line"], 8);
    let log = app.log();
    assert!(
        log.lines()
            .any(|line| line.contains("ERROR") && line.contains("\"bad\": timeout")),
        "{log}"
    );
    assert!(!log.contains('\u{1b}'), "{log:?}");
    assert!(!app.said().contains('\u{1b}'), "{:?}", app.said());
}

/// All four layers, each with one server of its own and one it shares.
async fn layered() -> App {
    let app = setup();
    let home = app.path().join("home");
    let project = app.path().canonicalize().unwrap();
    std::fs::create_dir(&home).unwrap();
    let off = |name: &str| json!({"command": name, "enabled": false});
    let global = json!({
        "theme": "dark",
        "mcpServers": {"global": off("g"), "all": off("g"), "pair": off("g")},
        "projects": {
            project.display().to_string(): {
                "history": ["x"],
                "mcpServers": {"section": off("s"), "all": off("s"), "pair": off("s"),
                               "broken": {"command": 7}},
            },
            "/somewhere/else": {"mcpServers": {"elsewhere": off("e")}},
        },
    });
    let global = serde_json::to_vec_pretty(&global).unwrap();
    std::fs::write(home.join(".kode.json"), global).unwrap();
    let kode = servers(json!({"project": off("p"), "all": off("p")}));
    app.env("HOME", home.to_str().unwrap())
        .file(".kode.json", kode.to_string())
        .mcp(servers(json!({"mcp": off("m"), "all": off("m")})))
        .start()
        .await
}

#[tokio::test]
async fn b4_the_layers_override_each_other_and_what_is_shadowed_is_said() {
    let app = layered().await;
    let root = app.path("").canonicalize().unwrap();
    let (mcp, kode) = (root.join(".mcp.json"), root.join(".kode.json"));
    let global = app.path("home/.kode.json");
    let path = |path: &std::path::Path| json!(path.display().to_string());
    for (name, command, source, shadows) in [
        ("global", "g", &global, vec![]),
        ("section", "s", &global, vec![]),
        ("pair", "s", &global, vec![&global]),
        ("project", "p", &kode, vec![]),
        ("mcp", "m", &mcp, vec![]),
        ("all", "m", &mcp, vec![&kode, &global, &global]),
    ] {
        let record = app.server(name).await;
        assert_eq!(record["config"]["command"], command, "{name}");
        assert_eq!(record["source"], path(source), "{name}");
        let told: Vec<Value> = shadows.iter().map(|one| path(one)).collect();
        let said = record["shadows"].as_array().cloned().unwrap_or_default();
        assert_eq!(said, told, "{name}");
    }
    app.get("/api/mcp/servers/elsewhere").await.expect(404);

    let told: Vec<(Value, Value, Value)> = sources(&app)
        .await
        .into_iter()
        .flat_map(|source| {
            let servers = source["servers"].as_array().unwrap().clone();
            servers.into_iter().map(move |server| {
                let (name, by) = (server["name"].clone(), server["shadowedBy"].clone());
                (source["kind"].clone(), name, by)
            })
        })
        .collect();
    for (kind, name, by) in [
        ("mcp", "all", Value::Null),
        ("kode-project", "all", path(&mcp)),
        ("kode-global-project", "all", path(&mcp)),
        ("kode-global", "all", path(&mcp)),
        ("kode-global", "pair", path(&global)),
        ("kode-global-project", "pair", Value::Null),
        ("kode-global-project", "broken", Value::Null),
    ] {
        let row = (json!(kind), json!(name), by);
        assert!(told.contains(&row), "{row:?} in {told:#?}");
    }
    let said = format!(
        "\"all\" of {} is shadowed by {}",
        kode.display(),
        mcp.display()
    );
    eventually("the log says so", || app.log().contains(&said)).await;
    let said = format!("is shadowed by {} (its section", global.display());
    eventually("the log says so", || app.log().contains(&said)).await;
}

#[tokio::test]
async fn b4_an_edit_goes_to_the_layer_that_holds_the_server() {
    let app = layered().await;
    let global = app.path("home/.kode.json");
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&global).unwrap()).unwrap() };
    let mut expected = read();
    let root = app.path("").canonicalize().unwrap().display().to_string();
    for (name, place) in [
        ("section", expected["projects"][&root]["mcpServers"].clone()),
        ("global", expected["mcpServers"].clone()),
    ] {
        assert!(place[name].is_object(), "{place}");
        app.patch(name, json!({"timeout": 77})).await.expect(200);
    }
    expected["projects"][&root]["mcpServers"]["section"]["timeout"] = json!(77);
    expected["mcpServers"]["global"]["timeout"] = json!(77);
    assert_eq!(read(), expected);

    // One by one the hidden definitions come forth.
    for command in ["p", "s", "g"] {
        assert_eq!(app.delete("all").await.status, 204);
        let record = app.server("all").await;
        assert_eq!(record["config"]["command"], command);
    }
    assert_eq!(app.delete("all").await.status, 204);
    app.get("/api/mcp/servers/all").await.expect(404);
}
