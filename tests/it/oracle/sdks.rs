//! Servers made with the official SDKs: every transport they have, in every
//! era they speak, with every `era` that a definition may ask for.

use serde_json::{Value, json};
use tokio::process::Command;

use super::remote::{OracleRemote, node};
use super::{ExpectedLists, check, settled, stop, tool, tree, with};
use crate::app::{App, example};

const RMCP: ExpectedLists = ExpectedLists::tools(&["add", "echo", "fail", "progress"]);

const PYTHON: ExpectedLists = ExpectedLists {
    tools: &["echo", "add", "progress", "fail"],
    resources: 1,
    templates: 1,
    prompts: 1,
};

const TYPESCRIPT: ExpectedLists = ExpectedLists {
    tools: &[
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_tool_with_progress",
        "test_reconnection",
        "test_sampling",
        "test_elicitation",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_tampered_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_capabilities",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_touch_watched_resource",
        "test_echo",
        "test_sleep",
        "test_big",
        "json_schema_2020_12_tool",
        "test_x_mcp_header",
    ],
    resources: 3,
    templates: 1,
    prompts: 5,
};

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SdkEras {
    Both,
    Legacy,
    Modern,
}

/// What a definition may ask for.
const CHOICES: [&str; 3] = ["auto", "legacy", "modern"];

/// The era that comes of it, if any.
fn outcome(speaks: SdkEras, choice: &str) -> Option<&'static str> {
    match (speaks, choice) {
        (SdkEras::Both | SdkEras::Modern, "auto" | "modern") => Some("modern"),
        (SdkEras::Both | SdkEras::Legacy, "legacy") | (SdkEras::Legacy, "auto") => Some("legacy"),
        _ => None,
    }
}

/// Each definition with each choice, all in one Portway.
async fn judge(sdk: &str, definitions: &[(SdkEras, Value)], lists: ExpectedLists) -> App {
    let mut servers = Vec::new();
    for (speaks, definition) in definitions {
        for choice in CHOICES {
            let mut definition = definition.clone();
            definition["era"] = choice.into();
            servers.push((*speaks, choice, definition));
        }
    }
    let name = |speaks: SdkEras, choice: &str| format!("{speaks:?}-{choice}").to_lowercase();
    let named: Vec<_> = servers
        .iter()
        .map(|(speaks, choice, definition)| (name(*speaks, choice), definition.clone()))
        .collect();
    let app = with(&named).start().await;
    for (speaks, choice, _) in &servers {
        let name = name(*speaks, choice);
        match outcome(*speaks, choice) {
            Some(era) => {
                check(&app, &name, era, lists).await;
                println!("{sdk} {name}: left in {:?}", stop(&app, &name).await);
            }
            None => {
                let record = settled(&app, &name).await;
                assert_eq!(record["status"], "error", "{record:#}");
                let error = record["error"].as_str().unwrap();
                assert!(says_why(error, choice), "{name}: {error}");
            }
        }
    }
    app
}

fn says_why(error: &str, choice: &str) -> bool {
    match choice {
        "modern" => error.contains("does not speak MCP 2026-07-28"),
        _ => error.contains("handshake"),
    }
}

/// Judges servers that Portway starts; none of their processes is left.
async fn over_stdio(sdk: &str, definitions: &[(SdkEras, Value)], lists: ExpectedLists) {
    let app = judge(sdk, definitions, lists).await;
    // Those that were refused are tried again, and then not any more.
    let home = app.setup.path().to_owned();
    assert_eq!(app.stop().await, Some(0));
    tree::all_gone("SIGTERM", &[], &home).await;
}

fn rmcp(era: &str) -> Value {
    json!({ "command": example("oracle_rmcp"), "args": ["--era", era] })
}

pub(super) fn python(version: u8) -> String {
    tool(&format!(".tools/python-{version}/bin/python"))
}

pub(super) fn typescript(era: &str) -> Value {
    let server = tool("tools/conformance-upstream/server.mjs");
    json!({ "command": "node", "args": [server, "--stdio", "--era", era] })
}

#[tokio::test]
async fn c1_c2_rmcp_over_stdio() {
    let servers = [
        (SdkEras::Both, rmcp("both")),
        (SdkEras::Legacy, rmcp("legacy")),
        (SdkEras::Modern, rmcp("modern")),
    ];
    over_stdio("rmcp", &servers, RMCP).await;
}

#[tokio::test]
async fn c1_c2_typescript_sdk_over_stdio() {
    let servers = [
        (SdkEras::Both, typescript("both")),
        (SdkEras::Legacy, typescript("2025")),
        (SdkEras::Modern, typescript("2026")),
    ];
    over_stdio("TypeScript SDK", &servers, TYPESCRIPT).await;
}

#[tokio::test]
async fn c1_c2_python_sdks_over_stdio() {
    let server = tool("tools/python_server.py");
    let servers = [
        (
            SdkEras::Legacy,
            json!({ "command": python(1), "args": [server] }),
        ),
        (
            SdkEras::Both,
            json!({ "command": python(2), "args": [server] }),
        ),
    ];
    over_stdio("Python SDKs", &servers, PYTHON).await;
}

