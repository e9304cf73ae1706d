use serde_json::{Value, json};

use super::*;
use crate::view::definition_fields;

const AROUND: ImportDirs<'static> = ImportDirs {
    home: Some("/home/me"),
    project: "/srv/project",
};

fn read(client: ClientApp, text: &str) -> Vec<ImportedServer> {
    let parsed = parse(client, text, &AROUND).unwrap();
    merge(client, vec![parsed], &AROUND)
}

/// The only server of a file as `.mcp.json` would define it.
#[track_caller]
fn one(client: ClientApp, text: &str) -> Value {
    let found = read(client, text);
    assert_eq!(found.len(), 1);
    Value::Object(definition_fields(found[0].spec.as_ref().unwrap()))
}

#[track_caller]
fn problem(client: ClientApp, text: &str) -> String {
    let found = read(client, text);
    found[0].spec.as_ref().unwrap_err()[0].to_string()
}

#[test]
fn b8_a_file_tells_whose_it_is() {
    for (path, text, client) in [
        (
            "/x/claude_desktop_config.json",
            "",
            Some(ClientApp::ClaudeDesktop),
        ),
        ("C:\\u\\.cursor\\mcp.json", "", Some(ClientApp::Cursor)),
        (".vscode/mcp.json", "", Some(ClientApp::VsCode)),
        (".gemini/settings.json", "", Some(ClientApp::Gemini)),
        ("any.toml", "", Some(ClientApp::Codex)),
        ("opencode.jsonc", "", Some(ClientApp::OpenCode)),
        (".claude.json", "", Some(ClientApp::ClaudeCode)),
        (
            ".mcp.json",
            r#"{"mcpServers": {}}"#,
            Some(ClientApp::ClaudeCode),
        ),
        ("x", r#"{"servers": {}}"#, Some(ClientApp::VsCode)),
        (
            "x",
            r#"{"mcp": {"inputs": [], "servers": {}}}"#,
            Some(ClientApp::VsCode),
        ),
        ("x", r#"{"mcp": {"a": {}}}"#, Some(ClientApp::OpenCode)),
        (
            "x",
            r#"{"mcpServers": {"a": {"httpUrl": ""}}}"#,
            Some(ClientApp::Gemini),
        ),
        (
            "x",
            r#"{"mcpServers": {"a": {"args": ["${env:A}"]}}}"#,
            Some(ClientApp::Cursor),
        ),
        ("x", "[mcp_servers.a]\n", Some(ClientApp::Codex)),
        ("x", "{}", None),
        ("x", "hello", None),
    ] {
        assert_eq!(detect(path, text), client, "{path} {text}");
    }
}

#[test]
fn b8_what_cannot_be_read_says_where() {
    for (client, text, said) in [
        (ClientApp::Cursor, "{\n  oops", "line 2"),
        (ClientApp::Cursor, "[]", "must be an object"),
        (
            ClientApp::VsCode,
            "{\"servers\": 1}",
            "servers: must be an object",
        ),
        (
            ClientApp::ClaudeCode,
            "{\"mcpServers\":{},\"mcpServers\":{}}",
            "twice",
        ),
        (ClientApp::Codex, "a = 1\nb = \"hidden-value", "line 2"),
        (ClientApp::Codex, "mcp_servers = 1", "must be a table"),
    ] {
        let error = parse(client, text, &AROUND).err().unwrap().to_string();
        assert!(error.contains(said) && !error.contains("hidden"), "{error}");
    }
    assert!(problem(ClientApp::Cursor, r#"{"mcpServers": {"a": {}, "a": {}}}"#).contains("twice"));
    assert!(problem(ClientApp::Cursor, r#"{"mcpServers": {"a": 1}}"#).contains("not an object"));
    assert!(problem(ClientApp::Cursor, r#"{"mcpServers": {"a": {}}}"#).contains("command"));
    assert!(read(ClientApp::Gemini, " \n").is_empty());
}

#[test]
fn b8_references_of_others_become_ours() {
    let vscode = r#"{"servers": {"a": {"command": "${workspaceFolder}${/}x", "args":
        ["${env:A}-${input:b-c}", "${userHome}", "${workspaceFolderBasename}", "${other}"]}}}"#;
    assert_eq!(
        one(ClientApp::VsCode, vscode),
        json!({"type": "stdio", "transport": "stdio", "command": "/srv/project/x",
               "args": ["${A}-${B_C}", "/home/me", "project", "${other}"]})
    );
    let opencode = r#"{"mcp": {"a": {"type": "remote", "url": "https://{env:HOST}/mcp",
        "headers": {"A": "{env:A}{x}", "B-C": "x{file:f}"}}}}"#;
    assert_eq!(
        one(ClientApp::OpenCode, opencode),
        json!({"type": "http", "transport": "http", "url": "https://${HOST}/mcp",
               "headers": {"A": "${A}{x}", "B-C": "x${A_B_C}"}})
    );
    for text in [
        r#"{"servers": {"a": {"command": "${config:x.y}"}}}"#,
        r#"{"servers": {"a": {"command": "${env:ProgramFiles(x86)}/x"}}}"#,
        r#"{"servers": {"a": {"command": "${workspaceFolder:other}/x"}}}"#,
    ] {
        assert!(
            problem(ClientApp::VsCode, text).contains("only VS Code"),
            "{text}"
        );
    }
}

#[test]
fn b8_later_files_win_and_opencode_merges() {
    let two = |client, first: &str, second: &str| {
        let parsed = [first, second].map(|text| parse(client, text, &AROUND).unwrap());
        let found = merge(client, parsed.into(), &AROUND);
        assert_eq!((found.len(), found[0].file), (1, 1));
        Value::Object(definition_fields(found[0].spec.as_ref().unwrap()))
    };
    let cursor = two(
        ClientApp::Cursor,
        r#"{"mcpServers": {"a": {"command": "x", "args": ["y"]}}}"#,
        r#"{"mcpServers": {"a": {"command": "z"}}}"#,
    );
    assert_eq!(
        cursor,
        json!({"type": "stdio", "transport": "stdio", "command": "z"})
    );
    let opencode = two(
        ClientApp::OpenCode,
        r#"{"mcp": {"a": {"type": "local", "command": ["x"], "environment": {"A": "1"}}}}"#,
        r#"{"mcp": {"a": {"environment": {"B": "2"}, "enabled": false}}}"#,
    );
    assert_eq!(
        opencode,
        json!({"type": "stdio", "transport": "stdio", "command": "x",
               "env": {"A": "1", "B": "2"}, "enabled": false})
    );
}

#[test]
fn b8_a_server_that_is_portway_is_known() {
    let spec = |definition: Value| {
        let text = json!({"mcpServers": {"a": definition}}).to_string();
        read(ClientApp::ClaudeCode, &text).remove(0).spec.unwrap()
    };
    let base = "http://127.0.0.1:7420";
    for ours in [
        json!({"command": "/usr/bin/portway", "args": ["connect"]}),
        json!({"command": "C:\\x\\portway.exe", "args": ["connect", "--server", "a"]}),
        json!({"url": "http://localhost:7420/mcp"}),
        json!({"url": "http://127.0.0.1:7420/servers/a/mcp"}),
        json!({"url": "http://[::1]:7420/api/v1/mcp_v2/server/key"}),
        json!({"type": "sse", "url": "http://127.0.0.1:7420/sse"}),
    ] {
        assert!(is_portway(&spec(ours.clone()), base), "{ours}");
    }
    for other in [
        json!({"command": "portway", "args": ["serve"]}),
        json!({"command": "x", "args": ["connect"]}),
        json!({"url": "http://127.0.0.1:7421/mcp"}),
        json!({"url": "http://127.0.0.1:7420/mcpx"}),
        json!({"url": "http://example.com:7420/mcp"}),
        json!({"url": "http://${HOST}/mcp"}),
    ] {
        assert!(!is_portway(&spec(other.clone()), base), "{other}");
    }
}
