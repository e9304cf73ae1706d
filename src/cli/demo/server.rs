//! The two servers of the demonstration, over stdio.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::DemoServer;
use wire::code;

/// The newest revision with a handshake. Portway spells it for modern clients.
const REVISION: &str = "2025-11-25";

/// The code of JSON-RPC for a line that is not JSON.
const PARSE_ERROR: i64 = -32700;
const MOST_NOTES: usize = 1000;

/// Serves until stdin ends.
pub(super) fn run(server: DemoServer) -> io::Result<()> {
    let mut state = DemoState {
        server,
        notes: BTreeMap::new(),
    };
    let mut out = io::stdout().lock();
    for line in io::stdin().lines() {
        if let Some(answer) = state.answer(&line?) {
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(())
}

struct DemoState {
    server: DemoServer,
    notes: BTreeMap<String, String>,
}

impl DemoState {
    /// The response to a request; `None` for a notification.
    fn answer(&mut self, line: &str) -> Option<String> {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) => return Some(refusal(&Value::Null, PARSE_ERROR, &error.to_string())),
        };
        let id = message.get("id")?;
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let result = match method {
            "initialize" => self.introduction(params),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": self.tools() }),
            "tools/call" => self.call(params),
            _ => {
                let text = format!("there is no method {method}");
                return Some(refusal(id, code::METHOD_NOT_FOUND, &text));
            }
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
    }

    fn introduction(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or(REVISION);
        let (name, instructions) = match self.server {
            DemoServer::Demo => ("demo", "Three small tools to try a gateway with."),
            DemoServer::Notes => ("notes", "Keeps notes until this server ends."),
        };
        json!({
            "protocolVersion": asked.min(REVISION),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
            "instructions": instructions,
        })
    }

    fn tools(&self) -> Value {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let number = json!({ "type": "number" });
        match self.server {
            DemoServer::Demo => json!([
                tool(
                    "echo",
                    "Returns the text",
                    json!({ "text": text("Any text") })
                ),
                tool(
                    "add",
                    "Adds two numbers",
                    json!({ "a": number, "b": number })
                ),
                tool("time", "Returns the time in UTC", json!({})),
            ]),
            DemoServer::Notes => json!([
                tool(
                    "write",
                    "Writes a note",
                    json!({ "title": text("Its name"), "text": text("Its content") })
                ),
                tool("read", "Reads a note", json!({ "title": text("Its name") })),
                tool("list", "Lists the titles of all notes", json!({})),
            ]),
        }
    }

    fn call(&mut self, params: &Value) -> Value {
        let name = params["name"].as_str().unwrap_or_default();
        match self.outcome(name, &params["arguments"]) {
            Ok(text) => json!({ "content": [{ "type": "text", "text": text }] }),
            Err(text) => {
                json!({ "content": [{ "type": "text", "text": text }], "isError": true })
            }
        }
    }

    /// The text of a tool's result, or of its error.
    fn outcome(&mut self, name: &str, arguments: &Value) -> Result<String, String> {
        let text = |name: &str| {
            let given = arguments[name].as_str().map(str::to_owned);
            given.ok_or_else(|| format!("{name}: a text is required"))
        };
        let number = |name: &str| {
            let given = arguments[name].as_f64();
            given.ok_or_else(|| format!("{name}: a number is required"))
        };
        match (self.server, name) {
            (DemoServer::Demo, "echo") => text("text"),
            (DemoServer::Demo, "add") => Ok((number("a")? + number("b")?).to_string()),
            (DemoServer::Demo, "time") => now(),
            (DemoServer::Notes, "write") if self.notes.len() >= MOST_NOTES => {
                Err(format!("there are {MOST_NOTES} notes already"))
            }
            (DemoServer::Notes, "write") => {
                let (title, text) = (text("title")?, text("text")?);
                let done = format!("{title} has {} characters", text.chars().count());
                self.notes.insert(title, text);
                Ok(done)
            }
            (DemoServer::Notes, "read") => {
                let title = text("title")?;
                let found = self.notes.get(&title).cloned();
                found.ok_or_else(|| format!("there is no note {title}"))
            }
            (DemoServer::Notes, "list") => {
                let titles: Vec<&str> = self.notes.keys().map(String::as_str).collect();
                Ok(titles.join("\n"))
            }
            _ => Err(format!("there is no tool {name}")),
        }
    }
}

fn now() -> Result<String, String> {
    let now = Timestamp::try_from(SystemTime::now()).map_err(|error| error.to_string())?;
    Ok(now.to_string())
}

/// A tool that needs all of its arguments.
fn tool(name: &str, description: &str, properties: Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(n, _)| n)
        .collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "required": required },
    })
}

fn refusal(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}
