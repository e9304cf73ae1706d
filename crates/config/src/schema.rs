//! The JSON Schema of an `.mcp.json`, so that editors complete and check it. It
//! is no stricter than the reader; fields of other tools are allowed.

pub mod request;

use serde_json::{Value, json};

use super::definition::{CONTAINMENTS, ERAS, ISOLATIONS, MAX_TIMEOUT, PRIVILEGES};
use super::spec::{Containment, DEFAULT_TIMEOUT, EraChoice, Isolation, Privileges};

const STDIO_WORDS: &[&str] = &["stdio", "local"];
const REMOTE_WORDS: &[&str] = &[
    "http",
    "streamable-http",
    "streamable_http",
    "streamableHttp",
    "sse",
    "remote",
];

/// The pattern of a name. It excludes invalid characters, because not every
/// validator knows the letters of all languages: first, inside, last.
const NAME: &str =
    r"^[^\x00-/:-@\[-`{-\x7f]([^\x00-\x1f!-,/:-@\[-^`{-\x7f]{0,62}[^\x00-,/:-@\[-^`{-\x7f])?$";

/// The whole schema.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "MCP servers",
        "type": "object",
        "properties": {
            "mcpServers": {
                "description": "The servers, by name.",
                "type": "object",
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "$ref": "#/$defs/server" }
            }
        },
        "$defs": {
            "server": server(),
            "variables": {
                "type": "object",
                "propertyNames": { "pattern": "^[^=]+$" },
                "additionalProperties": { "type": "string" }
            },
            "headers": {
                "type": "object",
                "propertyNames": { "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" },
                "additionalProperties": { "type": "string" }
            }
        }
    })
}

fn server() -> Value {
    let words: Vec<&str> = STDIO_WORDS.iter().chain(REMOTE_WORDS).copied().collect();
    let says = |words: &[&str]| {
        json!({
            "anyOf": [
                { "properties": { "type": { "enum": words } }, "required": ["type"] },
                { "properties": { "transport": { "enum": words } }, "required": ["transport"] }
            ]
        })
    };
    json!({
        "type": "object",
        "properties": fields(&words),
        "oneOf": [{ "required": ["command"] }, { "required": ["url"] }],
        "allOf": [
            { "if": says(STDIO_WORDS), "then": { "required": ["command"] } },
            { "if": says(REMOTE_WORDS), "then": { "required": ["url"] } }
        ]
    })
}

fn fields(words: &[&str]) -> Value {
    let eras: Vec<&str> = ERAS.iter().map(|c| EraChoice::as_str(*c)).collect();
    let containments: Vec<&str> = CONTAINMENTS
        .iter()
        .map(|c| Containment::as_str(*c))
        .collect();
    let privileges: Vec<&str> = PRIVILEGES.iter().map(|c| Privileges::as_str(*c)).collect();
    let isolations: Vec<&str> = ISOLATIONS.iter().map(|c| Isolation::as_str(*c)).collect();
    let expands = "${VAR} and ${VAR:-default} are filled in when it is connected.";
    json!({
        "type": {
            "description": "How the server is reached. Without it, a command means stdio and a url means http.",
            "enum": words
        },
        "transport": { "description": "The same as type.", "enum": words },
        "command": {
            "description": format!("The program to start. {expands}"),
            "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 }
            ]
        },
        "args": {
            "description": format!("Its arguments. {expands}"),
            "type": "array",
            "items": { "type": "string" }
        },
        "env": {
            "description": format!("Its environment variables. {expands}"),
            "$ref": "#/$defs/variables"
        },
        "environment": { "description": "The same as env.", "$ref": "#/$defs/variables" },
        "cwd": { "description": "The directory it is started in.", "type": "string", "minLength": 1 },
        "url": {
            "description": format!("The address of a remote server. {expands}"),
            "type": "string",
            "pattern": "^([hH][tT][tT][pP][sS]?://|\\$\\{)"
        },
        "headers": {
            "description": format!("What is sent along to a remote server. {expands}"),
            "$ref": "#/$defs/headers"
        },
        "enabled": { "description": "Connect it at start.", "type": "boolean", "default": true },
        "disabled": { "description": "The opposite of enabled.", "type": "boolean", "default": false },
        "timeout": {
            "description": "The limit of one call in milliseconds; progress restarts it.",
            "type": "integer",
            "minimum": 1,
            "maximum": millis(MAX_TIMEOUT),
            "default": millis(DEFAULT_TIMEOUT)
        },
        "era": {
            "description": "Which MCP to speak; auto finds out.",
            "enum": eras,
            "default": EraChoice::default().as_str()
        },
        "containment": {
            "description": "How the processes of the server are held together; auto takes the strongest that works.",
            "enum": containments,
            "default": Containment::default().as_str()
        },
        "privileges": {
            "description": "Whether a local server keeps Portway's capabilities and may gain privileges from setuid programs.",
            "enum": privileges,
            "default": Privileges::default().as_str()
        },
        "isolation": {
            "description": "Who shares one process or connection; auto shares until the server asks its client something.",
            "enum": isolations,
            "default": Isolation::default().as_str()
        }
    })
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
