//! SPEC A1, G3: what a registration may say, and that a wrong one leaves no
//! trace.

use serde_json::{Value, json};

use crate::app::{App, fixture, fixtures, setup};

#[tokio::test]
async fn a1_register_returns_201_and_the_full_record() {
    let app = setup().start().await;
    let body = json!({
        "name": "one", "command": fixture(), "args": ["--era", "legacy"],
        "env": {"TOKEN": "s3cret-value"}, "timeout": 5000,
    });
    let answer = app.post("/api/mcp/servers", body).await;
    let place = answer.headers["location"].to_str().unwrap().to_owned();
    let record = answer.expect(201);
    let id = record["id"].as_str().unwrap();
    assert!(uuid::Uuid::try_parse(id).is_ok());
    assert_eq!(place, format!("/api/mcp/servers/{id}"));
    assert_eq!(record["name"], "one");
    assert_eq!(record["transport"], "stdio");
    assert_eq!(record["enabled"], true);
    assert_eq!(record["config"]["command"], fixture());
    assert_eq!(record["config"]["args"], json!(["--era", "legacy"]));
    assert_eq!(record["config"]["timeout"], 5000);
    assert_eq!(record["config"]["env"], json!({"TOKEN": "***"}));
    assert_eq!(app.get(&place).await.expect(200)["name"], "one");

    // By its name too, and it comes up without being asked again.
    assert_eq!(app.until_status("one", "connected").await["id"], id);
    let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["mcpServers"]["one"]["env"]["TOKEN"], "s3cret-value");
}

#[tokio::test]
async fn a1_a_name_that_is_taken_is_409_naming_it() {
    let app = setup().start().await;
    let body = json!({"name": "one", "command": fixture(), "autoStart": false});
    app.post("/api/mcp/servers", body.clone()).await.expect(201);
    let before = Trace::of(&app).await;
    let clash = app.post("/api/mcp/servers", body).await.expect(409);
    assert_eq!(clash["error"]["code"], "CONFLICT");
    let message = clash["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"one\""), "{message}");
    assert_eq!(clash["error"]["details"][0]["field"], "name");
    assert_eq!(Trace::of(&app).await, before);
}

#[tokio::test]
async fn a1_auto_start_false_leaves_it_stopped() {
    let app = setup().start().await;
    let body = json!({"name": "later", "command": fixture(), "autoStart": false});
    let record = app.post("/api/mcp/servers", body).await.expect(201);
    assert_eq!(
        (&record["state"], &record["enabled"], &record["pid"]),
        (&json!("stopped"), &json!(true), &Value::Null)
    );
    let disabled = json!({"name": "off", "command": fixture(), "enabled": false});
    let record = app.post("/api/mcp/servers", disabled).await.expect(201);
    assert_eq!(record["state"], "stopped");
    assert_eq!(app.act("later", "start").await["status"], "connected");
    assert_eq!(app.act("off", "start").await["status"], "connected");
}

/// All that a registration could leave behind.
#[derive(Debug, PartialEq)]
struct Trace {
    listed: Vec<Value>,
    file: Vec<u8>,
    /// Whether the new name is on disk.
    store: bool,
}

/// What the store has on disk.
fn stored(app: &App) -> String {
    let files = ["data/mcp_instances.json", "data/mcp_instances.journal"];
    let text = |file| std::fs::read_to_string(app.path(file)).unwrap_or_default();
    files.map(text).concat()
}

impl Trace {
    async fn of(app: &App) -> Trace {
        Trace {
            listed: app.list().await,
            file: std::fs::read(app.path(".mcp.json")).unwrap(),
            store: stored(app).contains("\"new\""),
        }
    }
}

