//! What an entry gives, and when it stops giving: at the gateway, without a
//! front before it.

mod granted;
mod revoked;

use std::sync::Arc;

use config::Secret;
use gateway::{
    Caller, Client, ClientRequest, Gateway, ReplyItem, ReplyStream, Seal, Sessions, UserServers,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use store::{
    ApiKey, Creation, EntryId, ExposedServers, GrantLookup, NewBinding, NewEntry, NewTool,
    OwnerScope, ToolId,
};
use tokio_util::sync::CancellationToken;
use wire::Era;

use crate::app::PATIENCE;
use crate::rooms::Rooms;

const ALL: OwnerScope = OwnerScope::Everyone;

/// Rooms with a gateway and entries.
pub(crate) struct EntryGateway {
    pub rooms: Rooms,
    pub gateway: Gateway,
}

pub(crate) struct CreatedEntry {
    pub id: EntryId,
    pub tools: Vec<ToolId>,
    pub key: ApiKey,
}

/// A tool to be granted: its name, its server, its name there.
pub(crate) type ToolFields<'a> = (&'a str, &'a str, &'a str);

impl EntryGateway {
    pub(crate) async fn of(servers: Value) -> EntryGateway {
        let rooms = Rooms::of(json!({ "mcpServers": servers })).await;
        let seal = Arc::new(Seal::new(&Secret::new("a secret of thirty-two characters")));
        let gateway = Gateway::new(
            rooms.fleet.clone(),
            rooms.store.clone(),
            UserServers::new(None, rooms.registry.filters()),
            None,
            Sessions::new(seal.clone()),
            seal,
            CancellationToken::new(),
        );
        EntryGateway { rooms, gateway }
    }

    pub(crate) async fn entry(
        &self,
        tools: &[ToolFields<'_>],
        exposes: ExposedServers,
    ) -> CreatedEntry {
        let store = &self.rooms.store;
        let mut ids = Vec::new();
        for (name, server, tool) in tools {
            let new = NewTool {
                owner: "ann".into(),
                name: (*name).into(),
                description: None,
                server: (*server).into(),
                tool: (*tool).into(),
            };
            match store.create_tool(new, None).await.unwrap() {
                Creation::New(tool) => ids.push(tool.id),
                Creation::Earlier(_) => panic!("made before"),
            }
        }
        let key = ApiKey::random().unwrap();
        let bound = ids.iter().map(|tool| NewBinding {
            tool: *tool,
            enabled: true,
        });
        let new = NewEntry {
            owner: "ann".into(),
            name: "an entry".into(),
            enabled: true,
            key: key.record(None),
            exposes,
            filter: None,
            bindings: bound.collect(),
        };
        match store.create_entry(new, None).await.unwrap() {
            Creation::New(entry) => CreatedEntry {
                id: entry.id,
                tools: ids,
                key,
            },
            Creation::Earlier(_) => panic!("made before"),
        }
    }

    /// Whoever has the key now.
    pub(crate) fn caller(&self, made: &CreatedEntry) -> Caller {
        match self.rooms.store.grant(&made.key.digest()) {
            GrantLookup::Yes(grant) => Caller::entry(grant),
            other => panic!("{other:?}"),
        }
    }

    /// The whole answer to a modern client.
    pub(crate) async fn ask(&self, caller: &Caller, method: &str, params: Value) -> Value {
        let (id, params) = (to_raw_value(&1).unwrap(), to_raw_value(&params).unwrap());
        let incoming = ClientRequest::new(&id, method, Some(&params));
        let reply = self.gateway.request(caller, &client(), incoming).last();
        let reply = tokio::time::timeout(PATIENCE, reply).await;
        let reply = reply.expect("an answer comes");
        serde_json::from_slice(&reply.body.whole()).unwrap()
    }

    pub(crate) async fn call(&self, caller: &Caller, tool: &str, args: Value) -> Value {
        let params = json!({"name": tool, "arguments": args});
        self.ask(caller, "tools/call", params).await
    }

    pub(crate) async fn names(&self, caller: &Caller) -> Vec<String> {
        let listed = self.ask(caller, "tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    }
}

pub(crate) fn exposes(resources: &[&str], prompts: &[&str]) -> ExposedServers {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ExposedServers {
        resources: owned(resources),
        prompts: owned(prompts),
    }
}

/// The text of a tool's answer, or the message of an error.
pub(crate) fn text(answer: &Value) -> &str {
    let said = &answer["result"]["content"][0]["text"];
    let said = said.as_str().or(answer["error"]["message"].as_str());
    said.unwrap_or_else(|| panic!("{answer:#}"))
}

/// A modern client's open stream.
pub(crate) struct SubscribedClient(ReplyStream);

impl SubscribedClient {
    /// The next message, as it is written.
    pub(crate) async fn next(&mut self) -> String {
        let item = tokio::time::timeout(PATIENCE, self.0.next()).await;
        let bytes = match item.expect("something comes") {
            ReplyItem::Message(message) => message,
            ReplyItem::Last(reply) => reply.body.into_bytes(),
        };
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Waits for the answer that ends it; `said` is what came already.
    pub(crate) async fn ended(mut self, mut said: String) {
        while !said.contains(r#""result""#) {
            said = self.next().await;
        }
    }
}

impl EntryGateway {
    pub(crate) async fn listen(&self, caller: &Caller, params: Value) -> SubscribedClient {
        let (id, params) = (to_raw_value(&7).unwrap(), to_raw_value(&params).unwrap());
        let incoming = ClientRequest::new(&id, "subscriptions/listen", Some(&params));
        SubscribedClient(self.gateway.request(caller, &client(), incoming))
    }
}

fn client() -> Client {
    Client {
        era: Era::Modern,
        version: wire::MODERN,
        capabilities: upstream::no_capabilities(),
        log_level: None,
        session: None,
    }
}
