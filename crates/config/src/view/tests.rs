use serde_json::json;

use super::*;
use crate::{Dialect, parse_file};

fn spec(definition: &str) -> ServerSpec {
    let text = format!(r#"{{"mcpServers": {{"x": {definition}}}}}"#);
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    parsed.servers["x"].clone().unwrap().1
}

#[test]
fn g1_the_view_says_every_field() {
    let definition = r#"{"command": "npx", "args": ["x"], "env": {"A": "s", "B": "${C}"}}"#;
    assert_eq!(
        masked_config(&spec(definition)),
        json!({
            "type": "stdio", "transport": "stdio", "command": "npx", "args": ["x"],
            "env": {"A": "***", "B": "${C}"}, "enabled": true, "timeout": 30000,
            "era": "auto", "containment": "auto", "privileges": "drop", "isolation": "auto",
        })
    );
    let definition = r#"{"type": "sse", "url": "http://h", "headers": {"A": "b"}, "timeout": 5,
        "enabled": false, "era": "legacy", "isolation": "session"}"#;
    assert_eq!(
        masked_config(&spec(definition)),
        json!({
            "type": "sse", "transport": "sse", "url": "http://h", "headers": {"A": "***"},
            "enabled": false, "timeout": 5, "era": "legacy", "isolation": "session",
        })
    );
}

#[test]
fn b1_what_is_written_carries_both_words_and_is_read_back() {
    for definition in [
        r#"{"command": "c"}"#,
        r#"{"command": "c", "args": ["${A}"], "env": {"A": "b"}, "cwd": "/x", "enabled": false}"#,
        r#"{"url": "http://u:p@h", "headers": {"A": "Bearer x"}, "timeout": 1, "era": "modern"}"#,
        r#"{"type": "sse", "url": "${U}", "isolation": "principal", "containment": "cgroup"}"#,
        r#"{"command": "c", "privileges": "keep"}"#,
    ] {
        let spec = spec(definition);
        let written = definition_fields(&spec);
        assert_eq!(written["type"], written["transport"]);
        assert_eq!(
            super::tests::spec(&Value::Object(written).to_string()),
            spec
        );
    }
    assert_eq!(
        Value::Object(definition_fields(&spec(
            r#"{"command": "c", "timeout": 30000, "args": []}"#
        ))),
        json!({"type": "stdio", "transport": "stdio", "command": "c"})
    );
}
