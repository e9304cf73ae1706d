//! Snapshots of fleets without processes, for tests.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use config::filters::Filter;
use config::layers::{Source, SourceKind};
use fleet::catalog::{Catalog, CatalogItem, ListFacts, ListKind};
use fleet::registry::DesiredServer;
use fleet::{Offer, ServerState, ServerView, Snapshot};
use store::{
    ApiKey, Entry, EntryId, ExposedServers, Grant, KeyRecord, Timestamp, ToolId, ToolRecord,
};
use upstream::Peer;
use wire::Era;
use wire::result::Freshness;

/// A snapshot of a fleet without processes.
#[derive(Default)]
pub(crate) struct SnapshotBuilder(Snapshot);

impl SnapshotBuilder {
    pub(crate) fn add(mut self, name: &str, offer: Option<Arc<Offer>>) -> SnapshotBuilder {
        let wanted = DesiredServer {
            id: uuid::Uuid::new_v4(),
            name: name.into(),
            spec: Err(Arc::default()),
            run: true,
            generation: 1,
            asks: false,
            restarts: 0,
            source: Source {
                kind: SourceKind::Mcp,
                path: ".mcp.json".into(),
            },
            shadows: Vec::new(),
            cause: Default::default(),
        };
        let view = ServerView {
            wanted: Arc::new(wanted),
            state: ServerState::Stopped,
            since: SystemTime::now(),
            settled: true,
            settled_once: true,
            catalog: Arc::default(),
            offer,
            process: None,
            isolation: None,
            restarts: 0,
            history: Arc::default(),
            log: Arc::default(),
        };
        self.0.servers.insert(name.into(), Arc::new(view));
        self.0.offers += 1;
        self
    }

    pub(crate) fn snapshot(self) -> Arc<Snapshot> {
        Arc::new(self.0)
    }
}

/// The offer of a server.
pub(crate) struct ServerBuilder {
    catalog: Catalog,
    era: Era,
    capabilities: &'static str,
    stale: bool,
}

pub(crate) fn listed(era: Era) -> ServerBuilder {
    ServerBuilder {
        catalog: Catalog::default(),
        era,
        capabilities: r#"{"tools":{"listChanged":true},"resources":{},"prompts":{},"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}}}"#,
        stale: false,
    }
}

impl ServerBuilder {
    pub(crate) fn with(mut self, kind: ListKind, entries: &[Value]) -> ServerBuilder {
        let item = |entry: &Value| {
            let raw = serde_json::value::to_raw_value(entry).unwrap();
            CatalogItem::new(kind, Arc::from(raw)).unwrap()
        };
        let facts = ListFacts {
            freshness: Freshness {
                ttl_ms: 5000,
                public: true,
            },
            ..ListFacts::default()
        };
        self.catalog
            .put(kind, entries.iter().map(item).collect(), facts);
        self
    }

    pub(crate) fn tools(self, names: &[&str]) -> ServerBuilder {
        let tools: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
            .collect();
        self.with(ListKind::Tools, &tools)
    }

    pub(crate) fn capable(mut self, capabilities: &'static str) -> ServerBuilder {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn stale(mut self) -> ServerBuilder {
        self.stale = true;
        self
    }

    pub(crate) fn offer(self) -> Option<Arc<Offer>> {
        Some(Arc::new(Offer {
            catalog: Arc::new(self.catalog),
            peer: Arc::new(peer(self.era, self.capabilities)),
            stale: self.stale,
        }))
    }
}

/// The handshake of a server of this era with these capabilities.
fn peer(era: Era, capabilities: &str) -> Peer {
    let capabilities = RawValue::from_string(capabilities.to_owned()).unwrap();
    let version = match era {
        Era::Modern => wire::MODERN,
        Era::Legacy => wire::LEGACY[0],
    };
    let mut peer = Peer::ourselves(capabilities, "");
    peer.era = era;
    peer.version = version.to_owned();
    peer.server_info = None;
    peer.instructions = None;
    peer
}

/// A grant of an entry with these tools: name, server, tool.
pub(crate) fn grant(
    entry: i64,
    tools: &[(&str, &str, &str)],
    exposes: ExposedServers,
) -> Arc<Grant> {
    grant_of(entry, records(tools), exposes)
}

pub(crate) fn records(tools: &[(&str, &str, &str)]) -> Vec<Arc<ToolRecord>> {
    let now = Timestamp::now();
    let record = |(number, tool): (usize, &(&str, &str, &str))| ToolRecord {
        id: ToolId(number as i64),
        owner: "ann".into(),
        name: tool.0.into(),
        description: None,
        server: tool.1.into(),
        tool: tool.2.into(),
        created_at: now,
        updated_at: now,
    };
    let records = tools.iter().enumerate().map(record);
    records.map(Arc::new).collect()
}

pub(crate) fn grant_of(
    entry: i64,
    tools: Vec<Arc<ToolRecord>>,
    exposes: ExposedServers,
) -> Arc<Grant> {
    grant_with(entry, enabled(tools), exposes, None)
}

pub(crate) fn enabled(tools: Vec<Arc<ToolRecord>>) -> Vec<(Arc<ToolRecord>, bool)> {
    tools.into_iter().map(|tool| (tool, true)).collect()
}

pub(crate) fn grant_with(
    entry: i64,
    bound: Vec<(Arc<ToolRecord>, bool)>,
    exposes: ExposedServers,
    filter: Option<Filter>,
) -> Arc<Grant> {
    let now = Timestamp::now();
    let entry = Entry {
        id: EntryId(entry),
        owner: "ann".into(),
        name: format!("entry {entry}"),
        enabled: true,
        key: KeyRecord {
            digest: ApiKey::random().unwrap().digest(),
            hint: "abcd".into(),
            created_at: now,
            expires_at: None,
            last_used_at: None,
        },
        exposes,
        filter,
        created_at: now,
        updated_at: now,
    };
    Arc::new(Grant::new(&entry, bound).unwrap())
}
