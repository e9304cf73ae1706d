//! The JSON Schema of an `.mcp.json`, so that editors complete and check it. It
//! is no stricter than the reader; fields of other tools are allowed.

pub mod request;

use serde_json::{Value, json};

use super::definition::{MAX_TIMEOUT, TRANSPORT_WORDS};
use super::spec::{Containment, DEFAULT_TIMEOUT, EraChoice, Isolation, Privileges, TransportKind};
use super::view::millis;

/// The words that may mean one of these transports.
fn words(kinds: &[TransportKind]) -> Vec<&'static str> {
    let words = TRANSPORT_WORDS.iter();
    let fitting = words.filter(|(_, means)| means.iter().any(|kind| kinds.contains(kind)));
    fitting.map(|(word, _)| *word).collect()
}

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
    let says = |words: &[&str]| {
        json!({
            "anyOf": [
                { "properties": { "type": { "enum": words } }, "required": ["type"] },
                { "properties": { "transport": { "enum": words } }, "required": ["transport"] }
            ]
        })
    };
    let stdio = words(&[TransportKind::Stdio]);
    let remote = words(&[TransportKind::Http, TransportKind::Sse]);
    json!({
        "type": "object",
        "properties": fields(),
        "oneOf": [{ "required": ["command"] }, { "required": ["url"] }],
        "allOf": [
            { "if": says(&stdio), "then": { "required": ["command"] } },
            { "if": says(&remote), "then": { "required": ["url"] } }
        ]
    })
}

fn fields() -> Value {
    let words = words(TransportKind::ALL);
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
            "enum": EraChoice::WORDS,
            "default": EraChoice::default().as_str()
        },
        "containment": {
            "description": "How the processes of the server are held together; auto takes the strongest that works.",
            "enum": Containment::WORDS,
            "default": Containment::default().as_str()
        },
        "privileges": {
            "description": "Whether a local server keeps Portway's capabilities and may gain privileges from setuid programs.",
            "enum": Privileges::WORDS,
            "default": Privileges::default().as_str()
        },
        "isolation": {
            "description": "Who shares one process or connection; auto shares until the server asks its client something.",
            "enum": Isolation::WORDS,
            "default": Isolation::default().as_str()
        }
    })
}

#[cfg(test)]
mod tests;
