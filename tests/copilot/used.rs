//! The tools of a running Portway in a session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::{Error, Tool, ToolInvocation, ToolResult};
use portway::copilot::{
    self, PermissionMode, RemotePortway, ToolOptions, ToolSource, ToolSourceError,
};
use serde_json::json;

use crate::app::{App, PATIENCE, TOKEN, eventually, fixtures, setup};
use crate::runtime::{Runtime, say};

pub(crate) async fn portway(servers: &[(&str, &[&str])]) -> (App, RemotePortway) {
    let app = setup().mcp(fixtures(servers)).start().await;
    for (name, _) in servers {
        app.until_status(name, "connected").await;
    }
    let running = RemotePortway::new(&app.url, TOKEN).unwrap();
    (app, running)
}

pub(crate) struct OwnTool;

#[async_trait]
impl ToolHandler for OwnTool {
    async fn call(&self, invocation: ToolInvocation) -> Result<ToolResult, Error> {
        let word = invocation.arguments["word"].as_str().unwrap_or_default();
        Ok(ToolResult::Text(format!("own {word}")))
    }
}

pub(crate) fn own() -> Tool {
    Tool::new("own_word")
        .with_description("The program's own")
        .with_parameters(json!({"type": "object", "properties": {"word": {"type": "string"}}}))
        .with_handler(Arc::new(OwnTool))
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_the_model_has_all_tools_and_reads_what_they_say() {
    let (app, portway) = portway(&[("fs", &[]), ("weather-1", &[])]).await;
    let runtime = Runtime::start().await;
    let tools = copilot::tools(&portway, &ToolOptions::default())
        .await
        .unwrap();
    let tools = copilot::merge(vec![own()], tools).unwrap();
    let (session, asked) = runtime.session(tools).await;

    let text = "grüße, 世界 \u{1f980} \"quoted\"\\n";
    let order = format!("call mcp_fs_echo {}", json!({"text": text}));
    assert_eq!(say(&session, &order).await, format!("it says: {text}"));
    let offered = runtime.model.offered();
    for name in ["mcp_fs_echo", "mcp_weather-1_add", "own_word"] {
        assert!(offered.iter().any(|one| one == name), "{name}: {offered:?}");
    }
    // Its own are there beside them.
    let others = |name: &&String| !name.starts_with("mcp_") && *name != "own_word";
    assert!(offered.iter().filter(others).count() >= 5, "{offered:?}");

    let said = say(&session, "call own_word {\"word\":\"x\"}").await;
    assert_eq!(said, "it says: own x");
    let said = say(&session, "call mcp_weather-1_add {\"a\":2,\"b\":40}").await;
    assert!(said.contains("42"), "{said}");
    // The default: each call was asked for, also of what says it only reads.
    assert_eq!(
        asked.names(),
        ["mcp_fs_echo", "own_word", "mcp_weather-1_add"]
    );
    runtime.end().await;
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_what_goes_wrong_is_told_to_the_model() {
    let (app, portway) = portway(&[("fs", &[])]).await;
    let runtime = Runtime::start().await;
    let options = ToolOptions::default().with_timeout(Duration::from_millis(1500));
    let tools = copilot::tools(&portway, &options).await.unwrap();
    let (session, _) = runtime.session(tools).await;
    let mut events = session.subscribe();

    let said = say(&session, "call mcp_fs_fail {\"text\":\"no disk, 满了\"}").await;
    assert_eq!(said, "it says: no disk, 满了");
    let said = say(&session, "call mcp_fs_error {}").await;
    assert!(said.contains("an error as told"), "{said}");
    let said = say(&session, "call mcp_fs_sleep {\"ms\":60000}").await;
    assert!(said.contains("timed out: no answer within 1.5 s"), "{said}");
    let said = say(&session, "call mcp_fs_crash {}").await;
    assert!(said.contains("mcp_fs_crash"), "{said}");
    let said = say(&session, "call mcp_fs_add {\"a\":\"x\"}").await;
    assert!(
        said.starts_with("it says: ") && said.contains('a'),
        "{said}"
    );
    let mut kinds = Vec::new();
    while kinds.len() < 5 {
        let event = tokio::time::timeout(PATIENCE, events.recv()).await;
        let event = event.expect("an event").unwrap();
        if event.event_type == "tool.execution_complete" {
            assert_eq!(event.data["success"], false, "{:#}", event.data);
            kinds.push(event.data["error"]["code"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        kinds,
        ["failure", "failure", "timeout", "failure", "failure"]
    );

    assert_eq!(app.stop().await, Some(0));
    let said = say(&session, "call mcp_fs_echo {\"text\":\"x\"}").await;
    assert!(
        said.contains("no Portway answers at http://127.0.0.1"),
        "{said}"
    );
    runtime.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_pictures_reach_the_model_and_nothing_is_dropped() {
    let (app, portway) = portway(&[("fs", &[])]).await;
    let runtime = Runtime::start().await;
    let options = ToolOptions::default().with_permission(PermissionMode::ReadOnlyHint);
    let tools = copilot::tools(&portway, &options).await.unwrap();
    let (session, asked) = runtime.session(tools).await;
    let said = say(&session, "call mcp_fs_content {}").await;
    for part in ["text", "[audio: audio/wav", "fixture://text", "embedded"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let seen = runtime.model.asked().last().unwrap().to_string();
    assert!(seen.contains("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"), "{seen}");
    let said = say(&session, "call mcp_fs_echo {\"text\":\"x\"}").await;
    assert_eq!(said, "it says: x");
    // What only reads was not asked for.
    assert_eq!(asked.names(), ["mcp_fs_content"]);
    runtime.end().await;
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_an_aborted_call_is_cancelled_at_its_server() {
    let record = tempfile::NamedTempFile::new().unwrap();
    let path = record.path().display().to_string();
    let (app, portway) = portway(&[("fs", &["--record", &path])]).await;
    let runtime = Runtime::start().await;
    let tools = copilot::tools(&portway, &ToolOptions::default())
        .await
        .unwrap();
    let (session, _) = runtime.session(tools).await;
    let recorded = || std::fs::read_to_string(&path).unwrap();

    session
        .send("call mcp_fs_sleep {\"ms\":600000}")
        .await
        .unwrap();
    eventually("the call is there", || recorded().contains("600000")).await;
    assert!(!recorded().contains("\"event\":\"cancelled\""));
    session.abort().await.unwrap();
    eventually("it is cancelled", || {
        recorded().contains("\"event\":\"cancelled\"")
    })
    .await;
    runtime.end().await;
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_a_wrong_address_key_or_filter_is_an_error_to_branch_on() {
    let (app, portway) = portway(&[("fs", &[])]).await;
    let options = ToolOptions::default();
    let wrong = RemotePortway::new(&app.url, "wrong").unwrap();
    let error = copilot::tools(&wrong, &options)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, ToolSourceError::Denied { .. }), "{error}");
    let filter = options.clone().with_filter("nobody");
    let error = copilot::tools(&portway, &filter)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
    let result = portway.call(None, "mcp_fs_nothing", &json!({})).await;
    let result = result.unwrap();
    assert_eq!(result.result_type, "failure");
    let said = &result.text_result_for_llm;
    assert!(
        said.contains("there is no tool \"mcp_fs_nothing\""),
        "{said}"
    );
    assert_eq!(app.stop().await, Some(0));
    let error = copilot::tools(&portway, &options)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(error, ToolSourceError::Unreachable { .. }),
        "{error}"
    );
}
