//! The self-description of an endpoint: `initialize` and `server/discover`.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::View;
use fleet::Offer;
use store::ExposedServers;
use wire::meta::SERVER_INFO;
use wire::method::TASKS;
use wire::object::{Object, each_member, is_null};

/// The capabilities of an endpoint of many servers. They do not depend on the
/// running servers: a legacy client reads them once, and servers come and go.
const ALL: &str = r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#;

pub(super) const INTRODUCTION: &str = "These are the tools, resources and prompts of several MCP servers. \
    A tool or prompt named mcp_<server>_<name> belongs to that server.";

pub(super) struct EndpointInfo {
    pub server_info: Arc<RawValue>,
    /// As JSON, so that it is not escaped again for each client.
    pub instructions: Option<Box<RawValue>>,
    /// In the words of both eras.
    capabilities: Box<RawValue>,
    /// Their names.
    offered: BTreeSet<String>,
    discover: OnceLock<Arc<RawValue>>,
}

impl EndpointInfo {
    /// For many servers together.
    pub(super) fn of_portway() -> EndpointInfo {
        let all = RawValue::from_string(ALL.to_owned()).expect("a literal");
        EndpointInfo::new(portway_info(), all)
    }

    /// For an entry. Without any listed resource clients may still read those
    /// that a tool's result links to.
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
        EndpointInfo::new(portway_info(), raw(&all))
    }

    /// For one server: its own.
    pub(super) fn of_server(server: &str, offer: &Offer) -> EndpointInfo {
        let peer = &offer.peer;
        let info = peer.server_info.clone();
        let mut info = EndpointInfo {
            instructions: peer.instructions.as_ref().map(raw),
            ..EndpointInfo::new(
                info.unwrap_or_else(|| unknown_info(server)),
                without_tasks(&peer.capabilities),
            )
        };
        if !wire::era::at_least(&peer.version, "2025-03-26") {
            // Completion is older than its capability.
            info.offered.insert("completions".to_owned());
        }
        info
    }

    /// For a server that is not connected.
    pub(super) fn of_absent(server: &str) -> EndpointInfo {
        EndpointInfo::new(unknown_info(server), raw(&json!({})))
    }

    fn new(server_info: Box<RawValue>, capabilities: Box<RawValue>) -> EndpointInfo {
        let mut offered = BTreeSet::new();
        each_member(&capabilities, |key, value| {
            if !is_null(value) {
                offered.insert(key.decoded().into_owned());
            }
        });
        EndpointInfo {
            server_info: Arc::from(server_info),
            instructions: None,
            capabilities,
            offered,
            discover: OnceLock::new(),
        }
    }

    pub(super) fn offers(&self, capability: &str) -> bool {
        self.offered.contains(capability)
    }
}

fn portway_info() -> Box<RawValue> {
    raw(&json!({"name": "portway", "version": env!("CARGO_PKG_VERSION")}))
}

fn unknown_info(server: &str) -> Box<RawValue> {
    raw(&json!({"name": server, "version": "unknown"}))
}

/// A server's capabilities without tasks of either era, which Portway does not
/// support.
fn without_tasks(capabilities: &RawValue) -> Box<RawValue> {
    let Some(mut object) = Object::read(capabilities) else {
        return raw(&json!({}));
    };
    object.remove("tasks");
    if let Some(mut extensions) = object.open("extensions").flatten()
        && extensions.remove(TASKS)
    {
        object.set_object("extensions", extensions);
    }
    wire::compact(&object.into_raw()).into_owned()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
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
    pub(crate) fn server_info(&self) -> &RawValue {
        &self.info.server_info
    }

    pub(super) fn instructions(&self) -> Option<&RawValue> {
        self.info.instructions.as_deref()
    }

    /// The result of `initialize`, where `version` was agreed on.
    pub(crate) fn initialize(&self, version: &str) -> Box<RawValue> {
        raw(&InitializeResult {
            protocol_version: version,
            capabilities: &self.info.capabilities,
            server_info: &self.info.server_info,
            instructions: self.instructions(),
        })
    }

    /// The result of `server/discover`.
    pub(crate) fn discover(&self) -> Arc<RawValue> {
        let make = || {
            let mut meta = Object::new();
            meta.set(SERVER_INFO, &self.info.server_info);
            Arc::from(raw(&DiscoverResult {
                supported_versions: [wire::MODERN],
                capabilities: &self.info.capabilities,
                instructions: self.instructions(),
                result_type: "complete",
                ttl_ms: 0,
                cache_scope: "private",
                meta: meta.into_raw(),
            }))
        };
        self.info.discover.get_or_init(make).clone()
    }
}
