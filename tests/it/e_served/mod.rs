//! Entries from end to end: made over REST, used over MCP through every door
//! by clients of both eras, on each store.

mod catalog;
mod filtered;
pub(crate) mod hung_up;
mod keys;
mod killed;
mod links;
mod matrix;
mod moved;
mod outage;
mod owners;
mod revoked;
mod shares;

use serde_json::{Value, json};

use crate::app::{App, HttpAnswer, fixtures};
use crate::e_records::{Storage, TOOLS, number, text};
use crate::mcp_front::{BOTH, MODERN, modern_body};

/// How an entry is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryRoute {
    /// Its own address.
    Address,
    /// The shared endpoint, with its key in a header.
    Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryEra {
    Legacy,
    Modern,
}

pub(crate) const WAYS: [(EntryRoute, EntryEra); 4] = [
    (EntryRoute::Address, EntryEra::Modern),
    (EntryRoute::Header, EntryEra::Modern),
    (EntryRoute::Address, EntryEra::Legacy),
    (EntryRoute::Header, EntryEra::Legacy),
];

/// Somebody who has a key, and a session where they need one.
#[derive(Clone)]
pub(crate) struct Agent<'a> {
    app: &'a App,
    path: String,
    headers: Vec<(&'static str, String)>,
    speech: EntryEra,
}

impl<'a> Agent<'a> {
    pub(crate) async fn new(app: &'a App, key: &str, way: (EntryRoute, EntryEra)) -> Agent<'a> {
        Agent::at(app, key, way, "").await
    }

    /// Narrowed by a named filter.
    pub(crate) async fn filtered(
        app: &'a App,
        key: &str,
        way: (EntryRoute, EntryEra),
        filter: &str,
    ) -> Agent<'a> {
        Agent::at(app, key, way, &format!("?filter={filter}")).await
    }

    async fn at(
        app: &'a App,
        key: &str,
        (way, speech): (EntryRoute, EntryEra),
        query: &str,
    ) -> Agent<'a> {
        let mut headers = vec![("accept", BOTH.to_owned())];
        let path = match way {
            EntryRoute::Address => format!("/api/v1/mcp_v2/server/{key}"),
            EntryRoute::Header => {
                headers.push(("x-api-key", key.to_owned()));
                "/mcp".to_owned()
            }
        };
        let mut agent = Agent {
            app,
            path: path + query,
            headers,
            speech,
        };
        if speech == EntryEra::Legacy {
            agent.greet().await;
        }
        agent
    }

    async fn greet(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = self.send("initialize", params).await;
        assert_eq!(hello.status, 200, "{}", hello.text);
        let session = hello.headers["mcp-session-id"].to_str().unwrap();
        self.headers.push(("mcp-session-id", session.to_owned()));
    }

    /// The answer as it came.
    pub(crate) async fn send(&self, method: &str, params: Value) -> HttpAnswer {
        let answer = self.try_send(method, params).await;
        answer.unwrap_or_else(|| panic!("{method}: cut off; log: {}", self.app.log()))
    }

    /// `None` where the connection did not last until the answer.
    async fn try_send(&self, method: &str, params: Value) -> Option<HttpAnswer> {
        let mut headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let name = ["name", "uri"].iter().find_map(|key| params[*key].as_str());
        let name = name.map(ToOwned::to_owned);
        let body = match self.speech {
            EntryEra::Legacy => {
                json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            }
            EntryEra::Modern => modern_body(1, method, params),
        };
        if self.speech == EntryEra::Modern {
            headers.push(("mcp-protocol-version", MODERN));
            headers.push(("mcp-method", method));
            headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
        }
        let (path, body) = (&self.path, Some(body.to_string()));
        self.app.try_request("POST", path, body, &headers).await
    }

    /// The JSON-RPC answer, or the refusal of the front; `null` where a stream
    /// or its connection ended without one.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let Some(answer) = self.try_send(method, params).await else {
            return Value::Null;
        };
        if !answer.body.is_null() {
            return answer.body;
        }
        let lines = answer.text.lines().rev();
        let mut data = lines.filter_map(|line| line.strip_prefix("data:"));
        let last = data.next().and_then(|data| serde_json::from_str(data).ok());
        let ended = answer.headers["content-type"] == "text/event-stream";
        last.or_else(|| ended.then_some(Value::Null))
            .unwrap_or_else(|| panic!("{method}: {answer:?}"))
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }

    /// The names of the tools it sees, in order.
    pub(crate) async fn names(&self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("{listed:#}"));
        let mut names: Vec<String> = tools
            .iter()
            .map(|tool| text(&tool["name"]).to_owned())
            .collect();
        names.sort();
        names
    }
}

/// The text of a tool's answer, or the message of whoever refused.
#[track_caller]
pub(crate) fn told(answer: &Value) -> &str {
    let said = &answer["result"]["content"][0]["text"];
    let said = said.as_str().or(answer["error"]["message"].as_str());
    said.unwrap_or_else(|| panic!("{answer:#}"))
}

impl App {
    /// The id of a record for a tool of a server.
    pub(crate) async fn tool_of(&self, name: &str, server: &str, tool: &str) -> i64 {
        let body = json!({"name": name, "server": server, "tool": tool, "allow_missing": true});
        number(&self.post(TOOLS, body).await.expect(201)["id"])
    }
}

/// Portway with fixtures, all of them up.
pub(crate) async fn with_fixtures(storage: Storage, servers: &[(&str, &[&str])]) -> App {
    let app = storage.setup().mcp(fixtures(servers)).start().await;
    for (name, _) in servers {
        app.until_status(name, "connected").await;
    }
    app
}
