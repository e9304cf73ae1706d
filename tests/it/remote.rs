//! Remote servers as whole programs: the fixture and the official Rust SDK,
//! over HTTP.

mod calls;
mod connect;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use config::{Containment, EraChoice, Redactor, RemoteKind, ServerSpec, Target, expand};
use indexmap::IndexMap;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use upstream::{
    ConnectOptions, Connection, ConnectionLimits, ConnectionOwner, UpstreamCall, UpstreamError,
};

use crate::app::{PATIENCE, example};

/// A server program and where it listens.
pub(crate) struct RemoteFixture {
    pub url: String,
    _child: Child,
}

/// Starts a program of `examples/` that prints `listening on URL`.
async fn start(program: &str, args: &[&str]) -> RemoteFixture {
    let mut child = Command::new(example(program))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line());
    let line = line
        .await
        .expect("an address in time")
        .unwrap()
        .expect("an address");
    RemoteFixture {
        url: line.strip_prefix("listening on ").unwrap().to_owned(),
        _child: child,
    }
}

pub(crate) async fn fixture(args: &[&str]) -> RemoteFixture {
    start("fixture", args).await
}

impl RemoteFixture {
    fn http(&self) -> Target {
        Target::Remote {
            kind: RemoteKind::Http,
            url: self.url.clone(),
            headers: IndexMap::new(),
        }
    }

    fn sse(&self) -> Target {
        Target::Remote {
            kind: RemoteKind::Sse,
            url: self.url.clone(),
            headers: IndexMap::new(),
        }
    }

    async fn connect(&self) -> (ConnectionOwner, Connection) {
        connect(self.http())
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.url))
    }
}

async fn connect(target: Target) -> Result<(ConnectionOwner, Connection), UpstreamError> {
    connect_as(target, EraChoice::Auto).await
}

async fn connect_as(
    target: Target,
    era: EraChoice,
) -> Result<(ConnectionOwner, Connection), UpstreamError> {
    let launch = expand(&ServerSpec::new(target), &|_| None).unwrap();
    let options = ConnectOptions {
        title: "a remote server".into(),
        era,
        remembered: None,
        containment: Containment::Auto,
        privileges: config::Privileges::Drop,
        hidden: Vec::new(),
        project: PathBuf::new(),
        base_env: Arc::default(),
        instance: String::new(),
        shim: PathBuf::new(),
        limits: ConnectionLimits::default(),
        log: Arc::new(|_, line| println!("log: {line}")),
        capabilities: upstream::no_capabilities(),
        redactor: Arc::new(Redactor::default()),
        asking: Arc::default(),
    };
    let stop = CancellationToken::new();
    let connecting = upstream::connect(&launch, &options, &stop);
    tokio::time::timeout(PATIENCE, connecting)
        .await
        .expect("an answer in time")
}

async fn call(
    connection: &Connection,
    tool: &str,
    arguments: Value,
) -> Result<Value, UpstreamError> {
    call_within(connection, tool, arguments, PATIENCE).await
}

async fn call_within(
    connection: &Connection,
    tool: &str,
    arguments: Value,
    limit: Duration,
) -> Result<Value, UpstreamError> {
    let params = json!({"name": tool, "arguments": arguments});
    let params = serde_json::value::to_raw_value(&params).unwrap();
    let call = UpstreamCall::new("tools/call", limit).params(Some(&params));
    let answer = connection.request(call).await?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}

/// The text a tool answered with.
async fn say(connection: &Connection, tool: &str, arguments: Value) -> String {
    let result = call(connection, tool, arguments).await;
    let result = result.unwrap_or_else(|error| panic!("{tool}: {error}"));
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
