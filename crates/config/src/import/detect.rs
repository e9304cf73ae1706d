//! Detects the client of a file, by its name, then by its content.

use serde_json::Value;

use super::super::tree;
use super::ClientApp;

/// `path` as the user gave it.
pub fn detect(path: &str, text: &str) -> Option<ClientApp> {
    let path = path.replace('\\', "/");
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let directory = directory.rsplit('/').next().unwrap_or_default();
    let by_name = match (directory, name) {
        (_, "claude_desktop_config.json") => Some(ClientApp::ClaudeDesktop),
        (_, ".claude.json") => Some(ClientApp::ClaudeCode),
        (".vscode" | "User", "mcp.json" | "settings.json") => Some(ClientApp::VsCode),
        (".cursor", "mcp.json") => Some(ClientApp::Cursor),
        (".gemini", "settings.json") => Some(ClientApp::Gemini),
        (_, "opencode.json" | "opencode.jsonc") => Some(ClientApp::OpenCode),
        (_, name) if name.ends_with(".toml") => Some(ClientApp::Codex),
        _ => None,
    };
    if by_name.is_some() {
        return by_name;
    }
    match tree::parse(tree::without_bom(text)) {
        Ok(root) => by_shape(&Value::from(root)),
        Err(_) => text.contains("[mcp_servers").then_some(ClientApp::Codex),
    }
}

fn by_shape(root: &Value) -> Option<ClientApp> {
    if root["servers"].is_object() {
        return Some(ClientApp::VsCode);
    }
    if let Some(servers) = root["mcpServers"].as_object() {
        let any = |fields: &[&str]| {
            let has = |server: &Value| fields.iter().any(|field| server.get(field).is_some());
            servers.values().any(has)
        };
        if root["projects"].is_object() {
            return Some(ClientApp::ClaudeCode);
        }
        if root["mcp"].is_object() || any(&["httpUrl", "trust", "includeTools", "excludeTools"]) {
            return Some(ClientApp::Gemini);
        }
        let text = Value::Object(servers.clone()).to_string();
        if any(&["envFile", "auth"]) || text.contains("${env:") || text.contains("${userHome}") {
            return Some(ClientApp::Cursor);
        }
        return Some(ClientApp::ClaudeCode);
    }
    let mcp = root["mcp"].as_object()?;
    Some(if mcp.contains_key("inputs") {
        ClientApp::VsCode
    } else {
        ClientApp::OpenCode
    })
}