/// Each wrong body, and the field that its answer must name.
fn wrong() -> Vec<(Value, &'static str)> {
    let long = "x".repeat(300);
    let stdio = |fields: Value| with(json!({"name": "new", "command": fixture()}), fields);
    let remote = |fields: Value| with(json!({"name": "new", "url": "http://127.0.0.1:1/"}), fields);
    let mut table = vec![
        (json!({"command": fixture()}), "name"),
        (json!({"name": "new"}), "command"),
        (json!({"name": "new", "type": "stdio"}), "command"),
        (json!({"name": "new", "type": "http"}), "url"),
        (json!({"name": "new", "transport": "sse"}), "url"),
        (stdio(json!({"command": 5})), "command"),
        (stdio(json!({"command": ""})), "command"),
        (stdio(json!({"command": "a\0b"})), "command"),
        (stdio(json!({"command": []})), "command"),
        (stdio(json!({"command": ["sh", 5]})), "command[1]"),
        (stdio(json!({"command": ["sh"], "args": "-c"})), "args"),
        (stdio(json!({"args": "--version"})), "args"),
        (stdio(json!({"args": ["a", 7]})), "args[1]"),
        (stdio(json!({"args": ["a\0b"]})), "args[0]"),
        (stdio(json!({"env": ["A=1"]})), "env"),
        (stdio(json!({"env": {"A": 1}})), "env.A"),
        (stdio(json!({"env": {"A=B": "1"}})), "env.A=B"),
        (stdio(json!({"env": {"A": "a\0b"}})), "env.A"),
        (stdio(json!({"env": {"A": "***"}})), "env.A"),
        (stdio(json!({"environment": {"A": 1}})), "environment.A"),
        (stdio(json!({"env": {}, "environment": {}})), "environment"),
        (stdio(json!({"cwd": 5})), "cwd"),
        (stdio(json!({"cwd": ""})), "cwd"),
        (stdio(json!({"headers": {"X-A": "1"}})), "headers"),
        (stdio(json!({"url": "http://127.0.0.1:1/"})), "url"),
        (stdio(json!({"type": "carrier-pigeon"})), "type"),
        (stdio(json!({"type": 5})), "type"),
        (stdio(json!({"transport": "ws"})), "transport"),
        (
            stdio(json!({"type": "stdio", "transport": "sse"})),
            "transport",
        ),
        (stdio(json!({"type": "http"})), "url"),
        (stdio(json!({"enabled": "yes"})), "enabled"),
        (stdio(json!({"disabled": 1})), "disabled"),
        (
            stdio(json!({"enabled": true, "disabled": true})),
            "disabled",
        ),
        (stdio(json!({"timeout": "5s"})), "timeout"),
        (stdio(json!({"timeout": 0})), "timeout"),
        (stdio(json!({"timeout": -1})), "timeout"),
        (stdio(json!({"timeout": 1.5})), "timeout"),
        (stdio(json!({"timeout": 86_400_001})), "timeout"),
        (stdio(json!({"era": "future"})), "era"),
        (stdio(json!({"era": 1})), "era"),
        (stdio(json!({"containment": "jail"})), "containment"),
        (stdio(json!({"isolation": "none"})), "isolation"),
        (stdio(json!({"autoStart": "no"})), "autoStart"),
        (stdio(json!({"colour": "red"})), "colour"),
        (stdio(json!({"comand": "typo"})), "comand"),
        (remote(json!({"url": 5})), "url"),
        (remote(json!({"url": ""})), "url"),
        (remote(json!({"url": "no url"})), "url"),
        (remote(json!({"url": "file:///etc/passwd"})), "url"),
        (remote(json!({"url": "http://"})), "url"),
        (remote(json!({"headers": []})), "headers"),
        (remote(json!({"headers": {"X-A": 1}})), "headers.X-A"),
        (remote(json!({"headers": {"X A": "1"}})), "headers.X A"),
        (
            remote(json!({"headers": {"X-A": "a\r\nB: c"}})),
            "headers.X-A",
        ),
        (
            remote(json!({"headers": {"Content-Length": "1"}})),
            "headers.Content-Length",
        ),
        (remote(json!({"args": []})), "args"),
        (remote(json!({"env": {}})), "env"),
        (remote(json!({"cwd": "/"})), "cwd"),
        (remote(json!({"command": "sh"})), "url"),
    ];
    for name in [
        "../../x", "a/b", "a\0b", "%2e%2e", "", " a", "a:b", "-a", ".a", &long,
    ] {
        table.push((stdio(json!({"name": name})), "name"));
    }
    let uuid = "0c629874-d319-41f2-9582-e95f6f639a27";
    for name in [json!(uuid), json!(5), json!(["a"]), Value::Null] {
        table.push((stdio(json!({"name": name})), "name"));
    }
    table
}

