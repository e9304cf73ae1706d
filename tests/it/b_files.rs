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
