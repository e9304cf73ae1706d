//! Schemas of `/api/mcp/tools`.

use serde_json::{Value, json};

use super::schemas::{list, named, object};
use gateway::format::Format;

pub(super) fn schemas() -> Value {
    let text = json!({"type": "string"});
    let formats = json!({"enum": Format::ALL.map(Format::name)});
    let open = json!({"type": "object"});
    // The APIs of models accept no other names.
    let name = json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"});
    let parameters = json!({
        "type": "object",
        "required": ["type", "properties"],
        "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
    });
    let described = [("name", &name), ("description", &text)];
    let function = object(
        &[&described[..], &[("parameters", &parameters)]].concat(),
        &[],
    );
    let anthropic = [&described[..], &[("input_schema", &parameters)]].concat();
    let copilot = [
        &described[..],
        &[("parameters", &parameters), ("metadata", &open)],
    ]
    .concat();
    json!({
        "ToolList": object(
            &[("format", &formats), ("hash", &text), ("tools", &list("FormattedTool"))],
            &[],
        ),
        "FormattedTool": {"anyOf": [
            named("McpTool"), named("OpenAiTool"), named("AnthropicTool"), named("CopilotTool"),
        ]},
        "McpTool": {"type": "object", "required": ["name", "inputSchema"],
            "properties": {"name": text, "inputSchema": open}},
        "OpenAiTool": object(
            &[("type", &json!({"const": "function"})), ("function", &function)],
            &[],
        ),
        "AnthropicTool": object(&anthropic, &[]),
        "CopilotTool": object(&copilot, &[("skipPermission", &json!({"const": true}))]),
        "ToolCall": calls(),
        "ToolAnswer": {"anyOf": [
            named("McpResult"), named("OpenAiResult"), named("AnthropicResult"),
            named("CopilotResult"),
        ]},
        "McpResult": {"type": "object", "required": ["content"],
            "properties": {"content": {"type": "array", "items": open}}},
        "OpenAiResult": object(
            &[("role", &json!({"const": "tool"})), ("content", &text)],
            &[("tool_call_id", &text)],
        ),
        "AnthropicResult": object(&[
            ("type", &json!({"const": "tool_result"})),
            ("content", &json!({"type": "array", "items": open})),
            ("is_error", &json!({"type": "boolean"})),
        ], &[("tool_use_id", &text)]),
        "CopilotResult": object(&[
            ("textResultForLlm", &text),
            ("resultType", &json!({"enum": ["success", "failure", "timeout"]})),
        ], &[
            ("error", &text),
            ("binaryResultsForLlm", &json!({"type": "array", "items": open})),
        ]),
    })
}

/// The arguments alone, or the whole call as a model made it, whose other
/// fields are ignored here.
fn calls() -> Value {
    let text = json!({"type": ["string", "null"]});
    let open = json!({"type": "object"});
    let same = json!({"type": ["string", "null"], "description": "The tool of the address"});
    let written = json!({
        "description": "JSON, as OpenAI's models write it",
        "anyOf": [{"type": "string"}, open],
    });
    json!({"anyOf": [
        object(&[], &[
            ("arguments", &json!({"type": ["object", "null"]})), ("id", &text), ("name", &same),
        ]),
        {"type": "object", "required": ["function"], "properties": {
            "id": text,
            "type": {"const": "function"},
            "function": {"type": "object", "properties": {"name": text, "arguments": written}},
        }},
        {"type": "object", "required": ["input"], "properties": {
            "id": text,
            "type": {"const": "tool_use"},
            "name": text,
            "input": open,
            "function": false,
        }},
    ]})
}