fn with(mut body: Value, fields: Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    body
}

#[tokio::test]
async fn a1_every_wrong_field_is_422_naming_it_and_leaves_no_trace() {
    let app = setup()
        .file(
            ".mcp.json",
            "// mine\n{\"mcpServers\": {\"old\": {\"command\": \"sh\", \"disabled\": true}}}\n",
        )
        .start()
        .await;
    app.until_status("old", "disconnected").await;
    let before = Trace::of(&app).await;
    for (body, field) in wrong() {
        let answer = app.post("/api/mcp/servers", body.clone()).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.text);
        let error = &answer.body["error"];
        assert_eq!(error["code"], "VALIDATION_ERROR", "{body}");
        let named = error["details"].as_array().unwrap().iter();
        let named: Vec<&str> = named.map(|one| one["field"].as_str().unwrap()).collect();
        assert!(named.contains(&field), "{body}: {error:#}");
        assert!(
            error["message"].as_str().unwrap().contains(named[0]),
            "{body}"
        );
        assert_eq!(Trace::of(&app).await, before, "{body}");
    }
}

#[tokio::test]
async fn a1_several_wrong_fields_are_told_at_once() {
    let app = setup().start().await;
    let body = json!({"name": "a/b", "command": 5, "timeout": 0, "autoStart": "x"});
    let error = app.post("/api/mcp/servers", body).await.expect(422);
    let details = error["error"]["details"].as_array().unwrap().iter();
    let mut fields: Vec<&str> = details.map(|one| one["field"].as_str().unwrap()).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["autoStart", "command", "name", "timeout"]);
}

#[tokio::test]
async fn a1_g3_what_is_no_json_object_is_400_and_leaves_no_trace() {
    let app = setup().file(".mcp.json", "{}").start().await;
    let before = Trace::of(&app).await;
    let deep = "{\"a\":".repeat(5000);
    let twice = r#"{"name":"a","name":"b","command":"sh"}"#;
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("null", 400),
        ("[]", 400),
        ("\"x\"", 400),
        ("{} {}", 400),
        ("{'name': 'a'}", 400),
        ("{/* no */}", 400),
        (deep.as_str(), 400),
        (twice, 422),
    ] {
        let answer = app.send("POST", "/api/mcp/servers", Some(body.to_owned()));
        let answer = answer.await;
        assert_eq!(answer.status, status, "{body:.80}: {}", answer.text);
        let code = if status == 400 {
            "BAD_REQUEST"
        } else {
            "VALIDATION_ERROR"
        };
        assert_eq!(answer.body["error"]["code"], code, "{body:.80}");
        assert_eq!(Trace::of(&app).await, before, "{body:.80}");
    }
}

#[tokio::test]
async fn a1_a_file_that_cannot_be_edited_leaves_no_trace() {
    let app = setup().file(".mcp.json", "{ not json").start().await;
    let body = json!({"name": "one", "command": fixture()});
    let error = app.post("/api/mcp/servers", body.clone()).await.expect(409);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains(".mcp.json"), "{message}");
    assert!(app.list().await.is_empty());
    assert_eq!(std::fs::read(app.path(".mcp.json")).unwrap(), b"{ not json");
    // What was begun and given up may stand in the journal until the next
    // snapshot, which a start has behind it.
    let app = app.again().await;
    let after = stored(&app);
    assert!(!after.contains("\"one\""), "{after}");

    // Mended, the same request goes through.
    std::fs::write(app.path(".mcp.json"), "{}").unwrap();
    app.post("/api/mcp/servers", body).await.expect(201);
}

#[tokio::test]
async fn a1_a_name_that_was_freed_by_hand_can_be_registered_again() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.act("one", "stop").await;
    std::fs::write(app.path(".mcp.json"), "{}").unwrap();
    let app = app.again().await;
    assert!(app.list().await.is_empty());
    let body = json!({"name": "one", "command": fixture()});
    app.post("/api/mcp/servers", body).await.expect(201);
    // The stop was of its former life.
    app.until_status("one", "connected").await;
}
