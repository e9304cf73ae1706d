//! SPEC G5: the document says what is there, and nothing else.

use std::time::Duration;

use serde_json::{Value, json};

use tokio::process::Command;

use crate::app::{App, PATIENCE, TOKEN, fixture, fixtures, setup};
use crate::process::forest::rounds;
use crate::tools::{installed, judge, tests};

/// Half a minute, where nothing else runs.
const LIMIT: Duration = Duration::from_secs(600);

/// Every GET that MCP does not define, with something to show.
async fn answers(app: &App, document: &Value) -> Vec<Value> {
    let tool = json!({"name": "add", "server": "one", "tool": "add"});
    let tool = app.post("/api/v1/tools", tool).await.expect(201);
    let bindings = json!([{"tool_id": tool["id"]}]);
    let entry = json!({"name": "e", "bindings": bindings, "exposes": {"prompts": ["one"]}});
    let entry = app.post("/api/v1/mcp_v2/with_bindings", entry).await;
    let entry = entry.expect(201);
    let old = json!({"name": "o", "colour": {"is": ["red"]}});
    let old = app.post("/api/v1/mcp", old).await.expect(201);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "add", "arguments": {"a": 1, "b": 2}}});
    app.post("/servers/one/mcp", call).await;
    let mut answers = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let shape = &item["get"]["responses"]["200"]["content"];
        if shape.is_null() {
            continue;
        }
        let key = match path.ends_with("/tools") {
            true => &entry["api_key"],
            false => &old["api_key"],
        };
        let id = match path.starts_with("/api/v1/tools") {
            true => &tool["id"],
            false => &entry["id"],
        };
        let asked = path.replace("{server}", "one");
        let asked = asked.replace("{id}", &id.to_string());
        let asked = asked.replace("{api_key}", key.as_str().unwrap());
        let asked = match path.as_str() {
            "/api/mcp/resources/read" => format!("{asked}?uri=portway://one/fixture://text"),
            "/api/mcp/servers/{server}/resources/read" => format!("{asked}?uri=fixture://text"),
            "/api/mcp/servers" => format!("{asked}?include=tools"),
            _ => asked,
        };
        let body = app.get(&asked).await.expect(200);
        answers.push(json!({"path": path, "body": body}));
    }
    answers
}

#[tokio::test]
async fn g5_answers_are_as_the_document_says() {
    let servers = json!({"mcpServers": {
        "one": {"command": fixture(), "env": {"TOKEN": "hidden"}},
        "off": {"url": "http://127.0.0.1:9/mcp", "enabled": false},
        "broken": {"command": 1},
    }});
    let app = setup().mcp(servers).start().await;
    app.until_status("one", "connected").await;
    let document = app.get("/api/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let answers = answers(&app, &document).await;
    assert!(answers.len() > 20, "{}", answers.len());
    let file = app.path("answers.json");
    let seen = json!({"document": document, "answers": answers});
    std::fs::write(&file, seen.to_string()).unwrap();
    let mut python = Command::new(installed("python-schemathesis/bin/python"));
    python.arg(tests("tools/schemathesis/answers.py")).arg(file);
    let ran = judge(python, PATIENCE).await;
    assert!(
        ran.ok && ran.stdout.is_empty(),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// Streams do not end by themselves, and what is said at an MCP endpoint is
/// MCP's to define: the conformance suite judges those.
const NOT_FUZZED: &str =
    r"/mcp/events$|^/mcp$|servers/\{server\}/mcp$|/sse$|/messages$|/server/\{api_key\}$";

#[tokio::test]
async fn g5_schemathesis_finds_nothing() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .start()
        .await;
    app.until_status("one", "connected").await;
    let mut command = Command::new(installed("python-schemathesis/bin/schemathesis"));
    command
        .current_dir(app.path(""))
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", tests("tools/schemathesis"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg("--config-file")
        .arg(tests("tools/schemathesis/schemathesis.toml"))
        .arg("run")
        .arg(format!("{}/api/openapi.json", app.url))
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .args(["--exclude-path-regex", NOT_FUZZED])
        .args(["--seed", "1", "--generation-database", "none"])
        .args(["--max-examples", &rounds(2, 100).to_string()])
        .args(["--request-timeout", "60", "--no-color", "--warnings", "off"])
        .args(["--suppress-health-check", "all"]);
    let ran = judge(command, LIMIT).await;
    assert!(ran.ok, "{}{}\n{}", ran.stdout, ran.stderr, app.log());
    // All but those, and the document itself, which it leaves out.
    let tested = ran.stdout.split("Tested: ").nth(1);
    let tested = tested.and_then(|rest| rest.lines().next());
    let tested: usize = tested.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(tested >= 48, "{}", ran.stdout);
}