fn http(server: &OracleRemote) -> Value {
    json!({ "type": "http", "url": server.url() })
}

#[tokio::test]
async fn c1_c2_rmcp_over_http() {
    let start = async |era: &str| {
        let mut command = Command::new(example("oracle_rmcp"));
        OracleRemote::start(command.args(["--http", "0", "--era", era])).await
    };
    let (both, legacy, modern) = tokio::join!(start("both"), start("legacy"), start("modern"));
    let servers = [
        (SdkEras::Both, http(&both)),
        (SdkEras::Legacy, http(&legacy)),
        (SdkEras::Modern, http(&modern)),
    ];
    judge("rmcp over HTTP", &servers, RMCP).await;
}

pub(super) async fn typescript_server(era: &str, log: Option<&str>) -> OracleRemote {
    let mut command = node(&tool("tools/conformance-upstream/server.mjs"));
    command.args(["--port", "0", "--sse", "--era", era]);
    if let Some(log) = log {
        command.args(["--log", log]);
    }
    OracleRemote::start(&mut command).await
}

#[tokio::test]
async fn c1_c2_typescript_sdk_over_http() {
    let start = |era| typescript_server(era, None);
    let (both, legacy, modern) = tokio::join!(start("both"), start("2025"), start("2026"));
    let at = |server: &OracleRemote| json!({ "type": "http", "url": server.at("/mcp") });
    let servers = [
        (SdkEras::Both, at(&both)),
        (SdkEras::Legacy, at(&legacy)),
        (SdkEras::Modern, at(&modern)),
    ];
    judge("TypeScript SDK over HTTP", &servers, TYPESCRIPT).await;
}

async fn python_server(version: u8, transport: &str) -> OracleRemote {
    let mut command = Command::new(python(version));
    command.args([&tool("tools/python_server.py"), transport, "0"]);
    OracleRemote::start(&mut command).await
}

#[tokio::test]
async fn c1_c2_python_sdks_over_http() {
    let (one, two) = tokio::join!(python_server(1, "--http"), python_server(2, "--http"));
    let servers = [(SdkEras::Legacy, http(&one)), (SdkEras::Both, http(&two))];
    judge("Python SDKs over HTTP", &servers, PYTHON).await;
}

/// The old transport belongs to the legacy era: nobody is asked for another.
#[tokio::test]
async fn c1_c2_sdks_over_sse() {
    let (one, two, typescript) = tokio::join!(
        python_server(1, "--sse"),
        python_server(2, "--sse"),
        typescript_server("both", None),
    );
    let servers = [
        ("python-1", one.url().to_owned(), PYTHON),
        ("python-2", two.url().to_owned(), PYTHON),
        ("typescript", typescript.at("/sse"), TYPESCRIPT),
    ];
    let mut named = Vec::new();
    for (name, url, _) in &servers {
        for kind in ["sse", "http"] {
            let definition = json!({ "type": kind, "url": url });
            named.push((format!("{name}-{kind}"), definition));
        }
    }
    let app = with(&named).start().await;
    for (name, _, lists) in servers {
        for kind in ["sse", "http"] {
            let name = format!("{name}-{kind}");
            check(&app, &name, "legacy", lists).await;
            println!("{name}: left in {:?}", stop(&app, &name).await);
        }
    }
    assert_eq!(app.stop().await, Some(0));
}

/// What the server saw of us, from the first request to the last.
#[tokio::test]
async fn c2_a3_each_era_is_spoken_as_its_revision_says() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests");
    let server = typescript_server("both", log.to_str()).await;
    let definition = |era: &str| json!({ "type": "http", "url": server.at("/mcp"), "era": era });
    let app = with(&[]).start().await;
    for era in ["legacy", "modern"] {
        std::fs::write(&log, "").unwrap();
        let mut body = definition(era);
        body["name"] = era.into();
        app.post("/api/mcp/servers", body).await.expect(201);
        check(&app, era, era, TYPESCRIPT).await;
        stop(&app, era).await;
        let seen = std::fs::read_to_string(&log).unwrap();
        let seen: Vec<Value> = seen
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        match era {
            "legacy" => saw_a_session(&seen),
            _ => saw_no_state(&seen),
        }
    }
}

fn saw_a_session(seen: &[Value]) {
    assert_eq!(seen[0]["rpc"], "initialize");
    assert_eq!(seen[1]["rpc"], "notifications/initialized");
    for request in &seen[1..] {
        let headers = &request["headers"];
        assert!(headers["mcp-session-id"].is_string(), "{request:#}");
        assert_eq!(headers["mcp-protocol-version"], "2025-11-25", "{request:#}");
    }
    assert_eq!(seen.last().unwrap()["http"], "DELETE", "the goodbye");
}

fn saw_no_state(seen: &[Value]) {
    assert_eq!(seen[0]["rpc"], "server/discover");
    for request in seen {
        assert_eq!(request["http"], "POST", "{request:#}");
        let headers = &request["headers"];
        assert!(headers["mcp-session-id"].is_null(), "{request:#}");
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28", "{request:#}");
        assert_eq!(headers["mcp-method"], request["rpc"], "{request:#}");
        let meta = &request["meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(meta, "2026-07-28", "{request:#}");
    }
}
