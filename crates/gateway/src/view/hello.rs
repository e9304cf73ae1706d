//! How an endpoint introduces itself.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::View;
use fleet::Offer;
use store::ExposedServers;
use wire::Era;
use wire::meta::SERVER_INFO;
use wire::method::TASKS;
use wire::object::{Object, each_member, is_null};

/// All that an endpoint of many servers can do. It is the same whoever runs:
/// a legacy client is told once, and servers come and go.
const ALL: &str = r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#;

pub(super) const INTRODUCTION: &str = "These are the tools, resources and prompts of several MCP servers. \
    A tool or prompt named mcp_<server>_<name> belongs to that server.";

pub(super) struct EndpointInfo {
    pub info: Arc<RawValue>,
    /// As JSON, so that nothing is escaped again for each client.
    pub instructions: Option<Box<RawValue>>,
    modern: Box<RawValue>,
    legacy: Box<RawValue>,
    offered: BTreeSet<String>,
    discover: OnceLock<Arc<RawValue>>,
}

impl EndpointInfo {
    /// For many servers together.
    pub(super) fn ours() -> EndpointInfo {
        let all = RawValue::from_string(ALL.to_owned()).expect("a literal");
        EndpointInfo::portways(&all)
    }

    /// For an entry. Without any resource that is listed there is still
    /// something to read: what a tool's result links to.
    pub(super) fn of_entry(exposes: &ExposedServers) -> EndpointInfo {
        let mut all = json!({"tools": {"listChanged": true}, "resources": {}, "logging": {}});
        if !exposes.resources.is_empty() {
            all["resources"] = json!({"listChanged": true, "subscribe": true});
        }
        if !exposes.prompts.is_empty() {
            all["prompts"] = json!({"listChanged": true});
        }
        if *exposes != ExposedServers::default() {
            all["completions"] = json!({});
        }
        EndpointInfo::portways(&made(&all))
    }

    fn portways(capabilities: &RawValue) -> EndpointInfo {
        let info = json!({"name": "portway", "version": env!("CARGO_PKG_VERSION")});
        EndpointInfo {
            info: Arc::from(made(&info)),
            instructions: None,
            offered: named(capabilities),
            modern: capabilities.to_owned(),
            legacy: capabilities.to_owned(),
            discover: OnceLock::new(),
        }
    }

    /// For one server: what it says of itself, in either era's words.
    pub(super) fn of(server: &str, offer: &Offer) -> EndpointInfo {
        let peer = &offer.peer;
        let info = match &peer.server_info {
            Some(info) => info.clone(),
            None => made(&json!({"name": server, "version": "unknown"})),
        };
        let carried = carried(&peer.capabilities);
        let mut offered = named(&carried);
        if !wire::era::at_least(&peer.version, "2025-03-26") {
            // Completion was there before its capability.
            offered.insert("completions".to_owned());
        }
        EndpointInfo {
            info: Arc::from(info),
            instructions: peer.instructions.as_ref().map(made),
            offered,
            modern: carried.clone(),
            legacy: carried,
            discover: OnceLock::new(),
        }
    }

    /// For a server that is not there.
    pub(super) fn nobody(server: &str) -> EndpointInfo {
        let nothing = || made(&json!({}));
        EndpointInfo {
            info: Arc::from(made(&json!({"name": server, "version": "unknown"}))),
            instructions: None,
            modern: nothing(),
            legacy: nothing(),
            offered: BTreeSet::new(),
            discover: OnceLock::new(),
        }
    }

    pub(super) fn offers(&self, capability: &str) -> bool {
        self.offered.contains(capability)
    }
}

fn named(capabilities: &RawValue) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    each_member(capabilities, |key, value| {
        if !is_null(value) {
            names.insert(key.decoded().into_owned());
        }
    });
    names
}

/// A server's capabilities without those we do not carry: tasks, of either
/// era. Nothing else differs between the eras.
fn carried(capabilities: &RawValue) -> Box<RawValue> {
    let Some(mut object) = Object::read(capabilities) else {
        return made(&json!({}));
    };
    object.remove("tasks");
    if let Some(mut extensions) = object.open("extensions").flatten()
        && extensions.remove(TASKS)
    {
        object.set_object("extensions", extensions);
    }
    wire::compact(&object.into_raw()).into_owned()
}

fn made(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("plain data serialises into memory")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    protocol_version: &'a str,
    capabilities: &'a RawValue,
    server_info: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult<'a> {
    supported_versions: [&'a str; 1],
    capabilities: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a RawValue>,
    result_type: &'a str,
    ttl_ms: u64,
    cache_scope: &'a str,
    #[serde(rename = "_meta")]
    meta: Box<RawValue>,
}

impl View {
    pub fn capabilities(&self, era: Era) -> &RawValue {
        match era {
            Era::Modern => &self.hello.modern,
            Era::Legacy => &self.hello.legacy,
        }
    }

    pub fn server_info(&self) -> &RawValue {
        &self.hello.info
    }

    pub fn instructions(&self) -> Option<&RawValue> {
        self.hello.instructions.as_deref()
    }

    /// The result of `initialize`, where `version` was agreed on.
    pub fn initialize(&self, version: &str) -> Box<RawValue> {
        made(&InitializeResult {
            protocol_version: version,
            capabilities: &self.hello.legacy,
            server_info: &self.hello.info,
            instructions: self.instructions(),
        })
    }

    /// The result of `server/discover`.
    pub fn discover(&self) -> Arc<RawValue> {
        let make = || {
            let mut meta = Object::new();
            meta.set(SERVER_INFO, &self.hello.info);
            Arc::from(made(&DiscoverResult {
                supported_versions: [wire::MODERN],
                capabilities: &self.hello.modern,
                instructions: self.instructions(),
                result_type: "complete",
                ttl_ms: 0,
                cache_scope: "private",
                meta: meta.into_raw(),
            }))
        };
        self.hello.discover.get_or_init(make).clone()
    }
}
