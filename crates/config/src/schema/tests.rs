use super::*;
use crate::definition::known_fields;
use crate::{Dialect, parse_file};

/// A validator for the keywords of the schema; an unknown keyword fails.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let all =
        |list: &Value, test: &dyn Fn(&Value) -> bool| list.as_array().unwrap().iter().all(test);
    let count = |list: &Value| {
        let schemas = list.as_array().unwrap().iter();
        schemas.filter(|schema| valid(root, schema, value)).count()
    };
    schema
        .as_object()
        .unwrap()
        .iter()
        .all(|(keyword, rule)| match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "then" => true,
            "$ref" => valid(
                root,
                root.pointer(&rule.as_str().unwrap()[1..]).unwrap(),
                value,
            ),
            "type" => match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64() || value.is_i64(),
                other => panic!("type {other}"),
            },
            "enum" => rule.as_array().unwrap().contains(value),
            "minLength" => value.as_str().is_none_or(|s| !s.is_empty()),
            "minItems" => value.as_array().is_none_or(|a| !a.is_empty()),
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
            "required" => value.as_object().is_none_or(|object| {
                all(rule, &|name| object.contains_key(name.as_str().unwrap()))
            }),
            "properties" => rule.as_object().unwrap().iter().all(|(name, schema)| {
                value
                    .get(name)
                    .is_none_or(|value| valid(root, schema, value))
            }),
            "additionalProperties" => value
                .as_object()
                .is_none_or(|object| object.values().all(|value| valid(root, rule, value))),
            "items" => value
                .as_array()
                .is_none_or(|items| items.iter().all(|value| valid(root, rule, value))),
            "anyOf" => count(rule) >= 1,
            "oneOf" => count(rule) == 1,
            "allOf" => count(rule) == rule.as_array().unwrap().len(),
            "if" => !valid(root, rule, value) || valid(root, &schema["then"], value),
            // There is no engine for patterns: the reader's own tests cover
            // those of names and addresses.
            "pattern" | "propertyNames" => true,
            other => panic!("keyword {other}"),
        })
}

#[test]
fn the_schema_and_the_reader_agree() {
    let schema = schema();
    for (good, server) in [
        (true, json!({"command": "c"})),
        (
            true,
            json!({"type": "stdio", "transport": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "${B}"}, "cwd": "/x"}),
        ),
        (
            true,
            json!({"url": "http://h/mcp", "headers": {"Authorization": "Bearer ${T}"}}),
        ),
        (
            true,
            json!({"type": "sse", "url": "${URL}", "timeout": 1000, "enabled": false}),
        ),
        (
            true,
            json!({"type": "local", "command": ["npx", "x"], "environment": {}, "enabled": true, "timeout": 30000}),
        ),
        (
            true,
            json!({"type": "remote", "url": "https://h", "headers": {}}),
        ),
        (
            true,
            json!({"type": "streamable-http", "url": "https://h", "oauth": {"clientId": "x"}, "alwaysLoad": true}),
        ),
        (
            true,
            json!({"command": "c", "era": "legacy", "containment": "cgroup", "isolation": "principal", "disabled": true}),
        ),
        (false, json!({})),
        (false, json!(null)),
        (false, json!({"command": "c", "url": "http://h"})),
        (false, json!({"type": "stdio", "url": "http://h"})),
        (false, json!({"type": "http", "command": "c"})),
        (false, json!({"type": "ws", "url": "http://h"})),
        (false, json!({"command": ""})),
        (false, json!({"command": []})),
        (false, json!({"command": ["c", 1]})),
        (false, json!({"command": "c", "args": "x"})),
        (false, json!({"command": "c", "args": [1]})),
        (false, json!({"command": "c", "env": {"A": 1}})),
        (false, json!({"url": "http://h", "headers": []})),
        (false, json!({"command": "c", "cwd": ""})),
        (false, json!({"command": "c", "timeout": 0})),
        (false, json!({"command": "c", "timeout": 1.5})),
        (false, json!({"command": "c", "timeout": 86_400_001_u64})),
        (false, json!({"command": "c", "enabled": "yes"})),
        (false, json!({"command": "c", "era": "new"})),
        (true, json!({"command": "c", "privileges": "keep"})),
        (false, json!({"command": "c", "privileges": "root"})),
        (false, json!({"command": "c", "containment": "docker"})),
        (false, json!({"command": "c", "isolation": "none"})),
    ] {
        let file = json!({"mcpServers": {"x": server}, "other": 1});
        assert_eq!(valid(&schema, &schema, &file), good, "schema: {file}");
        let parsed = parse_file(&file.to_string(), Dialect::Mcp).unwrap();
        assert_eq!(parsed.servers["x"].is_ok(), good, "reader: {file}");
    }
    for (good, file) in [
        (true, json!({})),
        (true, json!({"mcpServers": {}})),
        (false, json!({"mcpServers": []})),
        (false, json!([])),
    ] {
        assert_eq!(valid(&schema, &schema, &file), good, "{file}");
        assert_eq!(
            parse_file(&file.to_string(), Dialect::Mcp).is_ok(),
            good,
            "{file}"
        );
    }
}

#[test]
fn the_schema_knows_every_field_and_no_other() {
    let schema = schema();
    let fields = schema["$defs"]["server"]["properties"].as_object().unwrap();
    let mut said: Vec<&str> = fields.keys().map(String::as_str).collect();
    let mut known: Vec<&str> = known_fields().collect();
    said.sort_unstable();
    known.sort_unstable();
    assert_eq!(said, known);
}
