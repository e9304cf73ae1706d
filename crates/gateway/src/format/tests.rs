mod arguments;
mod results;
mod schemas;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn shown(format: Format, tool: &Value) -> Value {
    let name = tool["name"].as_str().unwrap();
    let spelled = super::tool(
        format,
        ListedTool {
            name,
            tool: &raw(tool),
            origin: Some(("fs", "read")),
        },
    );
    serde_json::from_str(spelled.get()).unwrap()
}

#[test]
fn d10_each_format_has_its_own_shape_of_a_tool() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = json!({
        "name": "mcp_fs_read", "title": "Read", "description": "Reads a file",
        "inputSchema": schema, "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true}, "_meta": {"a/b": 1},
    });
    let mut placed = tool.clone();
    placed["_meta"] = json!({"a/b": 1, "portway/server": "fs", "portway/tool": "read"});
    let table = [
        (Format::Mcp, placed),
        (
            Format::OpenAi,
            json!({"type": "function", "function":
                {"name": "mcp_fs_read", "description": "Reads a file", "parameters": schema}}),
        ),
        (
            Format::Anthropic,
            json!({"name": "mcp_fs_read", "description": "Reads a file", "input_schema": schema}),
        ),
        (
            Format::Copilot,
            json!({"name": "mcp_fs_read", "description": "Reads a file", "parameters": schema,
                "skipPermission": true, "metadata": {"server": "fs", "tool": "read",
                    "title": "Read", "annotations": {"readOnlyHint": true}}}),
        ),
    ];
    for (format, expected) in table {
        assert_eq!(shown(format, &tool), expected, "{format:?}");
        assert_eq!(Format::find(format.name()), Some(format));
    }
    assert_eq!(Format::find("OpenAI"), None);
}

#[test]
fn d10_only_what_says_it_reads_goes_without_permission() {
    for hints in [
        json!({}),
        json!({"readOnlyHint": false}),
        json!({"readOnlyHint": "true"}),
    ] {
        let tool = json!({"name": "t", "inputSchema": {}, "annotations": hints});
        let tool = shown(Format::Copilot, &tool);
        assert!(tool.get("skipPermission").is_none(), "{tool}");
    }
}

#[test]
fn d10_there_is_a_description_and_it_is_not_too_long() {
    let long = "é".repeat(2000);
    let table = [
        (json!({"description": "d", "title": "t"}), "d"),
        (json!({"description": "  ", "title": "t"}), "t"),
        (json!({}), "read"),
    ];
    for (mut tool, expected) in table {
        tool["name"] = "n".into();
        assert_eq!(shown(Format::Anthropic, &tool)["description"], expected);
    }
    let tool = json!({"name": "n", "description": long, "inputSchema": {"anyOf": [
        {"required": ["a"]}, {"required": ["b"]}]}});
    let openai = shown(Format::OpenAi, &tool);
    let cut = openai["function"]["description"].as_str().unwrap();
    assert_eq!(cut.chars().count(), 1024);
    assert!(cut.ends_with("é…\nNeeds one of: a; b."), "{cut}");
    let whole = shown(Format::Anthropic, &tool);
    assert!(whole["description"].as_str().unwrap().starts_with(&long));
}
