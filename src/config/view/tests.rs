use serde_json::json;

use super::*;
use crate::config::{Dialect, parse_file};

fn spec(definition: &str) -> ServerSpec {
    let text = format!(r#"{{"mcpServers": {{"x": {definition}}}}}"#);
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    parsed.servers["x"].clone().unwrap().1
}

#[test]
fn g3_values_are_covered_and_references_are_not() {
    for (value, shown) in [
        ("", ""),
        ("secret", "***"),
        ("1", "***"),
        ("${A}", "${A}"),
        ("${A:-}", "${A:-}"),
        ("${A:-secret}", "${A:-***}"),
        ("${A}${B}", "${A}${B}"),
        ("${A}-suffix", "***"),
        ("prefix-${A}", "***"),
        ("Bearer ${A}", "Bearer ${A}"),
        ("bearer ${A:-x}", "bearer ${A:-***}"),
        ("token ${A}", "token ${A}"),
        ("Bearer secret", "***"),
        ("Bearer ", "***"),
        ("Password ${A}", "***"),
        ("$A", "***"),
        ("${A:-${B}}", "***"),
    ] {
        assert_eq!(mask_value(value), shown, "{value}");
    }
}

#[test]
fn g3_secrets_inside_an_address_are_covered() {
    for (url, shown) in [
        ("http://h/mcp", "http://h/mcp"),
        ("http://h/mcp?page=1&x=2#f", "http://h/mcp?page=1&x=2#f"),
        ("http://u:p@h/", "http://u:***@h/"),
        ("http://u@h/", "http://u@h/"),
        ("http://:p@h", "http://:***@h"),
        ("http://u:p:q@r@h/x@y", "http://u:***@h/x@y"),
        ("http://u:${P}@h/", "http://u:${P}@h/"),
        ("http://ghp_0123456789abcdef@h/", "http://***@h/"),
        ("http://ghp_0123456789abcdef:x@h/", "http://***:***@h/"),
        (
            "http://${A_RATHER_LONG_NAME}@h/",
            "http://${A_RATHER_LONG_NAME}@h/",
        ),
        ("http://h/?api_key=abc&b=1", "http://h/?api_key=***&b=1"),
        ("http://h/?Token=abc#t", "http://h/?Token=***#t"),
        ("http://h/?apiKey=${K}", "http://h/?apiKey=${K}"),
        ("http://h/?sig=a=b&sig", "http://h/?sig=***&sig"),
        ("http://h/?tokens=", "http://h/?tokens="),
        ("${BASE}/mcp?access_token=x", "${BASE}/mcp?access_token=***"),
    ] {
        assert_eq!(mask_url(url), shown);
    }
}

#[test]
fn g3_secrets_among_arguments_are_covered() {
    let args = [
        "-y",
        "pkg@1",
        "--api-key",
        "abc",
        "--token=abc",
        "--port",
        "80",
        "--password",
        "--verbose",
        "--secret",
        "${S}",
        "--author",
        "me",
        "token",
        "--key=",
        "postgresql://u:p@h/db?sslmode=on",
        "--db=postgresql://u:p@h/db",
    ];
    let args: Vec<String> = args.map(str::to_owned).to_vec();
    assert_eq!(
        masked_args(&args),
        [
            "-y",
            "pkg@1",
            "--api-key",
            "***",
            "--token=***",
            "--port",
            "80",
            "--password",
            "--verbose",
            "--secret",
            "${S}",
            "--author",
            "me",
            "token",
            "--key=",
            "postgresql://u:***@h/db?sslmode=on",
            "--db=postgresql://u:***@h/db",
        ]
    );
}

#[test]
fn g1_the_view_says_every_field() {
    let definition = r#"{"command": "npx", "args": ["x"], "env": {"A": "s", "B": "${C}"}}"#;
    assert_eq!(
        view(&spec(definition)),
        json!({
            "type": "stdio", "transport": "stdio", "command": "npx", "args": ["x"],
            "env": {"A": "***", "B": "${C}"}, "enabled": true, "timeout": 30000,
            "era": "auto", "containment": "auto", "isolation": "shared",
        })
    );
    let definition = r#"{"type": "sse", "url": "http://h", "headers": {"A": "b"}, "timeout": 5,
        "enabled": false, "era": "legacy", "isolation": "session"}"#;
    assert_eq!(
        view(&spec(definition)),
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
    ] {
        let spec = spec(definition);
        let written = plain(&spec);
        assert_eq!(written["type"], written["transport"]);
        assert_eq!(
            super::tests::spec(&Value::Object(written).to_string()),
            spec
        );
    }
    assert_eq!(
        Value::Object(plain(&spec(
            r#"{"command": "c", "timeout": 30000, "args": []}"#
        ))),
        json!({"type": "stdio", "transport": "stdio", "command": "c"})
    );
}
