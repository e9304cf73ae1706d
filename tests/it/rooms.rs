//! Registry and fleet without the program around them: for what needs a call
//! to a server, which nothing outside can make yet.

use std::sync::Arc;
use std::time::Duration;

use config::body::{merge_patch, parse_body};
use fleet::registry::{self, EditBasis, Registry, SourceFiles};
use fleet::{CallError, CallItem, CallRequest, CallStream, Fleet, FleetConfig, Publisher, Slot};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::Store;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use upstream::ConnectionLimits;

use crate::app::{PATIENCE, eventually, fixture, fixtures};
use crate::process::forest::shim;

pub(crate) struct Rooms {
    pub registry: Arc<Registry>,
    pub fleet: Fleet,
    pub store: Arc<Store>,
    dir: TempDir,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Rooms {
    /// Fixtures by name and arguments; connected when this returns.
    pub(crate) async fn open(servers: &[(&str, &[&str])]) -> Rooms {
        Rooms::of(fixtures(servers)).await
    }

    /// The servers of an `.mcp.json`; connected when this returns.
    pub(crate) async fn of(file: Value) -> Rooms {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".mcp.json"), file.to_string()).unwrap();
        let store = Store::open_files(&dir.path().join("data")).unwrap().store;
        let store: Arc<Store> = Arc::new(store);
        let files = SourceFiles::new(dir.path().to_owned(), None);
        let registry = Registry::open(files, store.clone(), dir.path().join("data")).await;
        let registry = Arc::new(registry.unwrap());
        let (publisher, fleet) = Publisher::new();
        let stop = CancellationToken::new();
        let work = fleet::run(
            registry.watch(),
            Arc::new(surroundings(&dir)),
            publisher,
            stop.clone(),
        );
        let rooms = Rooms {
            registry,
            fleet,
            store,
            dir,
            stop,
            task: tokio::spawn(work),
        };
        for name in file["mcpServers"].as_object().unwrap().keys() {
            rooms.connected(name).await;
        }
        rooms
    }

    /// Takes over what is saved from now on.
    pub(crate) fn follow(&self) {
        let follower = registry::follow(self.registry.clone(), self.stop.clone());
        tokio::spawn(follower);
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) async fn connected(&self, name: &str) {
        let up = |view: &fleet::ServerView| view.state.status() == fleet::Status::Connected;
        let view = self.fleet.wait(name, up, PATIENCE).await;
        assert!(
            view.is_some_and(|view| up(&view)),
            "{name} is not connected"
        );
    }

    /// Waits until the server has a call in flight.
    pub(crate) async fn busy(&self, server: &str) {
        eventually("the call is in flight", || {
            let snapshot = self.fleet.snapshot();
            let connection = snapshot.servers[server].state.connection().cloned();
            connection.is_some_and(|connection| connection.in_flight() > 0)
        })
        .await;
    }

    /// Calls a tool; the text of its answer.
    pub(crate) async fn call(
        &self,
        server: &str,
        tool: &str,
        args: Value,
    ) -> Result<String, CallError> {
        let call = self.fleet.call(tool_call(server, tool, args));
        let answer = result(call).await?;
        let answer: Value = serde_json::from_str(answer.get()).unwrap();
        let text = &answer["content"][0]["text"];
        Ok(text
            .as_str()
            .unwrap_or_else(|| panic!("{answer:#}"))
            .to_owned())
    }

    /// Registers a fixture as POST does.
    pub(crate) async fn create(&self, name: &str, args: &[&str]) {
        let body = json!({"name": name, "command": fixture(), "args": args});
        let body = parse_body(body.to_string().as_bytes()).unwrap();
        let created = self.registry.create(body.name, body.spec, true).await;
        created.unwrap();
    }

    /// Changes a definition as PATCH does; in force when this returns.
    pub(crate) async fn patch(&self, server: &str, patch: Value) {
        let read =
            |current: &config::ServerSpec| merge_patch(current, patch.to_string().as_bytes());
        let wanted = self.registry.update(server, EditBasis::Newest, read).await;
        let wanted = wanted.unwrap();
        let seen = |view: &fleet::ServerView| view.wanted.generation >= wanted.generation;
        self.fleet.wait(server, seen, PATIENCE).await;
    }

    /// Ends every server in order.
    pub(crate) async fn close(self) {
        self.registry.close().await;
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.task).await;
        ended.expect("the fleet ends").unwrap();
    }
}

fn surroundings(dir: &TempDir) -> FleetConfig {
    let path = std::env::var("PATH").unwrap();
    FleetConfig {
        project: dir.path().to_owned(),
        variables: [("PATH".to_owned(), path.clone())].into(),
        base_env: Arc::new(vec![("PATH".to_owned(), path)]),
        hidden: Vec::new(),
        instance: uuid::Uuid::new_v4().to_string(),
        shim: shim().to_owned(),
        limits: ConnectionLimits::default(),
        health_interval: Duration::from_secs(30),
        capabilities: upstream::no_capabilities(),
        asked: tokio::sync::mpsc::channel(1).0,
    }
}

/// A call of a tool on the admin's behalf.
pub(crate) fn tool_call(server: &str, tool: &str, args: Value) -> Arc<CallRequest> {
    let params = json!({"name": tool, "arguments": args});
    Arc::new(CallRequest {
        server: server.into(),
        slot: Slot {
            principal: "admin".into(),
            owner: "admin".into(),
            session: None,
            ended: None,
            capabilities: upstream::no_capabilities(),
        },
        method: "tools/call".into(),
        params: Some(serde_json::value::to_raw_value(&params).unwrap()),
        name: None,
        capabilities: upstream::no_capabilities(),
        log_level: None,
        wants_log: false,
        progress: true,
        limit: None,
        permission: None,
    })
}

/// What a call comes to.
pub(crate) async fn result(mut call: CallStream) -> Result<Box<RawValue>, CallError> {
    loop {
        if let CallItem::Done(outcome) = call.next().await {
            return outcome.result.map(|result| result.to_raw());
        }
    }
}
