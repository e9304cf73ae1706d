//! SPEC D10: tools and calls for programs that speak no MCP.

mod calls;
mod judged;
mod keys;
mod lists;

use serde_json::{Value, json};

use crate::app::{App, HttpAnswer, fixture, setup};
use crate::e_records::refused;

const LIST: &str = "/api/mcp/tools";
const FORMATS: [&str; 4] = ["mcp", "openai", "anthropic", "copilot"];

fn at(tool: &str, query: &str) -> String {
    format!("{LIST}/{tool}/call?{query}")
}

impl App {
    async fn formatted(&self, query: &str) -> Value {
        self.get(&format!("{LIST}?{query}")).await.expect(200)
    }

    async fn call_as(&self, format: &str, tool: &str, arguments: Value) -> HttpAnswer {
        let body = json!({"arguments": arguments});
        self.post(&at(tool, &format!("format={format}")), body)
            .await
    }
}

/// The part of a tool that has its name, wherever a format puts it.
fn named(tool: &Value) -> &Value {
    match tool.get("function") {
        Some(function) => function,
        None => tool,
    }
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    let name = |tool| named(tool)["name"].as_str().unwrap();
    tools.iter().map(name).collect()
}

/// What a model would read of an answer.
#[track_caller]
fn text<'a>(format: &str, answer: &'a Value) -> &'a str {
    let text = match format {
        "openai" => &answer["content"],
        "copilot" => &answer["textResultForLlm"],
        _ => &answer["content"][0]["text"],
    };
    text.as_str().unwrap_or_else(|| panic!("{answer:#}"))
}

fn failed(format: &str, answer: &Value) -> bool {
    match format {
        "mcp" => answer["isError"] == true,
        "openai" => text(format, answer).starts_with("Error: "),
        "anthropic" => answer["is_error"] == true,
        _ => answer["resultType"] != "success" && answer["error"] == answer["textResultForLlm"],
    }
}

/// A model is told that there is no such tool; a program that asked for MCP's
/// own shape gets a status.
#[track_caller]
fn is_no_tool(format: &str, name: &str, answer: HttpAnswer) {
    if format == "mcp" {
        refused(answer, 404, "NOT_FOUND");
        return;
    }
    let answer = answer.expect(200);
    assert!(failed(format, &answer), "{format}: {answer}");
    let said = format!("there is no tool {name:?}");
    assert!(text(format, &answer).contains(&said), "{answer}");
}

/// A server of each era, one that is switched off, and one with little time.
async fn portway() -> App {
    let server = |args: &[&str]| json!({"command": fixture(), "args": args});
    let mut hurried = server(&[]);
    hurried["timeout"] = 700.into();
    let app = setup()
        .mcp(json!({"mcpServers": {
            "one": server(&[]),
            "old": server(&["--era", "legacy"]),
            "off": {"command": fixture(), "enabled": false},
            "hurried": hurried,
        }}))
        .start()
        .await;
    for name in ["one", "old", "hurried"] {
        app.until_status(name, "connected").await;
    }
    app
}
