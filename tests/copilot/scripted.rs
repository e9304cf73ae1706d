//! Tools of a source that does as it is told, without any runtime.

use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::{Tool, ToolInvocation, ToolResult, ToolResultExpanded};
use portway::copilot::{
    self, PermissionMode, RemotePortway, ToolCatalog, ToolOptions, ToolSource, ToolSourceError,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Clone)]
struct ScriptedSource;

#[async_trait]
impl ToolSource for ScriptedSource {
    async fn catalog(
        &self,
        filter: Option<&str>,
        _: Option<&str>,
    ) -> Result<Option<ToolCatalog>, ToolSourceError> {
        if filter == Some("slow") {
            std::future::pending::<()>().await;
        }
        let listed = json!([
            {"name": "mcp_a_read", "description": "Reads", "skipPermission": true,
             "parameters": {"type": "object"}, "metadata": {"server": "a", "tool": "read"}},
            {"name": "mcp_a_write", "parameters": {}},
            {"name": "read: all"}, {"name": ""}, {"name": "x".repeat(65)},
        ]);
        let tools = serde_json::from_value(listed).unwrap();
        let tag = "1".into();
        Ok(Some(ToolCatalog { tag, tools }))
    }

    async fn call(
        &self,
        filter: Option<&str>,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResultExpanded, ToolSourceError> {
        match name {
            "mcp_a_read" => {
                let text = format!("{filter:?} {arguments}");
                Ok(ToolResultExpanded::new(text, "success"))
            }
            "mcp_a_write" => std::future::pending().await,
            "mcp_a_down" => Err(ToolSourceError::Unreachable {
                url: "http://127.0.0.1:1".into(),
                reason: "Connection refused".into(),
            }),
            _ => Err(ToolSourceError::NotFound(format!("no tool {name}"))),
        }
    }

    async fn watch(&self, _: &Notify) {}
}

async fn call(tool: &Tool, name: &str, arguments: Value) -> ToolResultExpanded {
    let mut invocation = ToolInvocation::default();
    invocation.tool_name = name.to_owned();
    invocation.arguments = arguments;
    let handler = tool.handler().unwrap();
    match handler.call(invocation).await.expect("never an error") {
        ToolResult::Expanded(result) => result,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn d8_a_bad_name_is_left_out_and_costs_no_other() {
    let tools = copilot::tools(&ScriptedSource, &ToolOptions::default())
        .await
        .unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mcp_a_read", "mcp_a_write"]);
    assert_eq!(tools[0].parameters["type"], "object");
    assert_eq!(tools[0].metadata["server"], "a");
}

#[tokio::test]
async fn d8_only_who_asks_for_it_skips_permission() {
    assert_eq!(ToolOptions::default().permission, PermissionMode::Ask);
    for (permission, skipped) in [
        (PermissionMode::Ask, [false, false]),
        (PermissionMode::ReadOnlyHint, [true, false]),
        (PermissionMode::Skip, [true, true]),
    ] {
        let options = ToolOptions::default().with_permission(permission);
        let tools = copilot::tools(&ScriptedSource, &options).await.unwrap();
        let skips: Vec<bool> = tools.iter().map(|tool| tool.skip_permission).collect();
        assert_eq!(skips, skipped, "{permission:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d8_a_handler_answers_whatever_happens() {
    let options = ToolOptions::default().with_filter("f");
    let tools = copilot::tools(&ScriptedSource, &options).await.unwrap();
    let result = call(&tools[0], "mcp_a_read", Value::Null).await;
    assert_eq!(result.text_result_for_llm, "Some(\"f\") {}");
    for (name, kind, part) in [
        ("mcp_a_write", "timeout", "no answer within 30 s"),
        ("mcp_a_down", "failure", "Connection refused"),
        ("mcp_a_gone", "failure", "no tool mcp_a_gone"),
    ] {
        let result = call(&tools[1], name, json!({})).await;
        assert_eq!(result.result_type, kind);
        let text = result.text_result_for_llm;
        assert!(text.starts_with(name) && text.contains(part), "{text}");
        assert_eq!(result.error, Some(text));
    }
    let slow = copilot::tools(&ScriptedSource, &ToolOptions::default().with_filter("slow")).await;
    let error = slow.map(|_| ()).unwrap_err();
    assert_eq!(error, ToolSourceError::Silent(Duration::from_secs(30)));
}

fn named(names: &[&str]) -> Vec<Tool> {
    names.iter().map(|name| Tool::new(*name)).collect()
}

#[test]
fn d8_own_tools_come_first_and_a_name_is_there_once() {
    let all = copilot::merge(named(&["mine"]), named(&["mcp_a_b", "mcp_a_c"])).unwrap();
    let names: Vec<&str> = all.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mine", "mcp_a_b", "mcp_a_c"]);
    for (own, mcp) in [(&["x"][..], &["y", "x"][..]), (&["x", "x"], &[])] {
        let clash = copilot::merge(named(own), named(mcp)).map(|_| ());
        assert_eq!(clash.unwrap_err().name, "x");
    }
}

#[test]
fn d8_a_bad_address_or_key_is_refused_and_not_shown() {
    for url in ["7420", "ftp://x", "http://u:s3cret@x", "http://x?key=1"] {
        let error = RemotePortway::new(url, "k").unwrap_err();
        assert!(matches!(error, ToolSourceError::BadUrl(_)), "{url}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    let error = RemotePortway::new("http://x", "s3cret\n").unwrap_err();
    assert_eq!(error, ToolSourceError::BadKey);
    let running = RemotePortway::new("http://127.0.0.1:7420/", "s3cret").unwrap();
    assert_eq!(
        format!("{running:?}"),
        "RemotePortway(http://127.0.0.1:7420)"
    );
}
